import { memo, useEffect, useLayoutEffect, useRef } from "react";
import { showBeside } from "../store/navigation";
import { t } from "../texts";
import { coloured } from "./colours";
import { morph } from "./morph";
import { Piece, Pieces } from "./pieces";
import { toNodes } from "./render";
import { closed } from "./unfinished";

interface Props {
  kind: Piece["kind"];
  text: string;
  language: string;
  goesOn: boolean;
  growing: boolean;
  copy: () => string; // the whole code that this is a piece of
}

// One piece of a text. A growing one is updated in place.
export const MarkdownPiece = memo(function MarkdownPiece(props: Props) {
  return props.kind === "code" ? <Code {...props} /> : <Prose text={props.text} growing={props.growing} goesOn={props.goesOn} />;
}, (a, b) => a.text === b.text && a.growing === b.growing && a.kind === b.kind && a.goesOn === b.goesOn);

function Prose({ text, growing, goesOn }: { text: string; growing: boolean; goesOn: boolean }) {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (place.current) morph(place.current, toNodes(growing ? closed(text) : text));
  }, [text, growing]);
  useEffect(() => {
    if (!growing && place.current) void decorate(place.current);
  }, [text, growing]);
  return <div ref={place} className={goesOn ? "block goes-on" : "block"} />;
}

const PAGES = /^(html|svg)$/i; // what can be previewed

function Code({ text, language, goesOn, growing, copy }: Props) {
  const place = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const code = place.current;
    if (!code) return;
    const shown = document.createElement("code");
    if (language === "diff") shown.append(...linesOfDiff(text));
    else shown.textContent = text;
    morph(code, shown);
    if (!growing && language && language !== "diff") void colour(code, text, language);
  }, [text, language, growing]);
  return (
    <div className={`block code ${goesOn ? "goes-on" : ""}`}>
      {!goesOn && <div className="code-head"><span className="grow">{language}</span>{!growing && PAGES.test(language) && <button type="button" className="quiet tiny" data-testid="preview-code" onClick={() => showBeside({ kind: "preview", title: language, html: copy() })}>{t.preview}</button>}<button type="button" className="copy" onClick={(e) => {
        e.stopPropagation(); // this element may hold only a part of it
        void copied(e.currentTarget, copy());
      }}>{t.copy}</button></div>}
      <pre tabIndex={0}><code ref={place} /></pre>
    </div>
  );
}

function linesOfDiff(text: string): Node[] {
  return text.split("\n").flatMap((line, i): Node[] => {
    const part = document.createElement("span");
    part.className = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "";
    part.textContent = line;
    return i === 0 ? [part] : [document.createTextNode("\n"), part];
  });
}

export async function copied(button: HTMLElement, text: string): Promise<void> {
  await navigator.clipboard.writeText(text);
  button.textContent = t.copied;
  setTimeout(() => (button.textContent = t.copy), 1500);
}

async function colour(code: HTMLElement, text: string, language: string): Promise<void> {
  const html = await coloured(text, language);
  if (html === null || code.textContent !== text) return;
  const shown = document.createElement("code");
  shown.innerHTML = html;
  code.replaceChildren(...shown.childNodes);
}
async function decorate(place: HTMLElement): Promise<void> {
  const codes = place.querySelectorAll<HTMLElement>("code[class^=lang-]:not(.done)");
  const formulas = place.querySelectorAll<HTMLElement>(".math:not(.done)");
  for (const code of Array.from(codes)) {
    code.classList.add("done");
    await colour(code, code.textContent ?? "", code.className.match(/lang-(\S+)/)?.[1] ?? "");
  }
  if (formulas.length > 0) {
    const { formula } = await import("./formula");
    for (const place of Array.from(formulas)) {
      place.classList.add("done");
      formula(place, place.textContent ?? "", place.classList.contains("block"));
    }
  }
}

// A whole text, for places without a list of rows.
export const Markdown = memo(function Markdown({ text }: { text: string; open: boolean }) {
  const pieces = new Pieces();
  pieces.read(text);
  const all = pieces.growing ? [...pieces.done, pieces.growing] : pieces.done;
  return (
    <div className="markdown" dir="auto">
      {all.map((piece, i) => <MarkdownPiece key={i} {...piece} growing={false} copy={() => piece.text} />)}
    </div>
  );
});
