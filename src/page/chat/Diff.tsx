import { useMemo } from "react";
import { t } from "../texts";
import { changes, diff, Part } from "./lines";
import { Gap, Visible } from "./Visible";

const SIGN = { same: " ", added: "+", removed: "−", gap: " " };

// A change of a file, line by line. The numbers are drawn, not written: who copies the text does not get them.
export function Diff({ before, after, numbered = true }: { before: string; after: string; numbered?: boolean }) {
  const lines = useMemo(() => diff(before, after), [before, after]);
  const width = String(lines.reduce((most, line) => Math.max(most, line.before ?? 0, line.after ?? 0), 0)).length;
  const number = (n: number | undefined): string => String(n ?? "").padStart(width);
  return (
    <pre className={numbered ? "lines numbered" : "lines"} tabIndex={0} aria-label={t.change}>
      {lines.map((line, i) => (
        <span key={i} className={line.kind} data-numbers={numbered && line.kind !== "gap" ? `${number(line.before)} ${number(line.after)}` : undefined}>{SIGN[line.kind]} {line.empty ? <Gap lines={line.empty} /> : <Visible text={line.text} />}{"\n"}</span>
      ))}
    </pre>
  );
}

// Words of two texts in one: with the parts that went, or that came, or both.
export function Words({ parts, drops }: { parts: Part[]; drops?: Part["kind"] }) {
  return (
    <>{parts.map((part, i) => (part.kind === drops ? null : part.kind === "removed" ? <del key={i} className="removed">{part.text}</del>
      : part.kind === "added" ? <ins key={i} className="added">{part.text}</ins> : <span key={i}>{part.text}</span>))}</>
  );
}

export function ChangeCount({ before, after }: { before: string; after: string }) {
  const { added, removed } = useMemo(() => changes(diff(before, after)), [before, after]);
  return <span className="change-count" aria-label={t.changeCount(added, removed)}><span className="good">+{added}</span> <span className="bad">−{removed}</span></span>;
}
