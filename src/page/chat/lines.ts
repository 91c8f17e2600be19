// Compares two texts: which lines, or words, are the same, removed or added.
import { hasHidden } from "./hidden";

export interface Line {
  kind: "same" | "added" | "removed" | "gap";
  text: string;
  empty?: number; // number of empty lines that this one stands for
  before?: number; // its line number in each text
  after?: number;
  hidden?: Line[]; // what a gap stands for
}
export interface Part {
  kind: "same" | "added" | "removed";
  text: string;
}

const CONTEXT = 3;
const MOST = 4_000_000; // cells of the table; larger changes are shown as a whole

export function diff(before: string, after: string): Line[] {
  const parts = compare(linesOf(before), linesOf(after));
  let a = 0, b = 0;
  return withoutEmptyRuns(withoutFarLines(parts.map(({ kind, text }): Line => ({
    kind, text, before: kind === "added" ? undefined : ++a, after: kind === "removed" ? undefined : ++b,
  }))));
}

// More empty lines would push the rest out of sight.
const MOST_EMPTY = 4;

function withoutEmptyRuns(lines: Line[]): Line[] {
  const shown: Line[] = [];
  for (let i = 0; i < lines.length;) {
    let end = i;
    while (end < lines.length && lines[end]!.kind === lines[i]!.kind && lines[end]!.kind !== "gap" && isEmpty(lines[end]!.text)) end++;
    if (end - i > MOST_EMPTY) shown.push({ ...lines[i]!, text: "", empty: end - i }), (i = end);
    else shown.push(lines[i++]!);
  }
  return shown;
}
const isEmpty = (text: string): boolean => text.trim() === "" && !hasHidden(text);

export function diffWords(before: string, after: string): Part[] {
  const parts = compare(before.split(/(?<=\s)/), after.split(/(?<=\s)/));
  const joined: Part[] = [];
  for (const part of parts) {
    const last = joined[joined.length - 1];
    if (last?.kind === part.kind) last.text += part.text;
    else joined.push({ ...part });
  }
  return joined;
}

export function changes(lines: Line[]): { added: number; removed: number } {
  const count = (kind: Line["kind"]): number => lines.reduce((sum, line) => sum + (line.kind === kind ? (line.empty ?? 1) : 0), 0);
  return { added: count("added"), removed: count("removed") };
}

const linesOf = (text: string): string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

function compare(a: string[], b: string[]): Part[] {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const same = (text: string): Part => ({ kind: "same", text });
  return [...a.slice(0, start).map(same), ...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)), ...a.slice(a.length - end).map(same)];
}

function middle(a: string[], b: string[]): Part[] {
  const whole: Part[] = [...a.map((text): Part => ({ kind: "removed", text })), ...b.map((text): Part => ({ kind: "added", text }))];
  if (a.length * b.length > MOST || a.length === 0 || b.length === 0) return whole;
  const width = b.length + 1;
  const longest = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      longest[i * width + j] = a[i] === b[j] ? longest[(i + 1) * width + j + 1]! + 1
        : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!);
    }
  }
  const parts: Part[] = [];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) parts.push({ kind: "same", text: a[i]! }), i++, j++;
    else if (i < a.length && (j === b.length || longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!)) parts.push({ kind: "removed", text: a[i++]! });
    else parts.push({ kind: "added", text: b[j++]! });
  }
  return parts;
}

function withoutFarLines(lines: Line[]): Line[] {
  const near = new Array<boolean>(lines.length).fill(false);
  lines.forEach((line, i) => line.kind !== "same" && near.fill(true, Math.max(0, i - CONTEXT), i + CONTEXT + 1));
  const shown: Line[] = [];
  let hidden: Line[] = [];
  const flush = (): void => {
    if (hidden.length > 0) shown.push({ kind: "gap", text: `⋯ ${hidden.length}`, hidden });
    hidden = [];
  };
  lines.forEach((line, i) => {
    if (!near[i]) return void hidden.push(line);
    flush();
    shown.push(line);
  });
  flush();
  return shown;
}
