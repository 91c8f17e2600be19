import { useState } from "react";
import { Icon } from "../parts/Icon";
import { branch } from "../store/cache";
import { navigation } from "../store/navigation";
import { store, useSelect } from "../store/state";
import type { NoteBlock, Task } from "../store/turn";
import { t } from "../texts";

export function TaskList({ tasks }: { tasks: Task[] }) {
  return <ul className="agenda tasks" aria-label={t.tasks}>{tasks.map((task) => <li key={task.id} className={task.status} dir="auto"><span className="mark" role="img" aria-label={t.columns[task.status]} />{task.title}</li>)}</ul>;
}
export function PlanList({ steps }: { steps: string[] }) {
  return <ol className="agenda plan" aria-label={t.plan}>{steps.map((step, i) => <li key={i} dir="auto">{step}</li>)}</ol>;
}

// The newest note of this kind in the conversation.
function newest(what: NoteBlock["what"]): NoteBlock | undefined {
  const turns = branch();
  for (let i = turns.length - 1; i >= 0; i--) {
    const blocks = turns[i]!.blocks;
    for (let j = blocks.length - 1; j >= 0; j--) {
      const block = blocks[j]!;
      if (block.kind === "note" && block.what === what) return block;
    }
  }
  return undefined;
}

// The agent's plan and tasks and their progress, beside the conversation.
export function AgendaPanel() {
  const [open, setOpen] = useState(() => (localStorage.getItem("agenda") ?? (matchMedia("(min-width: 84rem)").matches ? "open" : "closed")) === "open");
  const tasks = useSelect(() => newest("tasks"))?.tasks ?? [];
  const steps = useSelect(() => newest("plan"))?.steps ?? [];
  const left = tasks.filter((task) => task.status !== "done").length;
  if (tasks.length + steps.length === 0) return null;
  const doing = tasks.find((task) => task.status === "doing") ?? tasks.find((task) => task.status === "todo");
  const toggle = (): void => {
    store("agenda", open ? "closed" : "open");
    setOpen(!open);
  };
  return (
    <aside className={`agenda-panel${open ? " open" : ""}`} data-testid="agenda" aria-label={t.planAndTasks}>
      <button type="button" className="quiet agenda-head" aria-expanded={open} onClick={toggle}>
        <Icon name="tasks" size={16} />
        <span className="title">{open || !doing ? t.planAndTasks : doing.title}</span>
        {tasks.length > 0 && <span className="badge">{t.doneOf(tasks.length - left, tasks.length)}</span>}
        <Icon name={open ? "down" : "forward"} size={14} />
      </button>
      {open && (
        <div className="agenda-body">
          {steps.length > 0 && <PlanList steps={steps} />}
          {tasks.length > 0 && <TaskList tasks={tasks} />}
          <button type="button" className="quiet tiny" onClick={() => navigation.set({ view: "board" })}><Icon name="board" size={14} />{t.openBoard}</button>
        </div>
      )}
    </aside>
  );
}

