import type { ReactNode } from "react";
import { MemoryOfRow } from "./kept";
import { useWindow } from "./useWindow";
import type { Row } from "./window";

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
