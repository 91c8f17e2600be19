import { Icon, IconName } from "../parts/Icon";
import { useNow } from "../parts/time";
import { navigation } from "../store/navigation";
import * as requests from "../store/requests";
import { isRunning, NoteBlock, Turn, WebSource } from "../store/turn";
import { t } from "../texts";
import { PlanList, TaskList } from "./AgendaPanel";
import { useFold } from "./folding";
import { ModelPicker } from "./ModelPicker";

const ICONS: Partial<Record<NoteBlock["what"], IconName>> = { retry: "refresh", compacted: "compress", cleared: "compress", sent_back: "refresh", loop: "loop", same_error: "loop", no_progress: "loop", cancelled: "stop", web_search: "search", sources: "web" };

// Other events of a turn: a retry, a summary of older messages, a loop, a stop, a failure, a changed plan.
export function Note({ note, turn }: { note: NoteBlock; turn: Turn }) {
  const { pages } = note;
  const [open, toggle] = useFold(`note/${turn.id}/${note.key}`, note.what === "sources");
  if (note.what === "error") return <Failure note={note} turn={turn} />;
  if (note.what === "tasks" || note.what === "plan") return <Agenda note={note} turn={turn} open={open} toggle={toggle} />;
  const { code, text } = note;
  const shown = {
    retry: t.retrying(code), compacted: t.compacted(code), cleared: t.cleared(code), sent_back: t.sentBack, sources: t.sources, web_search: t.searched(text, code), job_started: t.jobStarted(text),
    job_ended: t.jobEnded(text, code), loop: t.loop(text, code), same_error: t.sameError(text, code), no_progress: t.noProgress(text, code), cancelled: t.cancelledBecause(text),
  }[note.what];
  const hasMore = pages ? pages.length > 0 : text && ["retry", "compacted", "sent_back"].includes(note.what);
  return (
    <div className={`note ${note.what}`} data-testid={`note-${note.what}`}>
      <Icon name={ICONS[note.what] ?? "alert"} size={15} />
      <span>{shown}</span>
      {note.what === "job_started" && <button type="button" className="quiet tiny" data-testid="show-jobs" onClick={() => navigation.set({ view: "board" })}>{t.jobs}</button>}
      {note.what === "retry" && <Countdown note={note} turn={turn} />}
      {hasMore && <button type="button" className="quiet tiny" aria-expanded={open} onClick={toggle}>{open ? t.less : t.more}</button>}
      {open && (pages ? <Pages pages={pages} /> : <p className="note-more" dir="auto">{text}</p>)}
    </div>
  );
}

// Pages of the web that a search of the provider has found, or that the text above cites. The titles are the pages' own words.
function Pages({ pages }: { pages: WebSource[] }) {
  const address = (url: string) => (/^https?:/i.test(url) ? url : undefined);
  return <ul className="agenda">{pages.map(({ url, title }, at) => <li key={at}><a href={address(url)} target="_blank" rel="noopener noreferrer">{title || url}</a></li>)}</ul>;
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
