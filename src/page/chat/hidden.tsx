import { t } from "../texts";

// Spells out characters that are invisible, look like a blank, or reverse the order of others, so that people approve what they read.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Zs}\p{Default_Ignorable_Code_Point}\u2800\ufffc\u{1d159}]/gu;
const SEEN = new Set([" ", "\n", "\t"]);

const isHidden = (c: string): boolean => !SEEN.has(c);

export const hasHidden = (text: string): boolean => (text.match(HIDDEN) ?? []).some(isHidden);
export const spelled = (text: string): string => text.replace(HIDDEN, (c) => (isHidden(c) ? `\\u{${c.codePointAt(0)!.toString(16)}}` : c));

// Whether an argument's value holds hidden characters, also in names of members.
export function holdsHidden(value: unknown): boolean {
  if (typeof value === "string") return hasHidden(value);
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([name, each]) => hasHidden(name) || holdsHidden(each));
}

// A part of a text: text to read, or the length of a run of emptiness that would push the rest out of sight.
export interface Part {
  text: string;
  lines: number; // of empty lines; 0: this is text
  blanks: number; // of blanks in a row; 0: the same
}
const MOST_LINES = 4;
const MOST_BLANKS = 120;

export function partsOf(text: string): Part[] {
  const parts: Part[] = [];
  const add = (words: string): void => {
    const last = parts[parts.length - 1];
    if (last && last.lines + last.blanks === 0) last.text += words;
    else if (words !== "") parts.push({ text: words, lines: 0, blanks: 0 });
  };
  const lines = text.split("\n");
  for (let i = 0; i < lines.length;) {
    let end = i;
    while (end < lines.length && lines[end]!.trim() === "" && !hasHidden(lines[end]!)) end++;
    if (end - i > MOST_LINES) {
      parts.push({ text: "", lines: end - i, blanks: 0 });
      i = end;
      continue;
    }
    for (const run of lines[i]!.match(/[ \t]+|[^ \t]+/g) ?? []) {
      if (run.length > MOST_BLANKS && run.trim() === "") parts.push({ text: "", lines: 0, blanks: run.length });
      else add(run);
    }
    if (++i < lines.length) add("\n");
  }
  return parts;
}

// A text without hidden parts: hidden characters are spelled out, and long runs of empty lines or blanks are shortened.
export function Visible({ text }: { text: string }) {
  return <>{partsOf(text).map((part, i) => (part.lines + part.blanks === 0 ? spelled(part.text) : <Gap key={i} lines={part.lines} blanks={part.blanks} />))}</>;
}

export function Gap({ lines, blanks = 0 }: { lines: number; blanks?: number }) {
  return <span className="gap" data-testid="gap">{lines > 0 ? t.emptyLines(lines) : t.blanks(blanks)}</span>;
}
