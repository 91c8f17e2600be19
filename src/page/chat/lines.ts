// Lines of two texts, side by side in order: what stays, what goes, what comes.
export interface Line {
  kind: "same" | "added" | "removed" | "gap";
  text: string;
}

const CONTEXT = 3;
const MOST = 4_000_000; // cells of the table; larger changes are shown as a whole

export function diff(before: string, after: string): Line[] {
  const a = before === "" ? [] : before.replace(/\n$/, "").split("\n");
  const b = after === "" ? [] : after.replace(/\n$/, "").split("\n");
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const lines: Line[] = a.slice(0, start).map((text) => ({ kind: "same", text }));
  lines.push(...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)));
  lines.push(...a.slice(a.length - end).map((text): Line => ({ kind: "same", text })));
  return withoutFarLines(lines);
}

function middle(a: string[], b: string[]): Line[] {
  const whole: Line[] = [...a.map((text): Line => ({ kind: "removed", text })), ...b.map((text): Line => ({ kind: "added", text }))];
  if (a.length * b.length > MOST || a.length === 0 || b.length === 0) return whole;
  const width = b.length + 1;
  const longest = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      longest[i * width + j] = a[i] === b[j] ? longest[(i + 1) * width + j + 1]! + 1
        : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!);
    }
  }
  const lines: Line[] = [];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) lines.push({ kind: "same", text: a[i]! }), i++, j++;
    else if (i < a.length && (j === b.length || longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!)) lines.push({ kind: "removed", text: a[i++]! });
    else lines.push({ kind: "added", text: b[j++]! });
  }
  return lines;
}

function withoutFarLines(lines: Line[]): Line[] {
  const near = lines.map((_, i) => lines.slice(Math.max(0, i - CONTEXT), i + CONTEXT + 1).some((line) => line.kind !== "same"));
  const shown: Line[] = [];
  lines.forEach((line, i) => {
    if (near[i]) shown.push(line);
    else if (shown[shown.length - 1]?.kind !== "gap") shown.push({ kind: "gap", text: "⋯" });
  });
  return shown;
}
