import { KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { Words } from "../chat/Diff";
import { diffWords, Part } from "../chat/lines";
import { spelled } from "../chat/hidden";
import { BlockList } from "../chat/TurnView";
import { duration } from "../parts/time";
import { Icon } from "../parts/Icon";
import { useKept } from "../list/Rows";
import { attempt } from "../store/state";
import { newTurn, take, timeOf, Turn } from "../store/turn";
import { v } from "../texts_of_views";
import type { ReplayReport } from "../wire";
import { call, turnPath } from "../wire/api";
import { WhatIf } from "./WhatIf";

const STEADY = 400; // ms from event to event
const SPEEDS = ["original", "4", "steady"] as const;
type Speed = (typeof SPEEDS)[number];

// Replays the turn event by event, and checks whether running it again on its record gives the same.
export function ReplayBox({ turn }: { turn: Turn }) {
  const count = turn.events.length;
  const [kept, setAt] = useKept("replay-at", count);
  const at = Math.min(kept, count);
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState<Speed>("original");
  const [report, setReport] = useState<ReplayReport | null>(null);
  const [checking, setChecking] = useState(false);
  const [asking, setAsking] = useKept("asking", false);
  const place = useRef<HTMLElement>(null);
  useEffect(() => void place.current?.scrollIntoView({ block: "nearest" }), []);
  const shown = useMemo(() => {
    const part = newTurn(turn.chat, `${turn.id}/replay`);
    part.message = turn.message;
    for (const event of turn.events.slice(0, at)) take(part, event);
    return part;
  }, [turn, at]);
  useEffect(() => {
    if (!playing) return undefined;
    if (at >= count) {
      setPlaying(false);
      return undefined;
    }
    const apart = Math.max(0, timeOf(turn.events[at]) - timeOf(turn.events[Math.max(0, at - 1)]));
    const timer = setTimeout(() => setAt(at + 1), Math.max(16, speed === "steady" ? STEADY : speed === "4" ? apart / 4 : apart));
    return () => clearTimeout(timer);
  }, [playing, at, turn, speed, count]);
  const step = (by: number): void => {
    setPlaying(false);
    setAt(Math.min(count, Math.max(0, at + by)));
  };
  const play = (): void => {
    if (!playing && at >= count) setAt(0);
    setPlaying(!playing);
  };
  const verify = async (): Promise<void> => {
    setChecking(true);
    await attempt(async () => setReport(await call<ReplayReport>("POST", `${turnPath(turn.chat, turn.id)}/replay`, { mode: "recorded" })));
    setChecking(false);
  };
  const onKey = (e: KeyboardEvent): void => {
    if (e.target instanceof Element && e.target.closest("button, select, .what-if")) return;
    if (e.key === " ") play();
    else if (e.key === "ArrowLeft") step(-1);
    else if (e.key === "ArrowRight") step(1);
    else return;
    e.preventDefault();
  };
  const event = turn.events[at - 1];
  return (
    <section ref={place} className="card replay" data-testid="replay-box" aria-label={v.replayOf} onKeyDown={onKey}>
      <div className="replay-controls">
        <button type="button" className="quiet square" data-testid="replay-back" aria-label={v.stepBack} title={`${v.stepBack} (←)`} disabled={at === 0} onClick={() => step(-1)}><Icon name="back" /></button>
        <button type="button" className="square" data-testid="replay-play" aria-label={playing ? v.pause : v.play} title={playing ? v.pause : v.play} onClick={play}><Icon name={playing ? "pause" : "play"} /></button>
        <button type="button" className="quiet square" data-testid="replay-on" aria-label={v.stepOn} title={`${v.stepOn} (→)`} disabled={at === count} onClick={() => step(1)}><Icon name="forward" /></button>
        <input type="range" data-testid="replay-position" aria-label={v.position} aria-valuetext={`${at}/${count} ${event?.type ?? ""}`} min={0} max={count} value={at} onChange={(e) => {
          setPlaying(false);
          setAt(Number(e.target.value));
        }} />
        <select aria-label={v.speed} data-testid="replay-speed" value={speed} onChange={(e) => setSpeed(e.target.value as Speed)}>{SPEEDS.map((each) => <option key={each} value={each}>{v.speeds[each]}</option>)}</select>
        <button type="button" data-testid="verify" disabled={checking} onClick={() => void verify()}><Icon name="verify" size={16} />{v.verify}</button>
        <button type="button" data-testid="what-if" aria-expanded={asking} onClick={() => setAsking(!asking)}><Icon name="fork" size={16} />{v.whatIfOpen}</button>
      </div>
      <p className="number" data-testid="replay-state">{at}/{count} {event?.type} {at > 0 && `+${duration(timeOf(event) - timeOf(turn.events[0]))}`}</p>
      {report && (report.match ? <p className="good" data-testid="verified"><Icon name="check" size={16} /> {v.verified}</p> : <Divergence report={report} />)}
      {asking ? <WhatIf turn={turn} at={at} /> : <div className="replayed"><BlockList turn={shown} /></div>}
    </section>
  );
}

// The first event that differs: as it was stored, and as it came this time.
function Divergence({ report }: { report: ReplayReport }) {
  const { divergence } = report;
  if (!divergence) return <p className="bad" data-testid="verified">{v.differs}</p>;
  const show = (event: Record<string, unknown> | null): string => (event ? spelled(JSON.stringify(event, null, 2)) : "");
  const parts = diffWords(show(divergence.expected), show(divergence.actual));
  return (
    <div data-testid="verified">
      <p className="bad">{v.differs} {divergence.seq}: {divergence.reason}</p>
      <div className="divergence">
        <Side label={v.expected} testid="expected" drops="added" parts={divergence.expected && parts} />
        <Side label={v.actual} testid="actual" drops="removed" parts={divergence.actual && parts} />
      </div>
    </div>
  );
}

function Side({ label, testid, drops, parts }: { label: string; testid: string; drops: Part["kind"]; parts: Part[] | null }) {
  return (
    <section aria-label={label}>
      <h4>{label}</h4>
      {parts === null ? <p className="faint">{v.noEvent}</p> : <pre tabIndex={0} data-testid={testid}><Words parts={parts} drops={drops} /></pre>}
    </section>
  );
}
