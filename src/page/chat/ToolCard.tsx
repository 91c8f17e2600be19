import { createContext, memo, useContext } from "react";
import { duration, useNow } from "../parts/time";
import { Icon, IconName } from "../parts/Icon";
import { wasAnsweredElsewhere } from "../store/feed";
import type { ToolBlock } from "../store/turn";
import { t } from "../texts";
import { ApprovalCard } from "./ApprovalCard";
import { GivenFiles } from "./Attachments";
import { changeThatRan, editsOf, type TextEdit, wasChanged } from "./changes";
import { ChangeCount } from "./Diff";
import { writeExact } from "./exact";
import { useFold } from "./folding";
import { spelled } from "./hidden";
import { InputCard } from "./InputCard";
import { commandEnd, Kind, kindOf, ToolBody } from "./ToolBody";
import { argumentsOf, summary, titleOf, Values, wordOf } from "./values";

const ICONS: Record<Kind, IconName> = {
  command: "command", code: "code", diff: "diff", file: "file", list: "folder", search: "search", web: "web", agent: "agent", tasks: "tasks", question: "question", mcp: "plug",
  other: "tool",
};

// One call: a line that says what it did, and the details when it is open.
export const ToolCard = memo(function ToolCard({ block, id, open }: { block: ToolBlock; id: string; open: boolean; version: number }) {
  const kind = kindOf(block.name);
  const waits = open && block.approval !== undefined && !block.approval.decision && block.output === null;
  const asks = open && block.question !== undefined && !block.question.answered && block.output === null;
  const running = open && block.output === null && !waits && !asks;
  const [shown, toggle] = useFold(`tool/${id}`, running && (kind === "command" || kind === "code" || kind === "agent"), true);
  const now = useNow(running && block.from > 0);
  const values = argumentsOf(block.input);
  const decision = block.approval?.decision;
  const taken = block.from > 0 ? (running ? now : block.to) - block.from : -1;
  // What a person has denied, or nobody answered in time, has not failed: it did not run.
  const state = waits || asks ? "waits" : running ? "running" : decision && !decision.approved && block.output !== null ? "denied" : block.failed ? "failed" : block.output === null ? "cut" : "done";
  return (
    <article className={`tool ${kind} ${state}`} data-testid="tool-card" data-tool={block.name} data-state={state}>
      <button type="button" className="tool-head" aria-expanded={shown} title={block.name} onClick={toggle}>
        <span className="tool-icon"><Icon name={ICONS[kind]} size={16} /></span>
        <span className="tool-name">{titleOf(block.name)}</span>
        <span className="tool-what">{spelled(summary(block.name, values))}</span>
        {block.question?.answered && <span className="badge title" data-testid="answer-given" dir="auto">{spelled(answerTo(block.question.response ?? null))}</span>}
        <Count block={block} values={values} />
        {decision && <span className={`badge ${decision.approved ? "" : "warned"}`} data-testid="decision">{decisionText(block)}</span>}
        {wasChanged(block) && <span className="badge warned" data-testid="changed-arguments">{t.argumentsChanged}</span>}
        <State block={block} state={state} />
        {taken >= 0 && <span className="number" data-testid="tool-time">{duration(running ? Math.max(1000, taken) : taken)}</span>}
        <Icon name={shown ? "down" : "forward"} size={14} />
      </button>
      {waits && block.approval && <ApprovalCard approval={block.approval} tool={block.approval.tool_name} />}
      {asks && block.question && <InputCard input={block.question} />}
      {shown && <ToolBody block={block} kind={kind} values={values} open={open} />}
      <GivenFiles chat={block.chat} files={block.files} label={t.filesMade} className="made" />
    </article>
  );
});

// What a person answered to a question, in one line: a text, or the values of a form.
function answerTo(response: string | null): string {
  if (response === null) return t.declined;
  const values = Object.values(argumentsOf(response) ?? { response }).map((each) => (typeof each === "string" ? each : writeExact(each)));
  return values.join(", ").trim().replace(/\s+/g, " ").slice(0, 160) || t.answered;
}

// Whether the card is in a replay before its end, where an unfinished call is still running and not cut off.
export const IsPlayed = createContext(false);

function State({ block, state }: { block: ToolBlock; state: string }) {
  const isPlayed = useContext(IsPlayed) && state === "cut";
  if (state === "waits" || (isPlayed && block.approval && !block.approval.decision)) return <span className="badge warned">{t.waiting}</span>;
  if (state === "running" || isPlayed) return <span className="badge live"><span className="dot" aria-hidden="true" />{t.running}</span>;
  if (state === "cut") return <span className="badge">{t.neverRan}</span>;
  if (state !== "failed") return null;
  const end = commandEnd(block.output ?? "");
  return <span className="badge bad" data-testid="tool-failed">{end || t.failed}</span>;
}

function Count({ block, values }: { block: ToolBlock; values: Values | null }) {
  if (!values || block.failed) return null;
  const change = changeThatRan(block);
  if (block.name === "edit_file") return <ChangeCount before={change?.before ?? allOf(editsOf(values), "old_text")} after={change?.after ?? allOf(editsOf(values), "new_text")} />;
  if (block.name === "write_file") return <ChangeCount before={change?.before ?? ""} after={change?.after ?? wordOf(values, "content")} />;
  return null;
}

const allOf = (edits: TextEdit[], member: "old_text" | "new_text"): string => edits.map((each) => each[member]).join("\n");

// The decision, its scope, and whether it was given elsewhere.
function decisionText(block: ToolBlock): string {
  const decision = block.approval!.decision!;
  if (decision.expired) return t.expired;
  if (decision.superseded) return t.superseded;
  const how = decision.outside_sandbox ? t.approved(t.outside, "") : decision.approved ? t.approved(t.scopes[decision.scope ?? "once"] ?? "", decision.scope ?? "once") : t.rejected;
  return wasAnsweredElsewhere(block.approval!.approval_id) ? t.elsewhere(how) : how;
}
