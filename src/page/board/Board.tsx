import { KeyboardEvent, useCallback, useEffect, useRef, useState } from "react";
import { SaveLink } from "../chat/Attachments";
import { spelled } from "../chat/hidden";
import { fit } from "../parts/hooks";
import { Icon } from "../parts/Icon";
import { lastTurn, useOpen } from "../store/cache";
import { attempt, tell, useSelect } from "../store/state";
import type { Task } from "../store/turn";
import { t } from "../texts";
import { v } from "../texts_of_views";
import type { ChatFiles, FileInfo, Tasks } from "../wire";
import { call, chatPath, get, noneIfNew } from "../wire/api";
import { Jobs } from "./Jobs";

const COLUMNS = ["todo", "doing", "done"] as const;
type Column = (typeof COLUMNS)[number];

export function Board() {
  const chat = useOpen()?.id;
  return chat ? <BoardOf key={chat} chat={chat} /> : <p className="panel empty">{v.noTasks}</p>;
}

// The agent's tasks, which people can drag, move by keys and edit, and its plan. A change replaces all, so nothing can be changed before they are known.
function BoardOf({ chat }: { chat: string }) {
  const [known, setAgenda] = useState<Tasks | null>(null);
  const [failed, setFailed] = useState(false);
  const [over, setOver] = useState<Column | null>(null);
  const moved = useRef<string | null>(null); // the moved task, which keeps the focus
  const last = useSelect(lastTurn);
  useSelect(() => last?.version);
  const path = `${chatPath(chat)}/tasks`;
  const read = useCallback(async () => setFailed(!(await attempt(async () => setAgenda(await get<Tasks>(path).catch(noneIfNew({ tasks: [], plan: [] }))), t.offline))), [path]);
  useEffect(() => void read(), [read, last?.id, last?.version]);
  useEffect(() => {
    if (!moved.current) return;
    document.querySelector<HTMLElement>(`[data-task="${CSS.escape(moved.current)}"]`)?.focus();
    moved.current = null;
  }, [known]);
  if (!known) return <section className="panel" data-testid="board"><Jobs chat={chat} />{failed && <button type="button" data-testid="read-tasks" onClick={() => void read()}>{t.errorNext.retry}</button>}</section>;
  const agenda = known;
  const change = (what: { tasks?: Partial<Task>[]; plan?: string[] }, focused?: string): Promise<boolean> => attempt(async () => {
    const changed = await call<Tasks>("PATCH", path, what);
    if (focused) moved.current = focused;
    setAgenda(changed);
  }, t.offline);
  const put = (id: string, how: Partial<Task>, focused?: string): void => void change({ tasks: agenda.tasks.map((task) => (task.id === id ? { ...task, ...how } : task)) }, focused);
  // While the toast is shown, a removed task or step can be put back in its place.
  const removeTask = (task: Task): void => {
    const { tasks } = agenda;
    void change({ tasks: tasks.filter((each) => each.id !== task.id) });
    tell(v.taskRemoved(task.title), { label: t.undo, run: () => void attempt(async () => {
      const now = (await get<Tasks>(path)).tasks;
      const before = tasks.slice(0, tasks.indexOf(task)).map((each) => each.id);
      const at = now.findIndex((each) => !before.includes(each.id));
      const { id: _, ...again } = task;
      setAgenda(await call<Tasks>("PATCH", path, { tasks: at < 0 ? [...now, again] : [...now.slice(0, at), again, ...now.slice(at)] }));
    }) });
  };
  const removeStep = (at: number): void => {
    const step = agenda.plan[at]!;
    void change({ plan: agenda.plan.filter((_, j) => j !== at) });
    tell(v.stepRemoved(step), { label: t.undo, run: () => void attempt(async () => {
      const { plan } = await get<Tasks>(path);
      setAgenda(await call<Tasks>("PATCH", path, { plan: [...plan.slice(0, at), step, ...plan.slice(at)] }));
    }) });
  };
  // Moves a task above or below its neighbour in the column.
  const shift = (id: string, column: Column, step: number): void => {
    const there = agenda.tasks.filter((task) => task.status === column);
    const other = there[there.findIndex((task) => task.id === id) + step];
    if (!other) return;
    const tasks = [...agenda.tasks];
    const a = tasks.findIndex((task) => task.id === id), b = tasks.indexOf(other);
    [tasks[a], tasks[b]] = [tasks[b]!, tasks[a]!];
    void change({ tasks }, id);
  };
  const onKey = (e: KeyboardEvent, task: Task, at: number): void => {
    if (e.target !== e.currentTarget) return;
    const to = e.key === "ArrowRight" ? COLUMNS[at + 1] : e.key === "ArrowLeft" ? COLUMNS[at - 1] : undefined;
    if (to) put(task.id, { status: to }, task.id);
    else if (e.key === "ArrowUp" || e.key === "ArrowDown") shift(task.id, COLUMNS[at]!, e.key === "ArrowUp" ? -1 : 1);
    else if (e.key === "Delete") removeTask(task);
    else if (e.key === "Enter") e.currentTarget.querySelector("textarea")?.focus();
    else return;
    e.preventDefault();
  };
  return (
    <section className="panel" data-testid="board" aria-label={t.board}>
      <Jobs chat={chat} />
      <h2>{t.tasks}</h2>
      <p className="hint">{agenda.tasks.length === 0 ? v.noTasks : v.boardKeys}</p>
      <div className="columns">
        {COLUMNS.map((column, at) => {
          const tasks = agenda.tasks.filter((task) => task.status === column);
          return (
            <section key={column} data-testid="column" data-column={column} className={over === column ? "over" : ""} aria-label={t.columns[column]}
              onDragOver={(e) => {
              if (e.dataTransfer.types.includes("Files")) return;
              e.preventDefault();
              setOver(column);
            }} onDragLeave={() => setOver(null)} onDrop={(e) => {
              setOver(null);
              if (e.dataTransfer.types.includes("Files")) return;
              e.preventDefault();
              put(e.dataTransfer.getData("text/plain"), { status: column });
            }}>
              <h3>{t.columns[column]} <span className="badge">{tasks.length}</span></h3>
              <ul>
                {tasks.map((task) => (
                  <li key={task.id} className={`task ${task.status}`} data-testid="task" data-task={task.id} draggable tabIndex={0}
                    aria-label={v.taskIn(task.title, t.columns[column]!)} aria-describedby="board-keys"
                    onDragStart={(e) => e.dataTransfer.setData("text/plain", task.id)} onKeyDown={(e) => onKey(e, task, at)}>
                    <Words value={task.title} label={t.edit} onChange={(title) => put(task.id, { title })} />
                    <button type="button" className="quiet square small" data-testid="remove-task" aria-label={`${t.remove}: ${task.title}`} title={t.remove}
                      onClick={() => removeTask(task)}><Icon name="close" size={14} /></button>
                  </li>
                ))}
              </ul>
              <NewOne label={v.addTask} testid={column === "todo" ? "add-task" : `add-${column}`}
                onAdd={(title) => change({ tasks: [...agenda.tasks, { title, status: column }] })} />
            </section>
          );
        })}
      </div>
      <p id="board-keys" className="sr-only">{v.boardKeys}</p>
      <h2>{t.plan}</h2>
      <ol className="plan-list" data-testid="plan">
        {agenda.plan.map((step, i) => (
          <li key={`${i}/${step}`}>
            <Words value={step} label={t.edit} onChange={(text) => void change({ plan: agenda.plan.map((each, j) => (j === i ? text : each)) })} />
            <button type="button" className="quiet square small" aria-label={`${t.remove}: ${step}`} title={t.remove}
              onClick={() => removeStep(i)}><Icon name="close" size={14} /></button>
          </li>
        ))}
        <li><NewOne label={v.addStep} testid="add-step" onAdd={(step) => change({ plan: [...agenda.plan, step] })} /></li>
      </ol>
      <Files chat={chat} stamp={`${last?.id}/${last?.events.length}`} />
    </section>
  );
}

// A text that is edited in place.
function Words({ value: given, label, onChange }: { value: string; label: string; onChange: (value: string) => void }) {
  const value = given.replace(/\r\n?/g, "\n"); // as a text area has it
  return (
    <textarea ref={(area) => fit(area)} rows={1} key={value} aria-label={`${label}: ${value}`} dir="auto" defaultValue={value} onInput={(e) => fit(e.currentTarget)} onKeyDown={(e) => {
      if (e.key !== "Escape" && (e.key !== "Enter" || e.shiftKey)) return;
      e.preventDefault();
      e.stopPropagation();
      if (e.key === "Escape") e.currentTarget.value = value;
      (e.currentTarget.closest<HTMLElement>("[tabindex]") ?? e.currentTarget).focus(), e.currentTarget.blur();
    }} onBlur={(e) => {
      if (e.target.value.trim() && e.target.value !== value) onChange(e.target.value);
      else e.target.value = value;
    }} />
  );
}

// What was not taken stays typed.
function NewOne({ label, testid, onAdd }: { label: string; testid: string; onAdd: (title: string) => Promise<boolean> }) {
  const [title, setTitle] = useState("");
  const add = async (): Promise<void> => {
    if (!title.trim() || (await onAdd(title))) setTitle((now) => (now === title ? "" : now));
  };
  return (
    <form className="add-task" onSubmit={(e) => {
      e.preventDefault();
      void add();
    }}><input aria-label={label} placeholder={`+ ${label}`} data-testid={testid} dir="auto" value={title} onChange={(e) => setTitle(e.target.value)} /></form>
  );
}

// The files of a chat: those that people attached or the agent saved.
function Files({ chat, stamp }: { chat: string; stamp: string }) {
  const [files, setFiles] = useState<FileInfo[]>([]);
  const [asked, setAsked] = useState<string | null>(null); // the file whose removal is to be confirmed
  const path = `${chatPath(chat)}/files`;
  const read = (): Promise<boolean> => attempt(async () => setFiles((await get<ChatFiles>(path).catch(noneIfNew({ files: [] }))).files), t.offline);
  useEffect(() => void read(), [path, stamp]);
  const remove = async (file: FileInfo): Promise<void> => {
    setAsked(null);
    await attempt(() => call("DELETE", `${path}/${file.id}`));
    await read();
  };
  if (files.length === 0) return null;
  return (
    <>
      <h2>{v.files}</h2>
      <ul className="plain-list">
        {files.map((file) => (
          <li key={file.id} className="row" data-testid="chat-file">
            <SaveLink path={`${path}/${file.id}`} name={file.filename}>{spelled(file.filename)}</SaveLink> <span className="faint grow">{v.bytes(file.size_bytes)}</span>
            {asked !== file.id ? (
              <button type="button" className="quiet square small" data-testid="remove-file" aria-label={`${t.remove}: ${file.filename}`} title={t.remove} onClick={() => setAsked(file.id)}><Icon name="close" size={14} /></button>
            ) : (
              <span className="row" role="alertdialog" aria-label={v.removeFile} onKeyDown={(e) => e.key === "Escape" && setAsked(null)}>
                <span className="bad">{v.removeFile}</span>
                <button type="button" className="danger" data-testid="remove-file-sure" onClick={() => void remove(file)}>{t.remove}</button>
                <button type="button" autoFocus data-testid="keep-file" onClick={() => setAsked(null)}>{t.cancel}</button>
              </span>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}
