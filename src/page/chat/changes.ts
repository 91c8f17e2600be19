// How a file looked before and after a change: known while the call waits, and kept for the card that stays.
import type { FileChange } from "../wire";
import { get } from "../wire/api";

const MOST = 100;
const known = new Map<string, Promise<FileChange | null>>();
const found = new Map<string, FileChange>(); // by approval

export function changeOf(approval: string): Promise<FileChange | null> {
  let asked = known.get(approval);
  if (!asked) {
    asked = get<FileChange>(`/approvals/${approval}/change`).then((change) => {
      found.set(approval, change);
      for (const old of [...found.keys()].slice(0, -MOST)) found.delete(old), known.delete(old);
      return change;
    }, () => null);
    known.set(approval, asked);
  }
  return asked;
}
export const changeSeen = (approval: string | undefined): FileChange | undefined => (approval ? found.get(approval) : undefined);
