import { useEffect, useRef } from "react";
import { diffWords, Part } from "../chat/lines";
import type { TextBlock, Turn } from "../store/turn";
import { t } from "../texts";

// Two versions side by side, turn by turn, with the differences marked.
export function Comparison({ turns, first, second }: { turns: Map<string, Turn>; first: Turn; second: Turn }) {
  const left = pathTo(turns, first), right = pathTo(turns, second);
  let common = 0;
  while (common < left.length && left[common] === right[common]) common++;
  const rows = Array.from({ length: Math.max(left.length, right.length) - common }, (_, i) => common + i);
  const place = useRef<HTMLElement>(null);
  useEffect(() => void place.current?.scrollIntoView({ block: "nearest" }), [first, second]); // it is below a map of any length
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
  const said = diffWords(left ? answerOf(left) : "", right ? answerOf(right) : "");
  const side = (turn: Turn | undefined, drops: Part["kind"]): JSX.Element => (turn ? (
    <div className="side" data-testid={drops === "added" ? "left" : "right"} dir="auto">
      <h4>{t.turnNumber(number)}</h4>
      <strong><Parts parts={asked} drops={drops} /></strong>
      {"\n\n"}<Parts parts={said} drops={drops} />
    </div>
  ) : <div className="side nothing">{t.noSuchTurn}</div>);
  return <>{side(left, "added")}{side(right, "removed")}</>;
}

function Parts({ parts, drops }: { parts: Part[]; drops: Part["kind"] }) {
  return (
    <>{parts.map((part, i) => (part.kind === drops ? null : part.kind === "removed" ? <del key={i} className="removed">{part.text}</del>
      : part.kind === "added" ? <ins key={i} className="added">{part.text}</ins> : <span key={i}>{part.text}</span>))}</>
  );
}

function pathTo(turns: Map<string, Turn>, leaf: Turn): Turn[] {
  const path: Turn[] = [];
  for (let at: Turn | undefined = leaf; at; at = at.parent ? turns.get(at.parent) : undefined) path.push(at);
  return path.reverse();
}

const answerOf = (turn: Turn): string => turn.blocks.filter((block): block is TextBlock => block.kind === "text").map((block) => block.text).join("\n");
