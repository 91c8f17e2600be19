import { lazy, Suspense, useMemo } from "react";
import { t } from "../texts";
import { changes, diff, Part } from "./lines";

const DiffLines = lazy(() => import("./DiffLines").then((part) => ({ default: part.DiffLines })));

// A change of a file, line by line.
export function Diff({ before, after, numbered = true, path = "" }: { before: string; after: string; numbered?: boolean; path?: string }) {
  const lines = useMemo(() => diff(before, after), [before, after]);
  return <Suspense fallback={<p className="faint">…</p>}><DiffLines lines={lines} numbered={numbered} path={path} /></Suspense>;
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
