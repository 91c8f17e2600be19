import { memo, useState } from "react";
import type { ToolBlock } from "../store/turn";
import { t } from "../texts";
import { ApprovalCard, Arguments, argumentsOf } from "./ApprovalCard";
import { Diff } from "./Diff";
import { spelled } from "./hidden";
import { InputCard } from "./InputCard";

const FIRST = 20_000; // of an output, before somebody wants more

const KIND: Record<string, string> = {
  run_shell: "command", run_code: "command", write_file: "diff", edit_file: "diff", delete_file: "file", read_file: "file", list_files: "file",
  search_files: "search", http_get: "web", research: "nested", manage_tasks: "tasks", update_plan: "tasks", ask_human: "question",
};
const ICON: Record<string, string> = { command: "❯", diff: "±", file: "▤", search: "⌕", web: "⇄", nested: "◎", tasks: "☑", question: "?", other: "⚙" };

// One call: a line that says what it did, and all of it when it is opened.
export const ToolCard = memo(function ToolCard({ block, open }: { block: ToolBlock; open: boolean; stamp: string }) {
  const [chosen, setChosen] = useState<boolean | null>(null);
  const kind = KIND[block.name] ?? "other";
  const waits = block.approval && !block.approval.decision && open;
  const asks = block.question && !block.question.answered && open;
  const running = open && block.output === null && !waits && !asks;
  const shown = chosen ?? (running && kind === "command");
  const values = argumentsOf(block.input);
  const decision = block.approval?.decision;
  const state = block.failed ? t.failed : running ? t.running : "";
  return (
    <article className={`tool ${kind} ${block.failed ? "failed" : ""}`} data-testid="tool-card" data-tool={block.name}>
      <button type="button" className="tool-head" aria-expanded={shown} onClick={() => setChosen(!shown)}>
        <span aria-hidden="true" className="icon">{ICON[kind]}</span>
        <span className="tool-name">{block.name}</span>
        <span className="tool-what">{spelled(summary(block.name, values))}</span>
        {state && <span className={`badge ${block.failed ? "bad" : ""}`}>{state}</span>}
        {decision && <span className="badge">{decision.expired ? t.expired : decision.superseded ? t.superseded : decision.approved ? t.approved(t.scopes[decision.scope ?? "once"]) : t.rejected}</span>}
        {block.from > 0 && block.to > 0 && <span className="faint">{seconds(block.to - block.from)}</span>}
      </button>
      {waits && block.approval && <ApprovalCard approval={block.approval} tool={block.name} />}
      {asks && block.question && <InputCard input={block.question} />}
      {shown && (
        <div className="tool-body">
          <Body kind={kind} block={block} values={values} />
          {decision?.feedback && <p className="hint">{decision.feedback}</p>}
        </div>
      )}
    </article>
  );
});

function Body({ kind, block, values }: { kind: string; block: ToolBlock; values: Record<string, unknown> | null }) {
  const text = (name: string): string => (typeof values?.[name] === "string" ? (values[name] as string) : "");
  return (
    <>
      {block.name === "edit_file" && values ? <Diff before={text("old_text")} after={text("new_text")} />
        : block.name === "write_file" && values ? <Diff before="" after={text("content")} />
          : kind === "command" && values ? <pre className="command" tabIndex={0}>{spelled(text("command") || text("code"))}</pre>
            : <Arguments values={values} raw={block.input} />}
      {block.steps.length > 0 && <ol className="steps">{block.steps.map((step, i) => <li key={i} className={step.failed ? "failed" : ""}><span className="faint">{step.type.toLowerCase()}</span> {step.text.slice(0, 500)}</li>)}</ol>}
      {block.live && <Output text={block.live} live />}
      {block.output !== null && kind !== "diff" && <Output text={block.output} />}
      {block.output !== null && kind === "diff" && block.failed && <Output text={block.output} />}
    </>
  );
}

function Output({ text, live }: { text: string; live?: boolean }) {
  const [all, setAll] = useState(false);
  const shown = all || text.length <= FIRST ? text : live ? text.slice(-FIRST) : text.slice(0, FIRST);
  return (
    <>
      <pre className="output" tabIndex={0} aria-label={t.output}>{shown}</pre>
      {shown.length < text.length && <button type="button" className="quiet" onClick={() => setAll(true)}>{`… ${text.length.toLocaleString()}`}</button>}
    </>
  );
}

function summary(name: string, values: Record<string, unknown> | null): string {
  if (!values) return "";
  for (const member of ["command", "path", "url", "pattern", "question", "expression", "text", "title", "code"]) {
    const value = values[member];
    if (typeof value === "string") return value.split("\n")[0]!.slice(0, 120);
  }
  return name === "update_plan" ? "" : JSON.stringify(values).slice(0, 120);
}

export const seconds = (ms: number): string => (ms < 1000 ? `${Math.max(0, Math.round(ms))} ms` : ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`);
