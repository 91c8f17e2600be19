import { useEffect, useMemo, useRef, useState } from "react";
import { useKept } from "../list/Rows";
import { showBeside } from "../store/navigation";
import { t } from "../texts";
import { partsOf, spelled, Visible } from "../chat/hidden";
import { coloured as colours } from "../markdown/colours";
import { Icon } from "./Icon";
import { runsOf } from "./terminal";

const FIRST = 20_000; // characters shown at first
const HEAD = 6_000; // of these at the start, if the end is shown too

const LANGUAGES: Record<string, string> = {
  py: "python", js: "javascript", mjs: "javascript", ts: "typescript", tsx: "typescript", jsx: "javascript", cc: "cpp", cpp: "cpp", h: "cpp", hpp: "cpp", c: "cpp",
  sh: "bash", bash: "bash", shell: "bash", yml: "yaml", yaml: "yaml", md: "markdown", html: "xml", xml: "xml", svg: "xml", rs: "rust", go: "go", java: "java",
  json: "json", css: "css", sql: "sql", python: "python",
};
export const languageOf = (name: string): string => LANGUAGES[name.split(".").pop()?.toLowerCase() ?? ""] ?? "";

interface Props {
  text: string;
  language?: string;
  from?: number; // number of the first line; none: no line numbers
  isTerminal?: boolean; // a program's output: in its colours, and shortened in the middle
  live?: boolean; // it grows, and its end stays in view until the reader scrolls up
  label?: string;
  testid?: string;
}

// A text as it is, coloured if its language is known.
export function Code({ text, language = "", from, isTerminal = false, live = false, label = t.output, testid }: Props) {
  const [all, setAll] = useKept("all", false);
  const [coloured, setColoured] = useState<string | null>(null);
  const place = useRef<HTMLPreElement>(null);
  const stays = useRef(true);
  const isCut = !all && text.length > FIRST;
  const shown = !isCut ? text : live ? text.slice(-FIRST) : isTerminal ? text.slice(0, HEAD) : text.slice(0, FIRST);
  const end = isCut && isTerminal && !live ? text.slice(HEAD - FIRST) : "";
  useEffect(() => {
    let current = true;
    setColoured(null);
    if (language && !live && partsOf(shown).length === 1) void colours(spelled(shown), language).then((html) => current && setColoured(html));
    return () => {
      current = false;
    };
  }, [shown, language, live]);
  useEffect(() => {
    const box = place.current;
    if (live && box && stays.current) box.scrollTop = box.scrollHeight;
  }, [live, shown]);
  return (
    <>
      <pre ref={place} className={from === undefined ? "output" : "output numbered"} tabIndex={0} aria-label={label} data-testid={testid} onScroll={(e) => {
        const box = e.currentTarget;
        stays.current = box.scrollHeight - box.scrollTop - box.clientHeight < 30;
      }}>
        {from !== undefined && <span className="gutter" aria-hidden="true" data-numbers={numbers(from, shown)} />}
        {coloured !== null ? <code dangerouslySetInnerHTML={{ __html: coloured }} /> : <code>{isTerminal ? <Written output={shown} /> : from === undefined ? <Visible text={shown} /> : spelled(shown)}</code>}
        {end !== "" && <><span className="gap" data-testid="left-out">{t.leftOut(text.length - FIRST)}</span><code><Written output={end} /></code></>}
      </pre>
      {isCut && (
        <div className="row">
          <button type="button" className="quiet" onClick={() => setAll(true)}>{t.showAll(text.length)}</button>
          <button type="button" className="quiet" data-testid="read-beside" onClick={() => showBeside({ kind: "text", title: label, text })}><Icon name="panel" size={15} />{t.openBeside}</button>
        </div>
      )}
    </>
  );
}

function Written({ output }: { output: string }) {
  const runs = useMemo(() => runsOf(output), [output]);
  return <>{runs.map((run, i) => (run.style === "" ? <Visible key={i} text={run.text} /> : <span key={i} className={run.style}><Visible text={run.text} /></span>))}</>;
}

function numbers(from: number, text: string): string {
  const count = text.replace(/\n$/, "").split("\n").length;
  return Array.from({ length: count }, (_, i) => from + i).join("\n");
}
