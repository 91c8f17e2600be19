// Makes Markdown that is still being written look as it will in the end: closes open marks, and holds back a mark whose
// content is still missing.
export function closed(text: string): string {
  return closeInline(closeTable(holdBack(text)));
}

function holdBack(text: string): string {
  const at = text.lastIndexOf("\n") + 1;
  const line = text.slice(at);
  // The beginning of a fence, a list, a heading or the line below one.
  if (/^\s{0,3}(`{1,}|~{1,}|#{1,6}|[-*+=_]+|\d{1,9}[.)]|>+|\|)\s*$|^ {0,3}(```|~~~)/.test(line)) return text.slice(0, at).replace(/\n$/, "");
  return text;
}

// Shows the head of a table as one before the line below it has arrived.
function closeTable(text: string): string {
  const lines = text.split("\n");
  const last = lines.length - 1;
  const isHead = (line: string | undefined): boolean => /^ {0,3}\|.*[^|\s]/.test(line ?? "");
  const isLine = (line: string | undefined): boolean => /^ {0,3}\|?[ :|-]*$/.test(line ?? "");
  const below = (head: string): string => {
    const cells = head.trim().replace(/^\||\|$/g, "").split("|").length;
    return `|${" - |".repeat(cells)}`;
  };
  const begins = (at: number): boolean => at === 0 || lines[at - 1]!.trim() === "";
  if (isHead(lines[last]) && begins(last)) return [...lines.slice(0, -1), `${lines[last]!.trim().replace(/\|?$/, "|")}`, below(lines[last]!)].join("\n");
  if (last > 0 && isLine(lines[last]) && isHead(lines[last - 1]) && begins(last - 1)) return [...lines.slice(0, last), below(lines[last - 1]!)].join("\n");
  return text;
}

function closeInline(text: string): string {
  const blank = text.lastIndexOf("\n\n");
  const at = blank < 0 ? 0 : blank + 2;
  const head = text.slice(0, at);
  let tail = text.slice(at);
  // Code comes first, because it holds no marks.
  const ticks = tail.match(/`+/g) ?? [];
  let open = "";
  for (const each of ticks) open = open === "" ? each : open === each ? "" : open;
  if (open) return tail.endsWith(open) ? head + tail.slice(0, -open.length) : `${head}${closeMarks(tail.slice(0, tail.lastIndexOf(open)), false)}${tail.slice(tail.lastIndexOf(open))}${open}`;
  // A link with an unfinished address is shown as its text.
  tail = tail.replace(/!?\[([^[\]\n]*)\](?:\([^()\s]*)?$/, (whole, words: string) => (/\]$/.test(whole) && words.length < 2 ? whole : words));
  tail = tail.replace(/!?\[([^[\]\n]{0,300})$/, "$1");
  return head + closeMarks(tail, true);
}

// The text with blanks in place of code, which ends at the next run of as many backticks.
function withoutCode(text: string): string {
  const runs = [...text.matchAll(/`+/g)].map((each) => ({ at: each.index!, length: each[0].length }));
  const next = new Map<number, number>(); // the next run, by length
  const closes = runs.map(() => -1);
  for (let i = runs.length - 1; i >= 0; i--) {
    closes[i] = next.get(runs[i]!.length) ?? -1;
    next.set(runs[i]!.length, i);
  }
  let plain = "", from = 0;
  for (let i = 0; i < runs.length; i++) {
    const end = runs[closes[i]!];
    if (!end) continue;
    plain = (plain + text.slice(from, runs[i]!.at)).padEnd(end.at + end.length);
    from = end.at + end.length;
    i = closes[i]!;
  }
  return plain + text.slice(from);
}

function closeMarks(text: string, isEnd: boolean): string {
  const plain = withoutCode(text).replace(/\\[*_~]/g, "  ");
  const open: string[] = [];
  for (const match of plain.matchAll(/\*\*\*|\*\*|\*|~~|__/g)) {
    const mark = match[0];
    const before = plain[match.index! - 1] ?? " ", after = plain[match.index! + mark.length] ?? " ";
    if (mark === "*" && /^\s*$/.test(plain.slice(plain.lastIndexOf("\n", match.index) + 1, match.index)) && after === " ") continue; // the bullet of a list
    if (open[open.length - 1] === mark && before !== " ") open.pop();
    else if (/\S/.test(after) || (isEnd && match.index! + mark.length === plain.length)) open.push(mark);
  }
  if (open.length === 0) return text;
  let rest = text;
  // A mark at the very end has no content yet.
  const last = open[open.length - 1]!;
  if (isEnd && rest.endsWith(last)) rest = rest.slice(0, -last.length), open.pop();
  const space = rest.slice(rest.trimEnd().length);
  // Half of a closing mark is not a separate mark.
  if (isEnd && open.includes("**") && /[^*]\*$/.test(rest) && open[open.length - 1] === "*") rest = rest.slice(0, -1), open.pop();
  return rest.slice(0, rest.length - space.length) + open.reverse().join("") + space;
}
