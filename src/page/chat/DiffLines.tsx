import { Fragment, ReactNode, useEffect, useMemo, useState } from "react";
import { useKept } from "../list/Rows";
import { coloured } from "../markdown/colours";
import { languageOf } from "../parts/Code";
import { navigation } from "../store/navigation";
import { t } from "../texts";
import { v } from "../texts_of_views";
import { Gap, hasHidden, partsOf, Visible } from "./hidden";
import { diffWords, Line } from "./lines";

const SIGN = { same: " ", added: "+", removed: "−", gap: " " };
const LONGEST = 2_000; // characters of a line that is compared word by word

// A piece of a line: with a class of its language's colours, and marked if it is what differs in the line.
interface Piece {
  text: string;
  colour?: string;
  marked?: boolean;
}

interface Props {
  lines: Line[];
  numbered: boolean;
  path: string; // whose name tells the language
}

// The lines of a change, in one column or in two. Line numbers are drawn by CSS, so copied text does not include them.
export function DiffLines({ lines, numbered, path }: Props) {
  const { splitDiffs } = navigation.use("splitDiffs");
  const [open, setOpen] = useKept<readonly number[]>("gaps", []);
  const all = useMemo(() => lines.flatMap((line) => line.hidden ?? [line]), [lines]);
  const colours = useColours(all, languageOf(path));
  const marks = useMemo(() => marksOf(all), [all]);
  const width = String(all.reduce((most, line) => Math.max(most, line.before ?? 0, line.after ?? 0), 0)).length;
  const number = (n: number | undefined): string => String(n ?? "").padStart(width);
  const words = (line: Line): ReactNode => {
    if (line.empty) return <Gap lines={line.empty} />;
    if (partsOf(line.text).some((part) => part.lines + part.blanks > 0) || hasHidden(line.text)) return <Visible text={line.text} />;
    return <Pieces pieces={joined(colours?.get(line) ?? [{ text: line.text }], marks.get(line) ?? [])} />;
  };
  const shown = lines.flatMap((line, i): [Line, number][] => (line.hidden && open.includes(i) ? line.hidden.map((each) => [each, -1]) : [[line, i]]));
  const gap = (line: Line, at: number): ReactNode => (
    <span key={`gap-${at}`} className="gap">{line.hidden ? <button type="button" className="quiet tiny" data-testid="open-gap" aria-label={v.openGap(line.hidden.length)} onClick={() => setOpen([...open, at])}>{line.text}</button> : line.text}{"\n"}</span>
  );
  const hasBoth = all.some((line) => line.kind === "removed") && all.some((line) => line.kind === "added");
  return (
    <>
      {hasBoth && <button type="button" className="quiet tiny split-toggle" data-testid="split-diff" aria-pressed={splitDiffs} onClick={() => navigation.set({ splitDiffs: !splitDiffs })}>{splitDiffs ? v.unified : v.split}</button>}
      <pre className={`lines${numbered ? " numbered" : ""}${splitDiffs && hasBoth ? " sides" : ""}`} tabIndex={0} aria-label={t.change}>
        {splitDiffs && hasBoth ? pairsOf(shown).map(([left, right, at], i) => (
          left.kind === "gap" ? gap(left, at) : (
            <span key={i} className="pair">
              {[[left, number(left.before)] as const, [right, number(right.after)] as const].map(([line, n], side) => (
                <span key={side} className={line === NOTHING ? "nothing" : line.kind} data-numbers={numbered ? n : undefined}><span>{line !== NOTHING && words(line)}{"\n"}</span></span>
              ))}
            </span>
          )
        )) : shown.map(([line, at], i) => (
          line.kind === "gap" ? gap(line, at) : (
            <span key={i} className={line.kind} data-numbers={numbered ? `${number(line.before)} ${number(line.after)}` : undefined}><span>{SIGN[line.kind]} {words(line)}{"\n"}</span></span>
          )
        ))}
      </pre>
    </>
  );
}

function Pieces({ pieces }: { pieces: Piece[] }) {
  return <>{pieces.map(({ text, colour, marked }, i) => {
    const shown = colour ? <span className={colour}>{text}</span> : text;
    return marked ? <b key={i} className="differs">{shown}</b> : <Fragment key={i}>{shown}</Fragment>;
  })}</>;
}

// --- two columns
const NOTHING: Line = { kind: "same", text: "" };

function pairsOf(shown: [Line, number][]): [Line, Line, number][] {
  const pairs: [Line, Line, number][] = [];
  for (let i = 0; i < shown.length;) {
    const [line, at] = shown[i]!;
    if (line.kind === "same" || line.kind === "gap") pairs.push([line, line, at]), i++;
    else {
      const run = (kind: Line["kind"]): Line[] => {
        const from = i;
        while (i < shown.length && shown[i]![0].kind === kind) i++;
        return shown.slice(from, i).map(([each]) => each);
      };
      const left = run("removed"), right = run("added");
      for (let k = 0; k < Math.max(left.length, right.length); k++) pairs.push([left[k] ?? NOTHING, right[k] ?? NOTHING, -1]);
    }
  }
  return pairs;
}

// --- what differs within a line that was changed
function marksOf(lines: Line[]): Map<Line, { text: string; marked: boolean }[]> {
  const found = new Map<Line, { text: string; marked: boolean }[]>();
  for (const [left, right] of pairsOf(lines.map((line) => [line, -1]))) {
    if (left.kind !== "removed" || right.kind !== "added" || left.text.length + right.text.length > LONGEST) continue;
    const parts = diffWords(left.text, right.text);
    const same = parts.reduce((sum, part) => sum + (part.kind === "same" ? part.text.trim().length : 0), 0);
    if (3 * same < Math.min(left.text.trim().length, right.text.trim().length)) continue; // another line altogether
    const of = (kind: "removed" | "added") => parts.filter((part) => part.kind === "same" || part.kind === kind).map(({ text, kind: own }) => ({ text, marked: own === kind }));
    found.set(left, of("removed"));
    found.set(right, of("added"));
  }
  return found;
}

// The coloured pieces, cut where marks begin and end.
function joined(pieces: Piece[], marks: { text: string; marked: boolean }[]): Piece[] {
  if (marks.length === 0) return pieces;
  const cut: Piece[] = [];
  let at = 0, used = 0; // the mark, and how much of it has gone
  for (const piece of pieces) {
    for (let rest = piece.text; rest !== "";) {
      const mark = marks[at];
      const length = mark ? Math.min(rest.length, mark.text.length - used) : rest.length;
      cut.push({ ...piece, text: rest.slice(0, length), marked: mark?.marked });
      rest = rest.slice(length);
      used += length;
      if (mark && used >= mark.text.length) at++, (used = 0);
    }
  }
  return cut;
}

// --- the colours of the language
function useColours(lines: Line[], language: string): Map<Line, Piece[]> | null {
  const [colours, setColours] = useState<Map<Line, Piece[]> | null>(null);
  useEffect(() => {
    setColours(null);
    if (!language || lines.some((line) => line.empty)) return undefined;
    let current = true;
    void Promise.all(["added", "removed"].map(async (other): Promise<[Line, Piece[]][]> => {
      const own = lines.filter((line) => line.kind !== other);
      const html = await coloured(own.map((line) => line.text).join("\n"), language);
      const found = html === null ? null : linesOf(html);
      return found?.length === own.length ? own.map((line, i) => [line, found[i]!]) : [];
    })).then((sides) => current && setColours(new Map(sides.flat())));
    return () => {
      current = false;
    };
  }, [lines, language]);
  return colours;
}

// The pieces of each line of coloured HTML, in which all text is escaped.
function linesOf(html: string): Piece[][] {
  const lines: Piece[][] = [[]];
  const walk = (node: Node, colour: string): void => {
    if (node instanceof Element) return node.childNodes.forEach((each) => walk(each, node.className || colour));
    (node.textContent ?? "").split("\n").forEach((text, i) => {
      if (i > 0) lines.push([]);
      if (text !== "") lines[lines.length - 1]!.push({ text, colour });
    });
  };
  new DOMParser().parseFromString(html, "text/html").body.childNodes.forEach((node) => walk(node, ""));
  return lines;
}
