import { t } from "../texts";

// Characters that cannot be seen, that look like a blank and are none, or that turn the order of others around, spelled out: what is approved is what is read.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Zs}\p{Default_Ignorable_Code_Point}\u2800\ufffc\u{1d159}]/gu;
const SEEN = new Set([" ", "\n", "\t"]);

const isHidden = (c: string): boolean => !SEEN.has(c);

export const hasHidden = (text: string): boolean => (text.match(HIDDEN) ?? []).some(isHidden);
export const spelled = (text: string): string => text.replace(HIDDEN, (c) => (isHidden(c) ? `\\u{${c.codePointAt(0)!.toString(16)}}` : c));

// Whether anything in the value of an argument is hidden, names of members included.
export function holdsHidden(value: unknown): boolean {
  if (typeof value === "string") return hasHidden(value);
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([name, each]) => hasHidden(name) || holdsHidden(each));
}

// A text in parts: what is read, and runs of emptiness so long that they would push what follows out of sight, each by its length.
export interface Part {
  text: string;
  lines: number; // that are empty; 0: this is text
  blanks: number; // that follow each other in a line; 0: likewise
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

// A text of which nothing is hidden: neither a character, nor its end behind a long run of empty lines or blanks.
export function Visible({ text }: { text: string }) {
  return <>{partsOf(text).map((part, i) => (part.lines + part.blanks === 0 ? spelled(part.text) : <Gap key={i} lines={part.lines} blanks={part.blanks} />))}</>;
}

export function Gap({ lines, blanks = 0 }: { lines: number; blanks?: number }) {
  return <span className="gap" data-testid="gap">{lines > 0 ? t.emptyLines(lines) : t.blanks(blanks)}</span>;
}
