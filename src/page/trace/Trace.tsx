import { useEffect, useState } from "react";
import { store, useStore } from "../store/store";
import type { ToolBlock, Turn } from "../store/turn";
import { seconds } from "../chat/ToolCard";
import { t } from "../texts";
import type { Audit } from "../wire";
import { get } from "../wire/api";

const MOST = 500;

// What really happened: every event as it came, how long each round and tool took, and the audit log.
export function Trace() {
  useStore();
  const turns = store.branch();
  const [chosen, setChosen] = useState<string | null>(null);
  const turn = turns.find((each) => each.id === chosen) ?? turns[turns.length - 1];
  if (!turn) return null;
  return (
    <section className="panel" data-testid="trace" aria-label={t.trace}>
      <h2>{t.trace}</h2>
      <select aria-label={t.trace} value={turn.id} onChange={(e) => setChosen(e.target.value)}>{turns.map((each) => <option key={each.id}>{each.id}</option>)}</select>
      <h3>{t.waterfall}</h3>
      <Waterfall turn={turn} />
      <h3>{t.events}</h3>
      <ol className="events">
        {turn.events.slice(-MOST).map((event) => <li key={event.seq}><details><summary><span className="faint">{event.seq}</span> {event.type} <span className="faint">{"at" in event ? event.at.slice(11, 23) : ""}</span></summary><pre tabIndex={0}>{JSON.stringify(event, null, 2)}</pre></details></li>)}
      </ol>
      <AuditLines turn={turn} />
    </section>
  );
}

interface Bar {
  label: string;
  from: number;
  to: number;
  kind: string;
}

function barsOf(turn: Turn): Bar[] {
  const bars: Bar[] = [];
  let from = turn.createdAt ? Date.parse(turn.createdAt) : 0;
  for (const event of turn.events) {
    if (event.type === "USAGE") {
      const to = Date.parse(event.at);
      bars.push({ label: `${event.round_index + 1}`, from, to, kind: "round" });
    }
    if (event.type === "TOOL_RESULT") from = Date.parse(event.at);
  }
  for (const block of turn.blocks) {
    if (block.kind === "tool" && block.from > 0 && block.to > 0) bars.push({ label: (block as ToolBlock).name, from: block.from, to: block.to, kind: "call" });
  }
  return bars.sort((a, b) => a.from - b.from);
}

function Waterfall({ turn }: { turn: Turn }) {
  const bars = barsOf(turn);
  if (bars.length === 0) return null;
  const begin = Math.min(...bars.map((bar) => bar.from));
  const end = Math.max(...bars.map((bar) => bar.to), begin + 1);
  return (
    <svg className="waterfall" role="img" aria-label={t.waterfall} viewBox={`0 0 1000 ${bars.length * 24}`} height={bars.length * 24}>
      {bars.map((bar, i) => {
        const x = (1000 * (bar.from - begin)) / (end - begin);
        const width = Math.max(2, (1000 * (bar.to - bar.from)) / (end - begin));
        return (
          <g key={i}>
            <rect className={bar.kind} x={x} y={i * 24 + 3} width={width} height={18} rx={3} />
            <text x={Math.min(x + 4, 800)} y={i * 24 + 17}>{`${bar.label} ${seconds(bar.to - bar.from)}`}</text>
          </g>
        );
      })}
    </svg>
  );
}

function AuditLines({ turn }: { turn: Turn }) {
  const [lines, setLines] = useState<Audit["entries"]>([]);
  useEffect(() => {
    void get<Audit>("/audit?limit=1000").then((audit) => setLines(audit.entries.filter((each) => (each as { chat_id?: string; interaction_id?: string }).chat_id === turn.chat
      && (each as { interaction_id?: string }).interaction_id === turn.id)), () => undefined);
  }, [turn.chat, turn.id, turn.events.length]);
  if (lines.length === 0) return null;
  return <><h3>{t.audit}</h3><ul className="events">{lines.map((line, i) => <li key={i}><code>{JSON.stringify(line)}</code></li>)}</ul></>;
}
