import { createContext, ReactNode, RefObject, useContext, useEffect, useLayoutEffect, useReducer, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { ListWindow, Place, Row } from "./window";

interface Props<T extends Row> {
  rows: readonly T[];
  scroller: string; // selector of the scrolling box
  values: Map<string, unknown>; // kept state of rows
  className?: string;
  label?: string;
  children: (row: T, index: number) => ReactNode;
}

// A list of any length in a scrolling box, which may hold other content before and after it.
export function Rows<T extends Row>({ rows, scroller, values, className, label, children }: Props<T>) {
  const [window, shown, root] = useWindow(rows, { scroller });
  const drawn: ReactNode[] = [];
  let at = 0;
  for (const index of shown) {
    const row = rows[index]!;
    const gap = window.height(at, index);
    if (gap > 0) drawn.push(<div key={`gap-${row.key}`} role="presentation" style={{ height: gap }} />);
    drawn.push(
      <div key={row.key} role="listitem" className="row-box" data-row={row.key} data-kind={row.kind} data-guess={row.guess} aria-setsize={rows.length} aria-posinset={index + 1}>
        <MemoryOfRow.Provider value={{ key: row.key, values }}>{children(row, index)}</MemoryOfRow.Provider>
      </div>,
    );
    at = index + 1;
  }
  const rest = window.height(at, rows.length);
  return (
    <div ref={root} data-list="" role="list" aria-label={label} className={className}>
      {drawn}
      {rest > 0 && <div key="gap-end" role="presentation" style={{ height: rest }} />}
    </div>
  );
}

interface Options {
  scroller: string; // selector of the scrolling box around the list
  heights?: Map<string, number>;
  leads?: Int32Array | null;
  waits?: readonly string[]; // keys of rows that wait for a person
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
  window.setRows(rows, options.leads ?? null, options.waits);
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

// The state of a row that outlives its element: whether it is open, and the text typed into it.
interface Memory {
  key: string;
  values: Map<string, unknown>;
}
export const MemoryOfRow = createContext<Memory | null>(null);

// Like useState, but in a list the value survives when the row is scrolled away.
export function useKept<T>(name: string, initial: T | (() => T)): [T, (value: T) => void] {
  const memory = useContext(MemoryOfRow);
  const at = memory && `${memory.key}:${name}`;
  const [value, set] = useState<T>(() => (at && memory.values.has(at) ? (memory.values.get(at) as T) : typeof initial === "function" ? (initial as () => T)() : initial));
  return [value, (next: T) => {
    if (at) memory.values.set(at, next);
    set(next);
  }];
}
