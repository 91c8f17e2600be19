// The state of an opened chat, and how much of it is held in memory.
import type { Place } from "../list/window";
import type { QueuedEntry } from "../wire";
import { store, stored } from "./state";
import { blank, isRunning, Turn } from "./turn";

export interface OpenChat {
  id: string;
  turns: Map<string, Turn>;
  previous: string | null; // where to read earlier turns; null: there are none
  loaded: boolean;
  missing?: boolean; // the server has no such chat
  unread: boolean; // events of it may have been missed
  reading: Map<string, Promise<void>>; // requests under way
  queue: QueuedEntry[];
  sent: string | null; // a sent message that has not come back yet
  unsent: Unsent[]; // messages that could not be sent
  shape: number; // changes with its turns
  // The heights and kept state of its rows, and the reader's place.
  heights: Map<string, number>;
  values: Map<string, unknown>;
  place?: Place;
}

export function newChat(id: string): OpenChat {
  return {
    id, turns: new Map(), previous: null, loaded: false, unread: true, reading: new Map(), queue: [], sent: null, unsent: unsentOf(id), shape: 0,
    heights: new Map(), values: new Map(),
  };
}

// --- what was written but not sent, which outlives the page
export interface Unsent {
  id: string;
  text: string;
  attachments: string[];
  why?: string; // the server's words if it refused the message; none: it could not be reached
}
export const UNSENT = "unsent:"; // begins the name of a chat's list

export function unsentOf(chat: string): Unsent[] {
  try {
    return JSON.parse(stored(UNSENT + chat) || "[]") as Unsent[];
  } catch {
    return [];
  }
}
// Changes what is stored, because another window may have kept more.
export function changeUnsent(chat: OpenChat, how: (all: Unsent[]) => Unsent[]): void {
  chat.unsent = how(unsentOf(chat.id));
  store(UNSENT + chat.id, chat.unsent.length > 0 ? JSON.stringify(chat.unsent) : "");
}

export const draftName = (chat: string): string => `draft:${chat}`;
export const draftOf = (chat: string): string => stored(draftName(chat));
// `before` is what this window wrote last: the draft of another window is not removed.
export function writeDraft(chat: string, text: string, before: string): void {
  if (text || draftOf(chat) === before) store(draftName(chat), text);
}
// Makes this the draft of the chat unless it has another one. The box of that chat, if there is one, is told of it as by another window. False: it has another one.
export function offerDraft(chat: string, text: string): boolean {
  if (draftOf(chat)) return false;
  addToDraft(chat, text);
  return true;
}
export function addToDraft(chat: string, text: string): void {
  const oldValue = draftOf(chat), newValue = oldValue ? `${oldValue}\n${text}` : text;
  store(draftName(chat), newValue);
  dispatchEvent(new StorageEvent("storage", { key: draftName(chat), oldValue, newValue }));
}

export const byNumber = (a: string, b: string): number => Number(a.slice(4)) - Number(b.slice(4));

// The turn with the next number, on any branch: reading "before" it gives a page that ends with this turn.
export function nextId(chat: OpenChat, id: string): string | undefined {
  let next: string | undefined;
  for (const other of chat.turns.keys()) if (byNumber(other, id) > 0 && (next === undefined || byNumber(other, next) < 0)) next = other;
  return next;
}

// --- the tree of turns
type Tree = Map<string | null, Turn[]>;

const trees = new WeakMap<OpenChat, { shape: number; size: number; tree: Tree; end: string | null; branch: Turn[] | null }>();

function known(chat: OpenChat) {
  let found = trees.get(chat);
  if (!found || found.shape !== chat.shape || found.size !== chat.turns.size) {
    const tree: Tree = new Map();
    for (const turn of [...chat.turns.values()].sort((a, b) => byNumber(a.id, b.id))) {
      const children = tree.get(turn.parent);
      if (children) children.push(turn);
      else tree.set(turn.parent, [turn]);
    }
    trees.set(chat, (found = { shape: chat.shape, size: chat.turns.size, tree, end: null, branch: null }));
  }
  return found;
}
export const treeOf = (chat: OpenChat): Tree => known(chat).tree;

// The turns that lead to `end`, or to the newest, oldest first.
export function listed(chat: OpenChat, end: string | null): Turn[] {
  const found = known(chat);
  if (found.branch && found.end === end) return found.branch;
  let at = end;
  if (at === null) for (const id of chat.turns.keys()) if (at === null || byNumber(at, id) < 0) at = id;
  const turns: Turn[] = [];
  while (at) {
    const turn: Turn | undefined = chat.turns.get(at);
    if (!turn) break;
    turns.push(turn);
    at = turn.parent;
  }
  found.end = end;
  return (found.branch = turns.reverse());
}

// --- memory
export function sizeOf(chat: OpenChat): number {
  let size = 0;
  for (const turn of chat.turns.values()) size += 500 + turn.size + (turn.message?.length ?? 0);
  return size + 100 * (chat.heights.size + chat.values.size);
}

// Lets go of the turns farthest from those in view (or from the end) until the rest is small enough.
export function trim(chat: OpenChat, near: Set<string>, most: number): void {
  let size = 0;
  for (const turn of chat.turns.values()) size += turn.size;
  if (size <= most) return;
  const turns = [...chat.turns.values()].sort((a, b) => byNumber(a.id, b.id));
  const looked = turns.map((turn, i) => (near.has(turn.id) ? i : -1)).filter((i) => i >= 0);
  const low = looked[0] ?? turns.length, high = looked[looked.length - 1] ?? turns.length;
  const far = (i: number): number => (i < low ? low - i : i > high ? i - high : 0);
  const heights = heightsOf(chat);
  const order = turns.map((_, i) => i).sort((a, b) => far(b) - far(a));
  for (const i of order) {
    const turn = turns[i]!;
    if (size <= (most * 3) / 4) return;
    if (far(i) === 0 || !turn.held || isRunning(turn)) continue;
    size -= turn.size;
    turn.height = Math.max(heights.get(turn.id) ?? 0, guess(turn));
    chat.heights.delete(`${turn.id}/gone`);
    blank(turn, false);
  }
}

// A guess for a turn that was never drawn: by the length of texts, and a line for each other block.
const guess = (turn: Turn): number => turn.blocks.reduce((height, block) => height + (block.kind === "text" ? block.text.length * 0.27 : 40), 0);

function heightsOf(chat: OpenChat): Map<string, number> {
  const heights = new Map<string, number>();
  for (const [key, height] of chat.heights) {
    const turn = key.slice(0, key.indexOf("/"));
    if (!key.endsWith("/head") && !key.endsWith("/gone")) heights.set(turn, (heights.get(turn) ?? 0) + height);
  }
  return heights;
}
