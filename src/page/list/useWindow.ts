import { RefObject, useEffect, useLayoutEffect, useReducer, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { ListWindow, Place, Row } from "./window";

interface Options {
  scroller: string; // the selector of what scrolls, around the list
  heights?: Map<string, number>;
  leads?: Int32Array | null;
  sticks?: boolean;
  place?: Place;
}

// A list of which only the rows near the window are drawn: the list's window, the numbers of those rows, and where they
// are to stand. A row's element says its key, kind and guess in data-row, data-kind and data-guess.
export function useWindow(rows: readonly Row[], options: Options): [ListWindow, number[], RefObject<HTMLDivElement>] {
  const root = useRef<HTMLDivElement>(null);
  const [window] = useState(() => new ListWindow(options.heights ?? new Map(), options.sticks ?? false, options.place));
  const [, draw] = useReducer((n: number) => n + 1, 0);
  const drawing = useRef(false); // React is at work: it draws again by itself, and before the frame is shown
  drawing.current = true;
  window.setRows(rows, options.leads ?? null);
  const shown = window.shown();
  useLayoutEffect(() => {
    const redraw = (): void => (drawing.current ? draw() : flushSync(draw));
    return window.attach(root.current!.closest<HTMLElement>(options.scroller)!, root.current!, redraw);
  }, [window, options.scroller]);
  useLayoutEffect(() => {
    drawing.current = true;
    window.settle();
    drawing.current = false;
  });
  useEffect(() => {
    drawing.current = false;
  });
  return [window, shown, root];
}
