import { useState } from "react";
import { titleOf } from "../chat/values";
import { Rows } from "../list/Rows";
import { duration } from "../parts/duration";
import { timeOf, Turn } from "../store/turn";
import { t } from "../texts";

interface Bar {
  label: string;
  from: number;
  to: number;
  kind: "round" | "call" | "wait";
}

// What a model's answer consists of, and what can come in its place. Its usage is told after its calls have run.
const ANSWERS = ["THINKING", "MESSAGE", "ANSWER"];
const ENDS = [...ANSWERS, "APPROVAL_REQUIRED", "TOOL_CALL", "ERROR", "CANCELLED"];

// Each request to the model, each wait for a person and each tool, in their times.
export function barsOf(turn: Turn): Bar[] {
  const bars: Bar[] = [];
  let from = turn.createdAt ? Date.parse(turn.createdAt) : 0;
  const rounds = new Map<number, Bar>();
  const waits = new Map<string, Bar>();
  for (const event of turn.events) {
    const round = rounds.get(event.round_index);
    if (!round && ENDS.includes(event.type)) rounds.set(event.round_index, { label: t.round(event.round_index + 1), from, to: timeOf(event), kind: "round" });
    else if (round && ANSWERS.includes(event.type)) round.to = timeOf(event);
    if (event.type === "TOOL_RESULT") from = timeOf(event);
    if (event.type === "APPROVAL_REQUIRED") waits.set(event.approval_id, { label: t.waitOf(titleOf(event.tool_name)), from: timeOf(event), to: timeOf(event), kind: "wait" });
    if (event.type === "INPUT_REQUIRED") waits.set(event.request_id, { label: t.waitOf(t.question), from: timeOf(event), to: timeOf(event), kind: "wait" });
    if (event.type === "APPROVED" || event.type === "REJECTED" || event.type === "INPUT_RECEIVED") {
      const bar = waits.get("approval_id" in event ? event.approval_id : event.request_id);
      if (bar) bar.to = timeOf(event);
    }
  }
  bars.push(...rounds.values(), ...waits.values());
  for (const block of turn.blocks) {
    if (block.kind === "tool" && block.from > 0 && block.to > 0) bars.push({ label: titleOf(block.name), from: block.from, to: block.to, kind: "call" });
  }
  return bars.sort((a, b) => a.from - b.from);
}

export function Waterfall({ bars }: { bars: Bar[] }) {
  const [values] = useState(() => new Map<string, unknown>());
  if (bars.length === 0) return null;
  let begin = Infinity, end = 0;
  for (const bar of bars) begin = Math.min(begin, bar.from), end = Math.max(end, bar.to);
  const whole = Math.max(end, begin + 1) - begin;
  const rows = bars.map((bar, i) => ({ key: `bar-${i}`, kind: "bar", guess: 24, bar }));
  return (
    <>
      <p className="legend">{(["round", "call", "wait"] as const).map((kind) => <span key={kind}><i className={kind} />{t.bars[kind]}</span>)}</p>
      <div data-testid="waterfall">
        <Rows className="waterfall" label={t.waterfall} scroller=".panel" values={values} rows={rows}>
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
