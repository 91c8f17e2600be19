import { FormEvent, useMemo } from "react";
import { ModelPicker } from "../chat/ModelPicker";
import { spelled } from "../chat/hidden";
import { BlockList } from "../chat/TurnView";
import { useKept } from "../list/Rows";
import { known, load } from "../store/cache";
import { attempt, changed, useSelect } from "../store/state";
import { AgentEvent, newTurn, take, Turn } from "../store/turn";
import { v } from "../texts_of_views";
import type { WhatIfFrame, WhatIfRequest } from "../wire";
import { request, turnPath } from "../wire/api";
import { Hunks } from "./DiffBox";

type Change = "none" | "say" | "result" | "timeout" | "error" | "yes" | "no";

// What can be different from this event on; the server has the last word.
function changesAt(event: AgentEvent | undefined): Change[] {
  switch (event?.type) {
    case "TOOL_CALL":
    case "TOOL_RESULT":
      return event.type === "TOOL_CALL" ? ["none", "result", "timeout", "error"] : ["none", "result", "timeout", "error", "say"];
    case "APPROVAL_REQUIRED":
      return ["yes", "no", "none"];
    case "ANSWER":
    case "INTERACTION_COMPLETE":
      return ["say"];
    default:
      return event === undefined || event.type === "INTERACTION_STARTED" ? ["none", "say"] : ["none"];
  }
}

function bodyOf(turn: Turn, event: AgentEvent | undefined, change: Change, text: string, model: string, keep: boolean): WhatIfRequest {
  const last = event?.type === "INTERACTION_COMPLETE" ? turn.events[turn.events.length - 2] : event;
  const body: WhatIfRequest = { keep };
  if (last && last.type !== "INTERACTION_STARTED") body.at = last.seq;
  if (model) body.model = model;
  if (change === "say" || change === "result") body[change] = text;
  if (change === "timeout" || change === "error") body.fail = change;
  if (change === "yes" || change === "no") body.answer = change;
  return body;
}

// Reads the events of a run as they come.
async function follow(path: string, body: WhatIfRequest, signal: AbortSignal, each: (name: string, data: unknown) => void): Promise<void> {
  const response = await request("POST", path, body, signal);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop() ?? "";
    for (const part of parts) {
      const lines = part.split("\n"), member = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      const data = member("data");
      if (data !== undefined) each(member("event") ?? "", JSON.parse(data));
    }
  }
}

interface Run {
  turn: Turn;
  drawn: number; // grows with each event
  frame: WhatIfFrame | null;
  ended: boolean;
  abort: AbortController;
}

// Goes on from an event of a recorded turn with something different, in a copy of the workspace, and shows both sides. The run is the row's, not this element's:
// it goes on while people look at something else.
export function WhatIf({ turn, at }: { turn: Turn; at: number }) {
  const event = at > 0 ? turn.events[at - 1] : undefined;
  const changes = changesAt(event);
  const [chosen, setChosen] = useKept<Change>("what-if", "none");
  const [text, setText] = useKept("what-if-text", "");
  const [model, setModel] = useKept("what-if-model", "");
  const [keep, setKeep] = useKept("what-if-keep", false);
  const [run, setRun] = useKept<Run | null>("what-if-run", null);
  useSelect(() => run?.drawn);
  const change = changes.includes(chosen) ? chosen : changes[0]!;
  const writes = change === "say" || change === "result";
  const further = change === "say" && event !== undefined && event.type !== "INTERACTION_STARTED"; // a turn has one message
  const busy = run !== null && !run.ended;
  const start = (e: FormEvent): void => {
    e.preventDefault();
    if (busy) return;
    const made = newTurn(turn.chat, `${turn.id}/what-if`);
    made.message = change === "say" && !further ? text : turn.message;
    const mine: Run = { turn: made, drawn: 0, frame: null, ended: false, abort: new AbortController() };
    const draw = (how: Partial<Run>): void => {
      Object.assign(mine, how, { drawn: mine.drawn + 1 });
      changed();
    };
    setRun(mine);
    const end = (): void => {
      draw({ ended: true });
      const chat = known(turn.chat);
      if (chat && keep) void attempt(() => load(chat)); // it has a further branch
    };
    void attempt(() => follow(`${turnPath(turn.chat, turn.id)}/what_if`, bodyOf(turn, event, change, text, model, keep && !further), mine.abort.signal, (name, data) => {
      if (name !== "what_if") take(made, data as AgentEvent, true);
      draw(name === "what_if" ? { frame: data as WhatIfFrame } : {});
    })).finally(end);
  };
  return (
    <section className="what-if" data-testid="what-if-box" aria-label={v.whatIf}>
      <form className="row wrap" onSubmit={start}>
        <select aria-label={v.different} data-testid="what-if-change" value={change} onChange={(e) => setChosen(e.target.value as Change)}>{changes.map((each) => <option key={each} value={each}>{v.changes[each]}</option>)}</select>
        <ModelPicker value={model} onChange={setModel} testid="what-if-model" />
        {!further && <label className="setting"><input type="checkbox" data-testid="what-if-keep" checked={keep} onChange={(e) => setKeep(e.target.checked)} /><span>{v.keepBranch}</span></label>}
        {writes && <textarea className="grow" rows={2} aria-label={v.changes[change]} data-testid="what-if-text" value={text} onChange={(e) => setText(e.target.value)} />}
        {/* The keys keep them apart: a click on one must not end as a click on the other. */}
        {busy ? <button key="stop" type="button" data-testid="what-if-stop" onClick={() => run.abort.abort()}>{v.stop}</button>
          : <button key="start" type="submit" className="primary" data-testid="what-if-start" disabled={change === "say" && text.trim() === ""}>{v.tryIt}</button>}
      </form>
      <p className="hint">{v.whatIfHint}</p>
      {run && <Sides recorded={turn} run={run} />}
    </section>
  );
}

function Sides({ recorded, run }: { recorded: Turn; run: Run }) {
  const then = useMemo(() => {
    const whole = newTurn(recorded.chat, `${recorded.id}/recorded`);
    for (const event of recorded.events) take(whole, event);
    return whole;
  }, [recorded]);
  const { frame, ended } = run;
  const told = !ended ? v.running : !frame ? v.brokenOff : frame.kept ? v.keptAs(frame.kept) : frame.not_kept ? v.notKept(frame.not_kept) : frame.first_difference ? v.differsFrom(frame.first_difference.seq) : v.noDifference;
  return (
    <>
      <p role="status" data-testid="what-if-state">{spelled(told)}</p>
      <div className="divergence">
        <section aria-label={v.recorded} data-testid="what-if-recorded"><h4>{v.recorded}</h4><div className="replayed"><BlockList turn={then} /></div></section>
        <section aria-label={v.whatIf} data-testid="what-if-made"><h4>{v.whatIf}</h4><div className="replayed"><BlockList turn={run.turn} /></div></section>
      </div>
      {frame && frame.files.length > 0 && (
        <section aria-label={v.copyFiles} data-testid="what-if-files">
          <h4>{v.copyFiles}</h4>
          <ul>{frame.files.map((file) => <li key={file}><code>{spelled(file)}</code></li>)}</ul>
          <Hunks text={frame.diff} />
        </section>
      )}
    </>
  );
}
