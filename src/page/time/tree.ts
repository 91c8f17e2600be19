// The turns of a chat as rows of a drawing: one below the other, each version in a lane of its own.
import { byNumber } from "../store/open";
import type { Turn } from "../store/turn";

export interface TreeRow {
  turn: Turn;
  lane: number;
  parent: number; // the row of its parent, -1: it begins
  shown: boolean;
}

export function treeOf(turns: Map<string, Turn>, shown: Set<string>): TreeRow[] {
  const children = new Map<string | null, Turn[]>();
  for (const turn of [...turns.values()].sort((a, b) => byNumber(a.id, b.id))) {
    const parent = turn.parent !== null && turns.has(turn.parent) ? turn.parent : null;
    children.set(parent, [...(children.get(parent) ?? []), turn]);
  }
  const rows: TreeRow[] = [];
  const free = { lane: 0 };
  // The oldest version goes on in its parent's lane; each other one opens the next. Without recursion: chats are long.
  const next: { turn: Turn; lane: number | null; parent: number }[] = [];
  const push = (of: string | null, lane: number | null, parent: number): void => {
    const all = children.get(of) ?? [];
    for (let i = all.length - 1; i >= 0; i--) next.push({ turn: all[i]!, lane: i === 0 ? lane : null, parent });
  };
  push(null, null, -1);
  for (let at = next.pop(); at; at = next.pop()) {
    const lane = at.lane ?? free.lane++;
    rows.push({ turn: at.turn, lane, parent: at.parent, shown: shown.has(at.turn.id) });
    push(at.turn.id, lane, rows.length - 1);
  }
  return rows;
}
