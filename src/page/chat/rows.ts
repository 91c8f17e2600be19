// A chat as one list of rows: messages, and the blocks that follow each. A text has a row for each of its pieces.
import type { ClipboardEvent } from "react";
import type { Row } from "../list/window";
import { Piece, Pieces } from "../markdown/pieces";
import { Block, isRunning, TextBlock, ToolBlock, Turn } from "../store/turn";

export interface ChatRow extends Row {
  kind: "earlier" | "head" | "text" | "code" | "tool" | "thinking" | "note" | "hidden" | "reads" | "wait" | "foot" | "gone" | "sent";
  turn: Turn | null;
  block: Block | null;
  piece: number; // number of the piece in the text
  count: number; // of hidden blocks, or of reads
  reads?: ToolBlock[]; // calls that only read, in one line
}

const CHARACTERS = 90; // in a line, roughly
const LINE = 24; // pixels

const isSame = (a: ChatRow, b: ChatRow | undefined): boolean => a === b || (a.key === b?.key && a.kind === b.kind && a.guess === b.guess && a.block === b.block && a.count === b.count);

const row = (key: string, kind: ChatRow["kind"], guess: number, turn: Turn | null, more: Partial<ChatRow> = {}): ChatRow => ({ key, kind, guess, turn, block: null, piece: 0, count: 0, ...more });

// --- the pieces of a text, split once
const piecesOf = new WeakMap<TextBlock, { text: string; open: boolean; pieces: Pieces }>();

export function pieces(block: TextBlock): Pieces {
  let known = piecesOf.get(block);
  // While a text arrives it only grows; the stored text may differ and replaces it.
  if (!known || block.text.length < known.text.length || (known.open !== block.open && !block.text.startsWith(known.text))) {
    known = { text: "", open: block.open, pieces: new Pieces() };
    piecesOf.set(block, known);
  }
  known.open = block.open;
  if (known.text.length !== block.text.length) known.pieces.read(block.text);
  known.text = block.text;
  return known.pieces;
}
export const pieceOf = (block: TextBlock, at: number): Piece | null => {
  const { done, growing } = pieces(block);
  return done[at] ?? (at === done.length ? growing : null);
};

// --- the rows of a block, reused while they stay the same
const rowsOfBlock = new WeakMap<Block, ChatRow[]>();

function blockRows(turn: Turn, block: Block): ChatRow[] {
  const known = rowsOfBlock.get(block) ?? [];
  const key = `${turn.id}/${block.key}`;
  if (block.kind === "text") {
    const { done, growing } = pieces(block);
    const count = done.length + (growing ? 1 : 0);
    known.length = Math.min(known.length, count);
    for (let i = Math.max(0, known.length - 1); i < count; i++) {
      const piece = done[i] ?? growing!;
      const guess = piece.kind === "code" ? 40 + 20 * piece.text.split("\n").length : 10 + LINE * Math.ceil(piece.text.length / CHARACTERS);
      if (known[i]?.kind !== piece.kind) known[i] = row(`${key}/${i}`, piece.kind === "code" ? "code" : "text", guess, turn, { block, piece: i });
      else known[i]!.guess = guess;
    }
  } else if (known.length === 0) {
    known.push(row(key, block.kind, block.kind === "tool" ? 46 : 36, turn, { block }));
  }
  rowsOfBlock.set(block, known);
  return known;
}

// --- the rows of a turn
const rowsOfTurn = new WeakMap<Turn, { version: number; how: string; rows: ChatRow[] }>();

// Calls that have read something and nothing else: three in a row are one line. A line is not endless, because it is drawn as a whole when it is open.
const READS = /^(read_file|list_files|find_files|search_files|read_chat_file|list_chat_files)$/;
const FEWEST = 3, MOST = 40;

function readsAt(blocks: readonly Block[], at: number): ToolBlock[] {
  const found: ToolBlock[] = [];
  for (let i = at; i < blocks.length && found.length < MOST; i++) {
    const block = blocks[i]!;
    if (block.kind !== "tool" || !READS.test(block.name) || block.output === null || block.approval || block.files.length > 0) break;
    found.push(block);
  }
  return found.length < FEWEST ? [] : found;
}

export function blocksOf(turn: Turn, hideTools: boolean, folds = true): ChatRow[] {
  const rows: ChatRow[] = [];
  let hidden = 0;
  const flush = (before: string): void => {
    if (hidden > 0) rows.push(row(`${turn.id}/hidden-${before}`, "hidden", 32, turn, { count: hidden }));
    hidden = 0;
  };
  for (let i = 0; i < turn.blocks.length; i++) {
    const block = turn.blocks[i]!;
    const reads = folds && !hideTools ? readsAt(turn.blocks, i) : [];
    if (reads.length > 0) {
      rows.push(row(`${turn.id}/${block.key}-reads`, "reads", 36, turn, { block, reads, count: reads.length }));
      i += reads.length - 1;
      continue;
    }
    if (hideTools && block.kind === "tool" && block.output !== null) {
      hidden++;
      continue;
    }
    flush(String(block.key));
    for (const each of blockRows(turn, block)) rows.push(each);
  }
  flush("end");
  return rows;
}

function rowsOf(turn: Turn, hideTools: boolean, folds: boolean): ChatRow[] {
  const known = rowsOfTurn.get(turn);
  const how = `${hideTools}-${folds}`;
  if (known && known.version === turn.version && known.how === how) return known.rows;
  const rows = [row(`${turn.id}/head`, "head", turn.message === "" ? 1 : 70 + LINE * Math.min(6, Math.floor((turn.message ?? "").length / CHARACTERS)), turn)];
  if (!turn.held) {
    rows.push(row(`${turn.id}/gone`, "gone", turn.height || 200, turn));
  } else {
    for (const each of blocksOf(turn, hideTools, folds)) rows.push(each);
    if (!isRunning(turn)) rows.push(row(`${turn.id}/foot`, "foot", 34, turn));
    else if (turn.blocks.length === 0) rows.push(row(`${turn.id}/wait`, "wait", 40, turn));
  }
  // A text that grows within its last piece is no other row: the list stays the same one.
  const now = known && known.rows.length === rows.length && rows.every((each, i) => isSame(each, known.rows[i])) ? known.rows : rows;
  rowsOfTurn.set(turn, { version: turn.version, how, rows: now });
  return now;
}

interface ChatRows {
  rows: ChatRow[];
  leads: Int32Array; // for each row, the index of its turn's head
  heads: Map<string, number>; // index of each turn's head, by turn id
}

let last: { of: unknown[]; all: ChatRows } | null = null;

// The same object as long as the rows are the same.
export function rowsOfChat(turns: readonly Turn[], hideTools: boolean, folds: boolean, earlier: boolean, unsent: readonly string[]): ChatRows {
  const parts = turns.map((turn) => rowsOf(turn, hideTools, folds));
  const of = [earlier, unsent.join(), ...turns, ...parts];
  if (!last || last.of.length !== of.length || of.some((each, i) => each !== last!.of[i])) last = { of, all: joined(turns, parts, earlier, unsent) };
  return last.all;
}
function joined(turns: readonly Turn[], parts: ChatRow[][], earlier: boolean, unsent: readonly string[]): ChatRows {
  const rows: ChatRow[] = [];
  const heads = new Map<string, number>();
  if (earlier) rows.push(row("earlier", "earlier", 40, null, { floats: true }));
  const leadOf: number[] = earlier ? [-1] : [];
  turns.forEach((turn, i) => {
    const head = rows.length;
    heads.set(turn.id, head);
    for (const each of parts[i]!) rows.push(each), leadOf.push(head);
  });
  for (const key of unsent) rows.push(row(key, "sent", 60, null)), leadOf.push(-1);
  return { rows, leads: Int32Array.from(leadOf), heads };
}

// Whether a call waits for a person: itself, or in the work of its sub-agent.
const isWaiting = (block: Block): boolean => block.kind === "tool" && block.output === null
  && (Boolean(block.approval && !block.approval.decision) || Boolean(block.question && !block.question.answered) || Boolean(block.nested?.blocks.some(isWaiting)));

// The keys of the rows that wait for a person, in the turn that runs.
export function waitingRows(rows: readonly ChatRow[]): string[] {
  const found: string[] = [];
  for (let i = rows.length - 1; i >= 0; i--) {
    const { turn, block, key } = rows[i]!;
    if (turn && !isRunning(turn)) break;
    if (block && isWaiting(block)) found.unshift(key);
  }
  return found;
}

// A selection may span rows that are not in the document. Copying it includes their text as it was written.
function written(row: ChatRow): string {
  const { block } = row;
  if (row.kind === "head") return row.turn?.message ?? "";
  if (block?.kind === "text") {
    const piece = pieceOf(block, row.piece);
    return piece?.kind === "code" ? `\`\`\`${piece.language}\n${piece.text}\n\`\`\`` : (piece?.text.trim() ?? "");
  }
  if (row.reads) return row.reads.map((each) => [each.name, each.input, each.output].join("\n")).join("\n\n");
  if (block?.kind === "tool") return [block.name, block.input, block.output ?? block.live].join("\n");
  return block?.text ?? "";
}

const rowOf = (node: Node | null): HTMLElement | null | undefined => (node instanceof Element ? node : node?.parentElement)?.closest<HTMLElement>("[data-row]");

export function onCopy(e: ClipboardEvent, rows: readonly ChatRow[]): void {
  const chosen = getSelection();
  if (!chosen || chosen.isCollapsed) return;
  const range = chosen.getRangeAt(0);
  const first = rowOf(range.startContainer), last = rowOf(range.endContainer);
  const from = rows.findIndex((row) => row.key === first?.dataset.row), to = rows.findIndex((row) => row.key === last?.dataset.row);
  if (!first || !last || from < 0 || to <= from) return;
  const drawn = new Map(Array.from(e.currentTarget.querySelectorAll<HTMLElement>("[data-row]")).map((row) => [row.dataset.row, row]));
  const between = rows.slice(from + 1, to);
  if (between.every((row) => drawn.has(row.key))) return; // all in the document: the browser copies
  const begin = range.cloneRange(), end = range.cloneRange();
  begin.setEndAfter(first);
  end.setStartBefore(last);
  const text = [begin.toString(), ...between.map(written), end.toString()].filter((part) => part !== "").join("\n\n");
  e.clipboardData.setData("text/plain", text);
  e.preventDefault();
}
