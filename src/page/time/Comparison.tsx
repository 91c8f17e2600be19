import { useEffect, useRef } from "react";
import { Words } from "../chat/Diff";
import { diffWords, Part } from "../chat/lines";
import { textOf, Turn } from "../store/turn";
import { t } from "../texts";

// Two versions side by side, turn by turn; what differs is marked.
export function Comparison({ turns, first, second }: { turns: Map<string, Turn>; first: Turn; second: Turn }) {
  const left = pathTo(turns, first), right = pathTo(turns, second);
  let common = 0;
  while (common < left.length && left[common] === right[common]) common++;
  const rows = Array.from({ length: Math.max(left.length, right.length) - common }, (_, i) => common + i);
  const place = useRef<HTMLElement>(null);
  useEffect(() => void place.current?.scrollIntoView({ block: "nearest" }), [first, second]); // it stands below a map of any length
  return (
    <section ref={place} className="comparison" data-testid="comparison" aria-label={t.compare}>
      <header><h3>{t.compare}</h3>{common > 0 && <p className="hint">{t.inCommon(common)}</p>}</header>
      {rows.length === 0 && <p className="both faint">{t.sameVersion}</p>}
      {rows.map((at) => <Pair key={at} number={at + 1} left={left[at]} right={right[at]} />)}
    </section>
  );
}

function Pair({ number, left, right }: { number: number; left: Turn | undefined; right: Turn | undefined }) {
  const asked = diffWords(left?.message ?? "", right?.message ?? "");
  const said = diffWords(left ? textOf(left, false, "\n") : "", right ? textOf(right, false, "\n") : "");
  const side = (turn: Turn | undefined, drops: Part["kind"]): JSX.Element => (turn ? (
    <div className="side" data-testid={drops === "added" ? "left" : "right"} dir="auto">
      <h4>{t.turnNumber(number)}</h4>
      <strong><Words parts={asked} drops={drops} /></strong>
      {"\n\n"}<Words parts={said} drops={drops} />
    </div>
  ) : <div className="side nothing">{t.noSuchTurn}</div>);
  return <>{side(left, "added")}{side(right, "removed")}</>;
}

function pathTo(turns: Map<string, Turn>, leaf: Turn): Turn[] {
  const path: Turn[] = [];
  for (let at: Turn | undefined = leaf; at; at = at.parent ? turns.get(at.parent) : undefined) path.push(at);
  return path.reverse();
}
