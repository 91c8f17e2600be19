import { useMemo, useState } from "react";
import { Visible } from "../chat/hidden";
import { Rows } from "../list/Rows";
import type { Row } from "../list/window";

const LINES = 100; // in a row of the list

interface Part extends Row {
  text: string;
}

// A text of any length, of which only the part near the window is in the document.
export function LongText({ text }: { text: string }) {
  const [values] = useState(() => new Map<string, unknown>());
  const parts = useMemo(() => {
    const lines = text.split("\n");
    return Array.from({ length: Math.ceil(lines.length / LINES) }, (_, i): Part => {
      const part = lines.slice(i * LINES, (i + 1) * LINES);
      return { key: `part-${i}`, kind: "text", guess: part.length * 20, text: part.join("\n") };
    });
  }, [text]);
  return <Rows rows={parts} scroller=".beside-body" values={values}>{(part) => <pre className="plain-part"><Visible text={part.text} /></pre>}</Rows>;
}
