// A file before and after a change: known while the call waits, and kept for its card afterwards.
import type { ToolBlock } from "../store/turn";
import type { FileChange } from "../wire";
import { ApiError, get } from "../wire/api";
import { argumentsOf, Values, wordOf } from "./values";

const MOST = 100;
const CHANGING = ["write_file", "edit_file", "apply_patch", "delete_file"];

export interface Previewed {
  change: FileChange | null;
  problem: string; // why there is no change, such as that the call would fail
}
const known = new Map<string, Promise<Previewed>>();
const found = new Map<string, FileChange>(); // by approval

export function changeOf(approval: string, tool: string): Promise<Previewed> {
  let asked = known.get(approval);
  if (!asked) {
    asked = get<FileChange>(`/approvals/${approval}/change`).then((change) => {
      found.set(approval, change);
      for (const old of [...found.keys()].slice(0, -MOST)) found.delete(old), known.delete(old);
      return { change, problem: "" };
    }, (error) => ({ change: null, problem: CHANGING.includes(tool) && error instanceof ApiError && error.status === 409 ? error.message : "" }));
    known.set(approval, asked);
  }
  return asked;
}

interface Texts {
  before: string;
  after: string;
}

export interface TextEdit {
  old_text: string;
  new_text: string;
  replace_all: boolean;
}

// The edits of a call of edit_file: the one beside its path, or several.
export function editsOf(values: Values | null): TextEdit[] {
  if (!values) return [];
  const several = Array.isArray(values.edits) ? values.edits.filter((each): each is Values => typeof each === "object" && each !== null && !Array.isArray(each)) : [];
  return (several.length > 0 ? several : [values]).map((each) => ({ old_text: wordOf(each, "old_text"), new_text: wordOf(each, "new_text"), replace_all: each.replace_all === true }));
}

// The effect of a call with these arguments on the file as it was read; null if unknown.
export function changeBy(tool: string, values: Values | null, seen: FileChange | null | undefined): Texts | null {
  if (!values || !seen || values.path !== seen.path) return null;
  const before = seen.before ?? "";
  if (tool === "write_file") return { before, after: wordOf(values, "content") };
  if (tool === "delete_file") return { before, after: "" };
  if (tool !== "edit_file") return null;
  let after = before;
  for (const each of editsOf(values)) {
    const old = each.old_text, at = after.indexOf(old);
    if (old === "" || at < 0) return null; // the server may find a place that is like it
    if (each.replace_all) after = after.split(old).join(each.new_text);
    else if (after.indexOf(old, at + 1) >= 0) return null;
    else after = after.slice(0, at) + each.new_text + after.slice(at + old.length);
  }
  return { before, after };
}

// Whether a person has changed the arguments.
export const wasChanged = (block: ToolBlock): boolean => Boolean(block.approval?.decision?.tool_input);

// The change that ran, which may not be the proposed one; null if the call was not seen waiting.
export function changeThatRan(block: ToolBlock): Texts | null {
  const seen = block.approval && found.get(block.approval.approval_id);
  if (!seen) return null;
  if (block.name === "apply_patch") return null; // of several files
  return wasChanged(block) ? changeBy(block.name, argumentsOf(block.input), seen) : { before: seen.before ?? "", after: seen.after ?? "" };
}
