import { useEffect, useMemo, useState } from "react";
import { Blocks } from "../chat/TurnView";
import { store } from "../store/store";
import { newTurn, take, Turn } from "../store/turn";
import { t } from "../texts";
import type { ReplayReport } from "../wire";
import { call, turnPath } from "../wire/api";

// The turn once more, event by event, at the pace it had; and whether running it again on its record gives the same.
export function ReplayBox({ turn }: { turn: Turn }) {
  const [at, setAt] = useState(turn.events.length);
  const [playing, setPlaying] = useState(false);
  const [report, setReport] = useState<ReplayReport | null>(null);
  const shown = useMemo(() => {
    const part = newTurn(turn.chat, turn.id);
    part.message = turn.message;
    for (const event of turn.events.slice(0, at)) take(part, event);
    return part;
  }, [turn, at]);
  useEffect(() => {
    if (!playing) return undefined;
    if (at >= turn.events.length) {
      setPlaying(false);
      return undefined;
    }
    const timer = setTimeout(() => setAt(at + 1), Math.min(3000, Math.max(30, timeOf(turn, at) - timeOf(turn, at - 1))));
    return () => clearTimeout(timer);
  }, [playing, at, turn]);
  const verify = (): Promise<boolean> => store.attempt(async () => setReport(await call<ReplayReport>("POST", `${turnPath(turn.chat, turn.id)}/replay`, { mode: "recorded" })));
  return (
    <section className="card replay" data-testid="replay-box" aria-label={t.replayOf}>
      <div className="row">
        <button type="button" data-testid="replay-play" onClick={() => {
          if (!playing && at >= turn.events.length) setAt(0);
          setPlaying(!playing);
        }}>{playing ? t.pause : t.play}</button>
        <input type="range" data-testid="replay-position" aria-label={t.position} min={0} max={turn.events.length} value={at} onChange={(e) => {
          setPlaying(false);
          setAt(Number(e.target.value));
        }} />
        <span className="faint">{at}/{turn.events.length} {turn.events[at - 1]?.type}</span>
        <button type="button" data-testid="verify" onClick={() => void verify()}>{t.verify}</button>
      </div>
      {report && (report.match ? <p className="good" data-testid="verified">{t.verified(report.events)}</p>
        : <div className="bad" data-testid="verified"><p>{t.differs} {report.divergence?.seq}</p><pre>{JSON.stringify(report.divergence, null, 2)}</pre></div>)}
      <div className="replayed"><Blocks turn={shown} running={false} hideTools={false} /></div>
    </section>
  );
}

const timeOf = (turn: Turn, at: number): number => {
  const event = turn.events[Math.max(0, at)];
  return event && "at" in event ? Date.parse(event.at) : 0;
};
