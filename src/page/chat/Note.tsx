import { Icon, IconName } from "../parts/Icon";
import { useNow } from "../parts/time";
import { navigation } from "../store/navigation";
import * as requests from "../store/requests";
import { isRunning, NoteBlock, Turn } from "../store/turn";
import { t } from "../texts";
import { PlanList, TaskList } from "./AgendaPanel";
import { useFold } from "./folding";
import { ModelPicker } from "./ModelPicker";

const ICONS: Partial<Record<NoteBlock["what"], IconName>> = { retry: "refresh", compacted: "compress", cleared: "compress", sent_back: "refresh", loop: "loop", same_error: "loop", no_progress: "loop", cancelled: "stop" };

// Other events of a turn: a retry, a summary of older messages, a loop, a stop, a failure, a changed plan.
export function Note({ note, turn }: { note: NoteBlock; turn: Turn }) {
  const [open, toggle] = useFold(`note/${turn.id}/${note.key}`, false);
  if (note.what === "error") return <Failure note={note} turn={turn} />;
  if (note.what === "tasks" || note.what === "plan") return <Agenda note={note} turn={turn} open={open} toggle={toggle} />;
  const text = note.what === "retry" ? t.retrying(note.code) : note.what === "compacted" ? t.compacted(note.code) : note.what === "cleared" ? t.cleared(note.code) : note.what === "sent_back" ? t.sentBack : note.what === "job_started" ? t.jobStarted(note.text) : note.what === "job_ended" ? t.jobEnded(note.text, note.code) : note.what === "loop" ? t.loop(note.text, note.code) : note.what === "same_error" ? t.sameError(note.text, note.code) : note.what === "no_progress" ? t.noProgress(note.text, note.code) : t.cancelledBecause(note.text);
  return (
    <div className={`note ${note.what}`} data-testid={`note-${note.what}`}>
      <Icon name={ICONS[note.what] ?? "alert"} size={15} />
      <span>{text}</span>
      {note.what === "retry" && <Countdown note={note} turn={turn} />}
      {(note.what === "retry" || note.what === "compacted" || note.what === "sent_back") && note.text && <button type="button" className="quiet tiny" aria-expanded={open} onClick={toggle}>{open ? t.less : t.more}</button>}
      {open && <p className="note-more" dir="auto">{note.text}</p>}
    </div>
  );
}

function Countdown({ note, turn }: { note: NoteBlock; turn: Turn }) {
  const isLast = turn.blocks[turn.blocks.length - 1] === note && isRunning(turn);
  const now = useNow(isLast && (note.until ?? 0) > Date.now(), 250);
  const left = Math.ceil(((note.until ?? 0) - now) / 1000);
  return isLast && left > 0 ? <span className="number" data-testid="countdown">{t.inSeconds(left)}</span> : null;
}

// The newest task list or plan that a person has changed. The agent's changes are in the card of its call.
function Agenda({ note, turn, open, toggle }: { note: NoteBlock; turn: Turn; open: boolean; toggle: () => void }) {
  if (note.code) return null;
  for (let i = turn.blocks.length - 1; i >= 0; i--) {
    const each = turn.blocks[i]!;
    if (each === note) break;
    if (each.kind === "note" && each.what === note.what) return null;
  }
  const isTasks = note.what === "tasks";
  const tasks = note.tasks ?? [];
  return (
    <div className="note" data-testid={`note-${note.what}`}>
      <Icon name="tasks" size={15} />
      <span>{isTasks ? t.tasksNote(tasks.filter((task) => task.status === "done").length, tasks.length) : t.planNote(note.steps?.length ?? 0)}</span>
      <button type="button" className="quiet tiny" aria-expanded={open} onClick={toggle}>{open ? t.less : t.more}</button>
      {open && (isTasks ? <TaskList tasks={tasks} /> : <PlanList steps={note.steps ?? []} />)}
    </div>
  );
}

// A failure, and what people can do about it.
function Failure({ note, turn }: { note: NoteBlock; turn: Turn }) {
  const help = t.errors[note.code] ?? (note.retryable ? t.errors.retryable : t.errors.other)!;
  const wantsModel = note.code === "provider_auth" || note.code === "provider_not_found" || note.code === "provider_bad_request" || note.code === "provider_overloaded" || note.code === "provider_rate_limited" || note.code === "provider_unreachable";
  const isLast = turn.blocks[turn.blocks.length - 1] === note && !isRunning(turn);
  return (
    <div className="card error" role="alert" data-testid="error-note" data-code={note.code}>
      <header><Icon name="alert" size={18} /><strong>{help.title}</strong><code className="faint">{note.code}</code></header>
      <p dir="auto">{note.text}</p>
      <p className="hint">{help.next}</p>
      {isLast && (
        <div className="row">
          {note.code === "provider_context_length" && <button type="button" className="primary" data-testid="next-compact" onClick={() => void requests.compact()}>{t.compact}</button>}
          {note.code === "storage_full" && <button type="button" data-testid="next-trash" onClick={() => navigation.set({ view: "trash" })}>{t.openTrash}</button>}
          {note.code === "provider_auth" && <button type="button" data-testid="next-settings" onClick={() => navigation.set({ view: "settings" })}>{t.howToConnect}</button>}
          {wantsModel && <ModelPicker value="" label={t.otherModel} testid="next-model" onChange={(name) => void requests.again(turn, "regenerate", name)} />}
          <button type="button" data-testid="next-resume" onClick={() => void requests.again(turn, "resume")}>{t.errorNext.resume}</button>
          <button type="button" data-testid="next-retry" onClick={() => void requests.again(turn, "regenerate")}>{t.errorNext.retry}</button>
        </div>
      )}
    </div>
  );
}
