import { createContext, useContext } from "react";
import { Markdown } from "../markdown/Markdown";
import { Code, languageOf } from "../parts/Code";
import { CopyButton } from "../parts/Icon";
import type { ToolBlock, Turn } from "../store/turn";
import { t } from "../texts";
import { PlanList } from "./AgendaPanel";
import { Arguments } from "./ApprovalCard";
import { changeThatRan, editsOf } from "./changes";
import { Diff } from "./Diff";
import { parseExact, writeExact } from "./exact";
import { useFold } from "./folding";
import { spelled } from "./hidden";
import { Values, wordOf } from "./values";

export type Kind = "command" | "code" | "diff" | "file" | "list" | "search" | "web" | "agent" | "tasks" | "question" | "mcp" | "other";

const KINDS: Record<string, Kind> = {
  run_shell: "command", run_code: "code", write_file: "diff", edit_file: "diff", apply_patch: "diff", delete_file: "file", read_file: "file", read_chat_file: "file", save_chat_file: "diff",
  list_files: "list", find_files: "list", list_chat_files: "list", search_files: "search", recall: "search", http_get: "web", research: "agent", manage_tasks: "tasks", update_plan: "tasks", ask_human: "question",
};
export const kindOf = (name: string): Kind => KINDS[name] ?? (name.includes("__") ? "mcp" : "other");

// The line in which the tool reports, below the output, that a command failed.
const END = /^\((exit status \d+|ended by signal \d+|timed out after [^)]*)\)$/;
function endAt(output: string): number {
  const text = output.trimEnd();
  const line = text.lastIndexOf("\n");
  return END.test(text.slice(line + 1)) ? Math.max(0, line) : output.length;
}
export const commandEnd = (output: string): string => END.exec(output.slice(endAt(output)).trim())?.[1]?.split(" and was ended")[0] ?? "";

// The effect of a call, shown as suits its kind, and on request its raw arguments and result.
export function ToolBody({ block, kind, values, open }: { block: ToolBlock; kind: Kind; values: Values | null; open: boolean }) {
  const feedback = block.approval?.decision?.feedback;
  return (
    <div className="tool-body">
      <Inside block={block} kind={kind} values={values} open={open} />
      {feedback && <p className="hint" data-testid="feedback-given">{t.wordsGiven} {feedback}</p>}
      <Raw block={block} />
    </div>
  );
}

function Inside({ block, kind, values, open }: { block: ToolBlock; kind: Kind; values: Values | null; open: boolean }) {
  const output = block.output;
  if (kind === "command" || kind === "code") return <Command block={block} values={values} />;
  if (kind === "agent") return <NestedSteps block={block} question={wordOf(values, "question")} open={open} />;
  if (block.failed && output !== null) return <Code text={output} isTerminal />;
  if (kind === "diff" && values) return <Change block={block} values={values} />;
  if (kind === "search" && output !== null) return <Matches output={output} />;
  if (kind === "file" && output !== null && block.name !== "delete_file") {
    return <Code text={withoutNumbers(withoutCut(output), values)} language={languageOf(wordOf(values, "path"))} from={typeof values?.offset === "number" ? values.offset : 1} testid="file-content" />;
  }
  if (Array.isArray(values?.steps) && kind === "tasks") return <PlanList steps={values!.steps.map(String)} />;
  if (kind === "tasks" && output !== null) return <Code text={output} />;
  if (kind === "list" && output !== null) return <Names output={output} />;
  if (kind === "web" && output !== null) return <><p className="hint" data-testid="fetched">{t.fetched(wordOf(values, "url"), output.length)}</p><Code text={output} language={guess(output)} /></>;
  return (
    <>
      <Arguments values={values} raw={block.input} />
      {block.live && <Code text={block.live} live />}
      {output !== null && <><h4>{t.output}</h4><Code text={output} language={guess(output)} /></>}
    </>
  );
}

// The text without a last line that says that the rest was cut.
const withoutCut = (text: string): string => {
  const line = text.lastIndexOf("\n(cut: ");
  return line >= 0 && text.endsWith(")") && text.indexOf("\n", line + 1) < 0 ? text.slice(0, line) : text;
};

// The card numbers the lines itself.
const withoutNumbers = (text: string, values: Values | null): string => (values?.line_numbers === true ? text.replace(/^\d+\t/gm, "") : text);

const guess = (text: string): string => (/^\s*[{[]/.test(text) ? "json" : /^\s*</.test(text) ? "xml" : "");

function Command({ block, values }: { block: ToolBlock; values: Values | null }) {
  const text = wordOf(values, "command") || wordOf(values, "code");
  const language = block.name === "run_code" ? wordOf(values, "language") : "shell";
  const output = block.output ?? block.live;
  const end = block.failed ? commandEnd(output) : "";
  return (
    <div className="terminal">
      <div className="code-head"><span data-testid="language">{values?.background === true ? t.inBackground(language) : language}</span><CopyButton text={text} /></div>
      <Code text={text} language={languageOf(language)} label={t.input} testid="command" />
      {(output !== "" || block.output !== null) && (
        <>
          <div className="code-head"><span>{t.output}</span>{output !== "" && <CopyButton text={output} />}</div>
          {endAt(output) === 0 ? <p className="hint">{t.noOutput}</p> : <Code text={output.slice(0, endAt(output))} isTerminal live={block.output === null} testid="command-output" />}
        </>
      )}
      {block.output !== null && (!block.failed || end) && <p className={block.failed ? "bad exit" : "good exit"} data-testid="exit">{block.failed ? end : t.exitedWell}</p>}
    </div>
  );
}

function Change({ block, values }: { block: ToolBlock; values: Values | null }) {
  const change = changeThatRan(block);
  if (block.name === "apply_patch") return <Code text={wordOf(values, "input")} language="diff" testid="patch" />;
  // Line numbers are unknown without the file.
  return change ? <Diff before={change.before} after={change.after} path={wordOf(values, "path")} />
    : block.name === "edit_file" ? <>{editsOf(values).map((each, i) => <Diff key={i} before={each.old_text} after={each.new_text} numbered={false} path={wordOf(values, "path")} />)}</>
      : <Diff before="" after={wordOf(values, "content")} path={wordOf(values, "path")} />;
}

// Found lines, file by file.
function Matches({ output }: { output: string }) {
  const files = new Map<string, [string, string][]>();
  const rest: string[] = [];
  for (const line of output.split("\n")) {
    const found = /^(.+?):(\d+): ?(.*)$/.exec(line);
    if (!found) rest.push(line);
    else files.set(found[1]!, [...(files.get(found[1]!) ?? []), [found[2]!, found[3]!]]);
  }
  return (
    <div className="matches" data-testid="matches">
      {[...files].map(([file, lines]) => (
        <section key={file} aria-label={file} data-testid="match-file">
          <h4><span className="path">{spelled(file)}</span> <span className="badge">{lines.length}</span></h4>
          <ol>{lines.map(([number, text]) => <li key={number} data-number={number}><code>{spelled(text)}</code></li>)}</ol>
        </section>
      ))}
      {rest.join("") && <p className="hint">{spelled(rest.join("\n"))}</p>}
    </div>
  );
}

function Names({ output }: { output: string }) {
  return <ul className="names" data-testid="names">{output.split("\n").map((name, i) => <li key={i} className={name.endsWith("/") ? "folder" : ""}>{spelled(name)}</li>)}</ul>;
}

// Arguments and result as sent over the wire.
function Raw({ block }: { block: ToolBlock }) {
  const [shown, toggle] = useFold(`raw/${block.id}/${block.round}/${block.input.length}`, false);
  return (
    <div className="raw">
      <button type="button" className="quiet tiny" aria-expanded={shown} data-testid="raw" onClick={toggle}>{shown ? t.hideRaw : t.showRaw}</button>
      {shown && (
        <>
          <div className="code-head"><span>{block.name} · {t.input}</span><CopyButton text={block.input} /></div>
          <Code text={pretty(block.input)} language="json" label={t.input} testid="raw-input" />
          {block.output !== null && <><div className="code-head"><span>{t.output}</span><CopyButton text={block.output} /></div><Code text={block.output} testid="raw-output" /></>}
        </>
      )}
    </div>
  );
}

function pretty(json: string): string {
  try {
    return writeExact(parseExact(json), 2);
  } catch {
    return json;
  }
}

// Draws the blocks of a turn. A card is one of these blocks, so it gets the way to draw them from outside.
export const BlocksOf = createContext<(props: { turn: Turn; running: boolean }) => JSX.Element>(() => <></>);

// A sub-agent's thinking, calls and text, live and afterwards.
function NestedSteps({ block, question, open }: { block: ToolBlock; question: string; open: boolean }) {
  const Blocks = useContext(BlocksOf);
  const { nested } = block;
  const running = open && block.output === null;
  // The sub-agent's answer is the output of the call.
  const answered = nested?.blocks.some((each) => each.kind === "text" && each.final) ?? false;
  return (
    <section className="nested" data-testid="nested" aria-label={t.nested}>
      <p className="nested-question" dir="auto">{question}</p>
      {nested && <Blocks turn={nested} running={running} />}
      {running && <p className="faint busy">…</p>}
      {block.output !== null && !answered && (block.failed ? <p className="bad">{block.output}</p> : <Markdown text={block.output} open={false} />)}
      {nested && nested.input + nested.output > 0 && <p className="hint">{t.tokens(nested.input + nested.output)}</p>}
    </section>
  );
}
