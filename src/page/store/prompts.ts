// Texts that people use again and again. This browser keeps them.
import { state } from "./state";

export interface Prompt {
  name: string;
  text: string;
}

function kept(): Prompt[] {
  try {
    const all: unknown = JSON.parse(localStorage.getItem("prompts") ?? "[]");
    return Array.isArray(all) ? all.filter((each): each is Prompt => typeof each?.name === "string" && typeof each?.text === "string") : [];
  } catch {
    return [];
  }
}

export const prompts = state({ all: kept() });

function keep(all: Prompt[]): void {
  localStorage.setItem("prompts", JSON.stringify(all));
  prompts.set({ all });
}
export const addPrompt = (name: string, text: string): void => keep([...prompts.all.filter((each) => each.name !== name), { name, text }].sort((a, b) => a.name.localeCompare(b.name)));
export const removePrompt = (name: string): void => keep(prompts.all.filter((each) => each.name !== name));
