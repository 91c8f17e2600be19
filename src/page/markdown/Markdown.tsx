import { memo, useEffect, useMemo, useRef } from "react";
import { Blocks, toHtml } from "./render";

const Block = memo(function Block({ text, growing }: { text: string; growing?: boolean }) {
  const place = useRef<HTMLDivElement>(null);
  const html = useMemo(() => toHtml(text), [text]);
  useEffect(() => {
    if (!growing && place.current) void decorate(place.current);
  }, [html, growing]);
  return <div ref={place} className="block" dangerouslySetInnerHTML={{ __html: html }} />;
});

// Colours and formulas are fetched when the first of them is shown.
async function decorate(place: HTMLElement): Promise<void> {
  const codes = place.querySelectorAll<HTMLElement>("code[class^=lang-]:not(.done)");
  const formulas = place.querySelectorAll<HTMLElement>(".math:not(.done)");
  if (codes.length > 0) {
    const { highlight } = await import("./highlight");
    for (const code of Array.from(codes)) {
      code.classList.add("done");
      const coloured = highlight(code.textContent ?? "", code.className.match(/lang-(\S+)/)?.[1] ?? "");
      if (coloured !== null) code.innerHTML = coloured;
    }
  }
  if (formulas.length > 0) {
    const { formula } = await import("./formula");
    for (const place of Array.from(formulas)) {
      place.classList.add("done");
      formula(place, place.textContent ?? "", place.classList.contains("block"));
    }
  }
}

// What is finished of a text that grows is not drawn again.
export const Markdown = memo(function Markdown({ text, open }: { text: string; open: boolean }) {
  const blocks = useRef<Blocks>(new Blocks());
  const before = useRef("");
  if (!text.startsWith(before.current)) blocks.current = new Blocks();
  before.current = text;
  const growing = blocks.current.read(text);
  return (
    <div className="markdown" dir="auto">
      {blocks.current.done.map((block, i) => <Block key={i} text={block} />)}
      {growing && <Block key="growing" text={growing} growing={open} />}
    </div>
  );
});
