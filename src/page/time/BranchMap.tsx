import { useEffect, useRef, useState } from "react";
import { Words } from "../chat/Diff";
import { diffWords, Part } from "../chat/lines";
import { KeptWhatIf } from "../chat/TurnEnds";
import { Icon } from "../parts/Icon";
import { lastTurn, leafOf, useBranch, useOpen } from "../store/cache";
import { byNumber, OpenChat, treeOf } from "../store/open";
import * as requests from "../store/requests";
import { useSelect } from "../store/state";
import { textOf, Turn } from "../store/turn";
import { t } from "../texts";
import { v } from "../texts_of_views";
import { AskedFilesBox } from "./FilesBack";

const ROW = 42; // pixels: the height of a row
const LANE = 20;

// All versions of the chat as a tree. Two of them can be compared.
export function BranchMap() {
  const open = useOpen();
  const turns = useBranch();
  useSelect(() => [open?.shape, open?.turns.size, lastTurn()?.version]);
  const [picked, setPicked] = useState<string[]>([]);
  if (!open || open.turns.size === 0) return <p className="panel empty">{v.noBranches}</p>;
  const rows = rowsOf(open, new Set(turns.map((turn) => turn.id)));
  const width = (Math.max(...rows.map((row) => row.lane)) + 1) * LANE + 8;
  const pick = (id: string): void => setPicked(picked.includes(id) ? picked.filter((each) => each !== id) : [...picked.slice(-1), id]);
  const [first, second] = picked.map((id) => open.turns.get(id));
  return (
    <section className="panel" data-testid="branch-map" aria-label={t.branchMap}>
      <h2>{t.branchMap}</h2>
      <p className="hint">{v.branchHint}</p>
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
              <input type="checkbox" checked={picked.includes(turn.id)} aria-label={v.compareThis(turn.message ?? turn.id)} onChange={() => pick(turn.id)} />
              <button type="button" className="quiet said" data-testid="tree-turn" data-interaction={turn.id} aria-current={shown ? "true" : undefined}
                onClick={() => void requests.moveHead(leafOf(turn))}><span className="title" dir="auto">{turn.message || "–"}</span></button>
              <KeptWhatIf turn={turn} />
              <span className="faint number">{turn.status === "COMPLETED" ? turn.model : v.statuses[turn.status]}</span>
              {!shown && (
                <button type="button" className="quiet square small" data-testid="remove-branch" data-from={turn.id} aria-label={v.removeBranch(turn.id)}
                  title={v.removeBranch(turn.id)} onClick={() => void requests.removeBranch(turn)}><Icon name="trash" size={15} /></button>
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

// The line from a turn to its parent. Other first messages have lines from above the first row.
function edge(from: number, fromAt: number, to: number, toAt: number): string {
  const x0 = x({ lane: from }), x1 = x({ lane: to });
  return from === to ? `M${x0} ${y(fromAt)}V${y(toAt)}` : `M${x0} ${y(fromAt)}V${y(toAt) - ROW}C${x0} ${y(toAt) - ROW / 2} ${x1} ${y(toAt) - ROW / 2} ${x1} ${y(toAt)}`;
}

// Two versions side by side, turn by turn, with the differences marked.
function Comparison({ turns, first, second }: { turns: Map<string, Turn>; first: Turn; second: Turn }) {
  const left = pathTo(turns, first), right = pathTo(turns, second);
  let common = 0;
  while (common < left.length && left[common] === right[common]) common++;
  const rows = Array.from({ length: Math.max(left.length, right.length) - common }, (_, i) => common + i);
  const place = useRef<HTMLElement>(null);
  useEffect(() => void place.current?.scrollIntoView({ block: "nearest" }), [first, second]); // it is below a map of any length
  return (
    <section ref={place} className="comparison" data-testid="comparison" aria-label={v.compare}>
      <header><h3>{v.compare}</h3>{common > 0 && <p className="hint">{v.inCommon(common)}</p>}</header>
      {rows.length === 0 && <p className="both faint">{v.sameVersion}</p>}
      {rows.map((at) => <Pair key={at} number={at + 1} left={left[at]} right={right[at]} />)}
    </section>
  );
}

function Pair({ number, left, right }: { number: number; left: Turn | undefined; right: Turn | undefined }) {
  const asked = diffWords(left?.message ?? "", right?.message ?? "");
  const said = diffWords(left ? textOf(left, false, "\n") : "", right ? textOf(right, false, "\n") : "");
  const side = (turn: Turn | undefined, drops: Part["kind"]): JSX.Element => (turn ? (
    <div className="side" data-testid={drops === "added" ? "left" : "right"} dir="auto">
      <h4>{v.turnNumber(number)}</h4>
      <strong><Words parts={asked} drops={drops} /></strong>
      {"\n\n"}<Words parts={said} drops={drops} />
    </div>
  ) : <div className="side nothing">{v.noSuchTurn}</div>);
  return <>{side(left, "added")}{side(right, "removed")}</>;
}

function pathTo(turns: Map<string, Turn>, leaf: Turn): Turn[] {
  const path: Turn[] = [];
  for (let at: Turn | undefined = leaf; at; at = at.parent ? turns.get(at.parent) : undefined) path.push(at);
  return path.reverse();
}

// The turns of a chat as rows of a drawing, with a lane for each version.
interface TreeRow {
  turn: Turn;
  lane: number;
  parent: number; // its parent's row; -1: it has none
  shown: boolean;
}

function rowsOf(chat: OpenChat, shown: Set<string>): TreeRow[] {
  const children = treeOf(chat);
  const first = [...chat.turns.values()].filter((turn) => turn.parent === null || !chat.turns.has(turn.parent)).sort((a, b) => byNumber(a.id, b.id));
  const rows: TreeRow[] = [];
  const free = { lane: 0 };
  // The oldest version continues in its parent's lane, and each other one opens the next. Not recursive, because chats are long.
  const next: { turn: Turn; lane: number | null; parent: number }[] = [];
  const push = (all: Turn[], lane: number | null, parent: number): void => {
    for (let i = all.length - 1; i >= 0; i--) next.push({ turn: all[i]!, lane: i === 0 ? lane : null, parent });
  };
  push(first, null, -1);
  for (let at = next.pop(); at; at = next.pop()) {
    const lane = at.lane ?? free.lane++;
    rows.push({ turn: at.turn, lane, parent: at.parent, shown: shown.has(at.turn.id) });
    push(children.get(at.turn.id) ?? [], lane, rows.length - 1);
  }
  return rows;
}
