import { useEffect, useRef, useState } from "react";
import { useKept } from "../list/kept";
import { t } from "../texts";
import { spelled } from "../chat/hidden";

const FIRST = 20_000; // characters, before somebody wants more

const LANGUAGES: Record<string, string> = {
  py: "python", js: "javascript", mjs: "javascript", ts: "typescript", tsx: "typescript", jsx: "javascript", cc: "cpp", cpp: "cpp", h: "cpp", hpp: "cpp", c: "cpp",
  sh: "bash", bash: "bash", shell: "bash", yml: "yaml", yaml: "yaml", md: "markdown", html: "xml", xml: "xml", svg: "xml", rs: "rust", go: "go", java: "java",
  json: "json", css: "css", sql: "sql", python: "python",
};
export const languageOf = (name: string): string => LANGUAGES[name.split(".").pop()?.toLowerCase() ?? ""] ?? "";

interface Props {
  text: string;
  language?: string;
  from?: number; // the number of the first line; none: lines have no numbers
  live?: boolean; // it grows: the end is shown as long as the reader does not scroll up
  label?: string;
  testid?: string;
}

// A text as it stands, coloured when its language is known.
export function Code({ text, language = "", from, live = false, label = t.output, testid }: Props) {
  const [all, setAll] = useKept("all", false);
  const [coloured, setColoured] = useState<string | null>(null);
  const place = useRef<HTMLPreElement>(null);
  const stays = useRef(true);
  const shown = spelled(all || text.length <= FIRST ? text : live ? text.slice(-FIRST) : text.slice(0, FIRST));
  useEffect(() => {
    let current = true;
    setColoured(null);
    if (language && !live) void import("../markdown/highlight").then(({ highlight }) => current && setColoured(highlight(shown, language)));
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
        {coloured !== null ? <code dangerouslySetInnerHTML={{ __html: coloured }} /> : <code>{shown}</code>}
      </pre>
      {!all && text.length > FIRST && <button type="button" className="quiet" onClick={() => setAll(true)}>{t.showAll(text.length)}</button>}
    </>
  );
}

function numbers(from: number, text: string): string {
  const count = text.replace(/\n$/, "").split("\n").length;
  return Array.from({ length: count }, (_, i) => from + i).join("\n");
}
