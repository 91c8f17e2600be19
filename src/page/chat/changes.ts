// A file before and after a change: known while the call waits, and kept for its card afterwards.
import type { ToolBlock } from "../store/turn";
import type { FileChange } from "../wire";
import { ApiError, get } from "../wire/api";
import { argumentsOf, Values, wordOf } from "./values";

const MOST = 100;
const CHANGING = ["write_file", "edit_file", "delete_file"];

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

// The effect of a call with these arguments on the file as it was read; null if unknown.
export function changeBy(tool: string, values: Values | null, seen: FileChange | null | undefined): Texts | null {
  if (!values || !seen || values.path !== seen.path) return null;
  const before = seen.before ?? "";
  if (tool === "write_file") return { before, after: wordOf(values, "content") };
  if (tool === "delete_file") return { before, after: "" };
  const old = wordOf(values, "old_text"), at = before.indexOf(old);
  if (tool !== "edit_file" || old === "" || at < 0 || before.indexOf(old, at + 1) >= 0) return null;
  return { before, after: before.slice(0, at) + wordOf(values, "new_text") + before.slice(at + old.length) };
}

// Whether a person has changed the arguments.
export const wasChanged = (block: ToolBlock): boolean => Boolean(block.approval?.decision?.tool_input);

// The change that ran, which may not be the proposed one; null if the call was not seen waiting.
export function changeThatRan(block: ToolBlock): Texts | null {
  const seen = block.approval && found.get(block.approval.approval_id);
  if (!seen) return null;
  return wasChanged(block) ? changeBy(block.name, argumentsOf(block.input), seen) : { before: seen.before ?? "", after: seen.after ?? "" };
}
