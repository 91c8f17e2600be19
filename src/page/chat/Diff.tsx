import { useMemo } from "react";
import { t } from "../texts";
import { changes, diff } from "./lines";
import { Gap, Visible } from "./Visible";

const SIGN = { same: " ", added: "+", removed: "−", gap: " " };

// A change of a file, line by line. Line numbers are drawn by CSS, so copied text does not include them.
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

export function ChangeCount({ before, after }: { before: string; after: string }) {
  const { added, removed } = useMemo(() => changes(diff(before, after)), [before, after]);
  return <span className="change-count" aria-label={t.changeCount(added, removed)}><span className="good">+{added}</span> <span className="bad">−{removed}</span></span>;
}
