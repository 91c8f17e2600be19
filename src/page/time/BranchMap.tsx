import { useState } from "react";
import { Icon } from "../parts/Icon";
import { lastTurn, leafOf, useBranch, useOpen } from "../store/cache";
import * as requests from "../store/requests";
import { useSelect } from "../store/state";
import { t } from "../texts";
import { AskedFilesBox } from "./AskedFilesBox";
import { Comparison } from "./Comparison";
import { treeOf } from "./tree";

const ROW = 42; // pixels; as the rows are high
const LANE = 20;

// All versions of the chat as a tree; two of them can be compared.
export function BranchMap() {
  const open = useOpen();
  const turns = useBranch();
  useSelect(() => [open?.shape, open?.turns.size, lastTurn()?.version]);
  const [picked, setPicked] = useState<string[]>([]);
  if (!open || open.turns.size === 0) return <p className="panel empty">{t.noBranches}</p>;
  const rows = treeOf(open.turns, new Set(turns.map((turn) => turn.id)));
  const width = (Math.max(...rows.map((row) => row.lane)) + 1) * LANE + 8;
  const pick = (id: string): void => setPicked(picked.includes(id) ? picked.filter((each) => each !== id) : [...picked.slice(-1), id]);
  const [first, second] = picked.map((id) => open.turns.get(id));
  return (
    <section className="panel" data-testid="branch-map" aria-label={t.branchMap}>
      <h2>{t.branchMap}</h2>
      <p className="hint">{t.branchHint}</p>
      <AskedFilesBox />
      <div className="tree">
        <svg className="tree-drawing" aria-hidden="true" width={width} height={rows.length * ROW} viewBox={`0 0 ${width} ${rows.length * ROW}`}>
          {rows.map((row, i) => (row.parent >= 0 || row.lane > 0) && (
            <path key={row.turn.id} className={row.shown ? "tree-edge shown" : "tree-edge"} d={edge(rows[row.parent]?.lane ?? 0, row.parent, row.lane, i)} />
          ))}
          {rows.map((row, i) => (
            <circle key={row.turn.id} className={`tree-dot${row.shown ? " shown" : ""}${row.turn.status === "FAILED" ? " failed" : ""}`} cx={x(row)} cy={y(i)} r="5.5" />
          ))}
        </svg>
        <ul className="tree-list">
          {rows.map(({ turn, shown }) => (
            <li key={turn.id} className={shown ? "node shown" : "node"}>
              <input type="checkbox" checked={picked.includes(turn.id)} aria-label={t.compareThis(turn.message ?? turn.id)} onChange={() => pick(turn.id)} />
              <button type="button" className="quiet said" data-testid="tree-turn" data-interaction={turn.id} aria-current={shown ? "true" : undefined}
                onClick={() => void requests.moveHead(leafOf(turn))}><span className="title" dir="auto">{turn.message || "–"}</span></button>
              <span className="faint number">{turn.status === "COMPLETED" ? turn.model : t.statuses[turn.status]}</span>
              {!shown && (
                <button type="button" className="quiet square small" data-testid="remove-branch" data-from={turn.id} aria-label={t.removeBranch(turn.id)}
                  title={t.removeBranch(turn.id)} onClick={() => void requests.removeBranch(turn)}><Icon name="trash" size={15} /></button>
              )}
            </li>
          ))}
        </ul>
      </div>
      {first && second && <Comparison turns={open.turns} first={first} second={second} />}
    </section>
  );
}

const x = (row: { lane: number }): number => row.lane * LANE + LANE / 2 + 2;
const y = (at: number): number => at * ROW + ROW / 2;

// Other first messages come from above the first row.
function edge(from: number, fromAt: number, to: number, toAt: number): string {
  const x0 = x({ lane: from }), x1 = x({ lane: to });
  return from === to ? `M${x0} ${y(fromAt)}V${y(toAt)}` : `M${x0} ${y(fromAt)}V${y(toAt) - ROW}C${x0} ${y(toAt) - ROW / 2} ${x1} ${y(toAt) - ROW / 2} ${x1} ${y(toAt)}`;
}
