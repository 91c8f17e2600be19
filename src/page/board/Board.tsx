import { useCallback, useEffect, useState } from "react";
import { store, useStore } from "../store/store";
import type { Task } from "../store/types";
import { t } from "../texts";
import type { Tasks } from "../wire";
import { call, chatPath, get } from "../wire/api";
import { Files } from "./Files";

const COLUMNS = ["todo", "doing", "done"] as const;

// The agent's tasks, to be dragged, moved by keys, and edited; and its plan.
export function Board() {
  const { open } = useStore();
  const chat = open?.id;
  const [agenda, setAgenda] = useState<Tasks>({ tasks: [], plan: [] });
  const [title, setTitle] = useState("");
  const last = store.branch().pop();
  const read = useCallback(async () => {
    if (chat) await get<Tasks>(`${chatPath(chat)}/tasks`).then(setAgenda, () => undefined);
  }, [chat]);
  useEffect(() => void read(), [read, last?.id, last?.events.length]);
  if (!chat) return null;
  const change = (tasks: Partial<Task>[]): void => {
    void store.attempt(async () => setAgenda(await call<Tasks>("PATCH", `${chatPath(chat)}/tasks`, { tasks })));
  };
  const move = (id: string, status: string): void => change(agenda.tasks.map((task) => (task.id === id ? { ...task, status: status as Task["status"] } : task)));
  return (
    <section className="panel" data-testid="board" aria-label={t.board}>
      <h2>{t.tasks}</h2>
      {agenda.tasks.length === 0 && <p className="faint">{t.noTasks}</p>}
      <div className="columns">
        {COLUMNS.map((column, at) => (
          <section key={column} data-column={column} aria-label={t.columns[column]} onDragOver={(e) => e.preventDefault()} onDrop={(e) => move(e.dataTransfer.getData("text/plain"), column)}>
            <h3>{t.columns[column]}</h3>
            <ul>
              {agenda.tasks.filter((task) => task.status === column).map((task) => (
                <li key={task.id} className="task" data-testid="task" data-task={task.id} draggable tabIndex={0} onDragStart={(e) => e.dataTransfer.setData("text/plain", task.id)}
                  onKeyDown={(e) => {
                    const to = e.key === "ArrowRight" ? COLUMNS[at + 1] : e.key === "ArrowLeft" ? COLUMNS[at - 1] : undefined;
                    if (to && e.target === e.currentTarget) move(task.id, to);
                  }}>
                  <input aria-label={t.edit} defaultValue={task.title} key={task.title} onBlur={(e) => e.target.value !== task.title && change(agenda.tasks.map((each) => (each === task ? { ...each, title: e.target.value } : each)))} />
                  <button type="button" className="quiet" aria-label={`${t.remove}: ${task.title}`} onClick={() => change(agenda.tasks.filter((each) => each !== task))}>×</button>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </div>
      <form className="row" onSubmit={(e) => {
        e.preventDefault();
        if (title.trim()) change([...agenda.tasks, { title, status: "todo" }]);
        setTitle("");
      }}>
        <input aria-label={t.addTask} placeholder={t.addTask} data-testid="add-task" value={title} onChange={(e) => setTitle(e.target.value)} />
      </form>
      <Files chat={chat} stamp={`${last?.id}/${last?.events.length}`} />
      {agenda.plan.length > 0 && <><h2>{t.plan}</h2><ol>{agenda.plan.map((step, i) => <li key={i}>{step}</li>)}</ol></>}
    </section>
  );
}
