// A call's arguments and name as people read them.
import { t } from "../texts";
import { parseExact, writeExact } from "./exact";

export type Values = Record<string, unknown>;

export function argumentsOf(text: string): Values | null {
  try {
    const value = parseExact(text);
    return value && typeof value === "object" && !Array.isArray(value) ? (value as Values) : null;
  } catch {
    return null;
  }
}

// The argument of this name, if it is a text.
export const wordOf = (values: Values | null, name: string): string => (typeof values?.[name] === "string" ? (values[name] as string) : "");

// "files__read" of an MCP server becomes "files › read"; other tools have a title.
export function titleOf(name: string): string {
  const [server, tool] = mcpParts(name);
  return server ? `${server} › ${tool}` : (t.toolTitles[name] ?? name);
}
function mcpParts(name: string): [string, string] {
  const at = name.indexOf("__");
  return at > 0 ? [name.slice(0, at), name.slice(at + 2)] : ["", name];
}

// The files that a call of apply_patch names.
export const patchedPaths = (values: Values | null): string[] =>
  [...new Set([...wordOf(values, "input").matchAll(/^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$/gm)].map((each) => each[1]!.trim()))];

// The most telling argument, in one line.
export function summary(name: string, values: Values | null): string {
  if (!values) return "";
  if (name === "apply_patch") return patchedPaths(values).join(", ").slice(0, 160);
  for (const member of ["command", "path", "url", "pattern", "question", "expression", "filename", "title", "text", "code"]) {
    const value = values[member];
    if (typeof value === "string") return value.trim().split("\n")[0]!.slice(0, 160);
  }
  if (Array.isArray(values.steps)) return t.stepsOf(values.steps.length);
  if (name === "manage_tasks") return [values.action, values.status].filter(Boolean).join(" ");
  const rest = writeExact(values);
  return rest === "{}" ? "" : rest.slice(0, 160);
}
