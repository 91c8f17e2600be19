import { RefObject, useEffect, useLayoutEffect, useReducer, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { ListWindow, Place, Row } from "./window";

interface Options {
  scroller: string; // selector of the scrolling box around the list
  heights?: Map<string, number>;
  leads?: Int32Array | null;
  sticks?: boolean;
  place?: Place;
}

// For a list of which only the rows near the window are drawn: its window, the indexes of those rows, and the ref of the
// element to put them in. Each row's element has its key, kind and guess in data-row, data-kind and data-guess.
export function useWindow(rows: readonly Row[], options: Options): [ListWindow, number[], RefObject<HTMLDivElement>] {
  const root = useRef<HTMLDivElement>(null);
  const [window] = useState(() => new ListWindow(options.heights ?? new Map(), options.sticks ?? false, options.place));
  const [, draw] = useReducer((n: number) => n + 1, 0);
  const drawing = useRef(false); // whether React is rendering, so that it draws again by itself before the frame is shown
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
