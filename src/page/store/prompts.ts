// Texts that people use again and again. This browser keeps them.
import { state, store, stored } from "./state";

export interface Prompt {
  name: string;
  text: string;
}

function kept(): Prompt[] {
  try {
    const all: unknown = JSON.parse(stored("prompts") || "[]");
    return Array.isArray(all) ? all.filter((each): each is Prompt => typeof each?.name === "string" && typeof each?.text === "string") : [];
  } catch {
    return [];
  }
}

export const prompts = state({ all: kept() });

addEventListener("storage", (e) => e.key === "prompts" && prompts.set({ all: kept() }));

// Changes what is stored, because another window may have kept more.
function keep(all: Prompt[]): void {
  store("prompts", JSON.stringify(all));
  prompts.set({ all });
}
export const addPrompt = (name: string, text: string): void => keep([...kept().filter((each) => each.name !== name), { name, text }].sort((a, b) => a.name.localeCompare(b.name)));
export const removePrompt = (name: string): void => keep(kept().filter((each) => each.name !== name));
