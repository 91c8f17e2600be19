import { useEffect, useMemo, useState } from "react";
import { titleOf } from "../chat/values";
import { Rows, useKept } from "../list/Rows";
import type { Row } from "../list/window";
import { duration } from "../parts/time";
import { need, useBranch } from "../store/cache";
import { navigation } from "../store/navigation";
import { useSelect } from "../store/state";
import { AgentEvent, timeOf, Turn } from "../store/turn";
import { t } from "../texts";
import { v } from "../texts_of_views";
import type { Audit, AuditEntry } from "../wire";
import { get } from "../wire/api";
import { RequestList } from "./RequestList";

// The raw record: every event as it came, the duration of each round and tool, and the audit log.
export function Trace() {
  const turns = useBranch();
  const { traced: chosen } = navigation.use("traced");
  const turn = turns.find((each) => each.id === chosen) ?? turns[turns.length - 1];
  useSelect(() => turn?.version);
  useEffect(() => {
    if (turn && !turn.held) void need(turn);
  });
  if (!turn) return <p className="panel empty">{v.noTrace}</p>;
  return (
    <section className="panel" data-testid="trace" aria-label={t.trace}>
      <div className="row"><h2 className="grow">{t.trace}</h2>
        <select aria-label={v.turn} data-testid="trace-turn" value={turn.id} onChange={(e) => navigation.set({ traced: e.target.value })}>{turns.map((each, i) => <option key={each.id} value={each.id}>{`${i + 1}. ${(each.message || "–").slice(0, 60)}`}</option>)}</select>
      </div>
      <h3>{v.waterfall}</h3>
      <Waterfall bars={barsOf(turn)} />
      <RequestList turn={turn} />
      <Events turn={turn} />
      <AuditLines turn={turn} />
    </section>
  );
}

function Events({ turn }: { turn: Turn }) {
  const [query, setQuery] = useState("");
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const [values] = useState(() => new Map<string, unknown>());
  const texts = useMemo(() => new Map<AgentEvent, string>(), [turn]);
  const textOf = (event: AgentEvent): string => {
    let text = texts.get(event);
    if (text === undefined) texts.set(event, (text = JSON.stringify(event)));
    return text;
  };
  const found = turn.events.filter((event) => words.length === 0 || words.every((word) => textOf(event).toLowerCase().includes(word)));
  return (
    <>
      <div className="row"><h3 className="grow">{v.events} <span className="badge" data-testid="event-count">{words.length > 0 ? `${found.length}/${turn.events.length}` : turn.events.length}</span></h3>
        <input type="search" aria-label={v.filterEvents} placeholder={v.filterEvents} data-testid="filter-events" value={query} onChange={(e) => setQuery(e.target.value)} /></div>
      <Rows key={turn.id} className="events" label={v.events} scroller=".panel" values={values} rows={found.map(rowOf)}>{(row) => <EventLine event={row.event} />}</Rows>
    </>
  );
}

interface EventRow extends Row {
  event: AgentEvent;
}
const rows = new WeakMap<AgentEvent, EventRow>();

function rowOf(event: AgentEvent): EventRow {
  let row = rows.get(event);
  if (!row) rows.set(event, (row = { key: `event-${event.seq}`, kind: "event", guess: 28, event }));
  return row;
}

function EventLine({ event }: { event: AgentEvent }) {
  const [open, setOpen] = useKept("open", false);
  return (
    <details data-testid="event" open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary><span className="faint seq">{event.seq}</span><span className="type">{event.type}</span><span className="what">{gist(event)}</span><span className="faint number">{"at" in event ? event.at.slice(11, 23) : ""}</span></summary>
      {open && <pre tabIndex={0}>{JSON.stringify(event, null, 2)}</pre>}
    </details>
  );
}

// The event's most telling member, in one line.
function gist(event: AgentEvent): string {
  const each = event as unknown as Record<string, unknown>;
  if (event.type === "USAGE") return t.meterTip(event.input_tokens, event.output_tokens);
  const text = [each.tool_name, each.tool_output ?? each.tool_input ?? each.content ?? each.message ?? each.question ?? each.status].filter((part) => typeof part === "string").join(" ");
  return text.slice(0, 160).replace(/\s+/g, " ");
}

function AuditLines({ turn }: { turn: Turn }) {
  const [lines, setLines] = useState<AuditEntry[]>([]);
  useEffect(() => {
    void get<Audit>("/audit?limit=1000").then((audit) => setLines(audit.entries.filter((each) => each.chat_id === turn.chat && each.interaction_id === turn.id)), () => undefined);
  }, [turn.chat, turn.id, turn.status]);
  if (lines.length === 0) return null;
  return (
    <>
      <h3>{v.audit}</h3>
      <p className="hint">{v.auditHint}</p>
      <div className="scroll" tabIndex={0} role="region" aria-label={v.audit}>
        <table className="audit" data-testid="audit">
          <thead><tr>{v.auditColumns.map((name) => <th key={name} scope="col">{name}</th>)}</tr></thead>
          <tbody>
            {lines.map((line) => (
              <tr key={line.seq} title={JSON.stringify(line)}>
                <td className="number">{line.at.slice(11, 23)}</td><td>{line.event}</td><td>{titleOf(line.tool_name)}</td><td>{[line.reason, line.is_error ? t.failed : "", line.exit_status !== undefined ? v.exitOf(line.exit_status) : ""].filter(Boolean).join(", ")}</td>
                <td className="number">{line.duration_ms !== undefined ? duration(line.duration_ms) : ""}</td><td><code title={line.arguments_digest}>{line.arguments_digest.slice(0, 19)}…</code></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

interface Bar {
  label: string;
  from: number;
  to: number;
  kind: "round" | "call" | "wait";
  at: number;  // the index of the event that began it, which orders bars of the same millisecond
}

// Events of a model's answer, and those that can end its request. USAGE comes only after the answer's calls have run.
const ANSWERS = ["THINKING", "MESSAGE", "ANSWER"];
const ENDS = [...ANSWERS, "APPROVAL_REQUIRED", "TOOL_CALL", "ERROR", "CANCELLED"];

// A bar for each request to the model, each wait for a person and each tool, with its times.
function barsOf(turn: Turn): Bar[] {
  const bars: Bar[] = [];
  let from = turn.createdAt ? Date.parse(turn.createdAt) : 0, after = -1;
  const rounds = new Map<number, Bar>();
  const waits = new Map<string, Bar>();
  const calls = new Map<string, number>();
  for (const [at, event] of turn.events.entries()) {
    const round = rounds.get(event.round_index);
    if (!round && ENDS.includes(event.type)) rounds.set(event.round_index, { label: v.round(event.round_index + 1), from, to: timeOf(event), kind: "round", at: after });
    else if (round && ANSWERS.includes(event.type)) round.to = timeOf(event);
    if (event.type === "TOOL_CALL") calls.set(event.id, at);
    if (event.type === "TOOL_RESULT") from = timeOf(event), after = at;
    if (event.type === "APPROVAL_REQUIRED") waits.set(event.approval_id, { label: v.waitOf(titleOf(event.tool_name)), from: timeOf(event), to: timeOf(event), kind: "wait", at });
    if (event.type === "INPUT_REQUIRED") waits.set(event.request_id, { label: v.waitOf(v.question), from: timeOf(event), to: timeOf(event), kind: "wait", at });
    if (event.type === "APPROVED" || event.type === "REJECTED" || event.type === "INPUT_RECEIVED") {
      const bar = waits.get("approval_id" in event ? event.approval_id : event.request_id);
      if (bar) bar.to = timeOf(event);
    }
  }
  bars.push(...rounds.values(), ...waits.values());
  for (const block of turn.blocks) {
    if (block.kind === "tool" && block.from > 0 && block.to > 0) bars.push({ label: titleOf(block.name), from: block.from, to: block.to, kind: "call", at: calls.get(block.id) ?? 0 });
  }
  return bars.sort((a, b) => a.from - b.from || a.at - b.at);
}

function Waterfall({ bars }: { bars: Bar[] }) {
  const [values] = useState(() => new Map<string, unknown>());
  if (bars.length === 0) return null;
  let begin = Infinity, end = 0;
  for (const bar of bars) begin = Math.min(begin, bar.from), end = Math.max(end, bar.to);
  const whole = Math.max(end, begin + 1) - begin;
  const rows = bars.map((bar, i) => ({ key: `bar-${i}`, kind: "bar", guess: 24, bar }));
  return (
    <>
      <p className="legend">{(["round", "call", "wait"] as const).map((kind) => <span key={kind}><i className={kind} />{v.bars[kind]}</span>)}</p>
      <div data-testid="waterfall">
        <Rows className="waterfall" label={v.waterfall} scroller=".panel" values={values} rows={rows}>
          {({ bar }) => {
            const x = (1000 * (bar.from - begin)) / whole;
            const width = Math.max(4, (1000 * (bar.to - bar.from)) / whole);
            return (
              <div className="bar-row">
                <span className="label" title={bar.label}>{bar.label}</span>
                <svg viewBox="0 0 1000 16" preserveAspectRatio="none" aria-hidden="true"><rect className={bar.kind} x={Math.min(x, 996)} y="2" width={width} height="12" rx="3"><title>{`+${duration(bar.from - begin)}`}</title></rect></svg>
                <span className="number">{duration(bar.to - bar.from)}</span>
              </div>
            );
          }}
        </Rows>
      </div>
    </>
  );
}
