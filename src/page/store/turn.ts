// One interaction as it is drawn: its events folded into blocks. The same fold serves live and stored interactions and
// the replay scrubber.
import type { Attachment, ChatListEntry, Event, PendingApproval, PendingInput, Status, Task, WebSource } from "../wire";

export type { Attachment, PendingApproval, PendingInput, Task, WebSource };
// Names for types that the wire calls by other words, or does not name.
export type AgentEvent = Extract<Event, { seq: number; type: string }>;
export type Chat = ChatListEntry;

// What to do with files of the workspace when a chat moves back or forward.
export type FilesChoice = { files?: "restore"; force?: boolean; allow_imported?: boolean };

// The decision that lets one call run outside its sandbox.
export const OUTSIDE = "approve_outside_sandbox";
export interface Approval {
  approval_id: string;
  tool_name: string; // the call's, or "network": whether the running command may reach a host
  tool_input: string;
  tool_input_escaped?: string;
  arguments_digest: string;
  reason: string;
  risk: string;
  allowed_decisions: string[];
  patterns?: { pattern: string; means: string }[]; // patterns that may be allowed, with their meanings
  modes?: string[]; // of a plan: those with which it may be approved
  expires_at: string | null;
  decision?: { approved: boolean; feedback?: string | null; scope?: string; expired?: boolean; superseded?: boolean; tool_input?: string; outside_sandbox?: boolean };
}
interface Common {
  key: number;
  version: number; // of what is drawn of it
}
export interface TextBlock extends Common {
  kind: "text" | "thinking";
  text: string;
  open: boolean;
  final: boolean; // whether it is the answer
  round: number;
  from: number; // begin and end in ms; 0: unknown
  to: number;
}
export interface ToolBlock extends Common {
  kind: "tool";
  id: string;
  name: string;
  input: string;
  live: string;
  output: string | null;
  failed: boolean;
  files: Attachment[]; // given by the tool beside its text
  chat: string;
  from: number;
  to: number;
  round: number;
  approval?: Approval;
  question?: PendingInput & { response?: string | null; answered?: boolean };
  nested: Turn | null; // the work of its sub-agent
}
export interface NoteBlock extends Common {
  kind: "note";
  what: "retry" | "compacted" | "cleared" | "sent_back" | "loop" | "same_error" | "no_progress" | "cancelled" | "error" | "tasks" | "plan" | "job_started" | "job_ended" | "web_search" | "sources";
  code: string;
  text: string;
  retryable: boolean;
  until?: number; // time of the next try
  tasks?: Task[];
  steps?: string[];
  pages?: WebSource[]; // found by a search, or cited by the text before
}
export type Block = TextBlock | ToolBlock | NoteBlock;

export interface Turn {
  id: string;
  chat: string;
  parent: string | null;
  editedFrom: string | null;
  whatIf: number | null; // the event of editedFrom at which a kept what-if began
  message: string | null; // null: unknown yet
  attachments: Attachment[];
  status: Status;
  model: string;
  createdAt: string;
  blocks: Block[];
  events: AgentEvent[]; // without deltas
  held: boolean; // false: its blocks and events were let go, to be read again when needed
  stale: boolean; // the feed was reset: later events replace these
  waiting: AgentEvent[] | null; // arrived while earlier events are read
  size: number; // characters held
  height: number; // pixels, when it was let go
  lastSeq: number; // of the events taken
  input: number; // tokens
  output: number;
  cacheRead: number; // tokens of the input read from and written to the provider's cache
  cacheWrite: number;
  context: number; // tokens of the last request
  window: number; // the model's context window as the server reported it
  limit: number; // tokens beyond which older messages are summarized
  version: number;
}

export const NONE = -1;

// Who plays what a model speaks: nobody, unless a turn was spoken in this window.
export const sounds = { hear: (_chat: string, _samples: string): void => undefined };

export function newTurn(chat: string, id: string): Turn {
  return {
    id, chat, parent: null, editedFrom: null, whatIf: null, message: null, attachments: [], status: "RUNNING", model: "", createdAt: "", blocks: [],
    events: [], held: true, stale: false, waiting: null, size: 0, height: 0, lastSeq: NONE, input: 0, output: 0, cacheRead: 0, cacheWrite: 0, context: 0, window: 0, limit: 0, version: 0,
  };
}

export const isRunning = (turn: Turn): boolean => turn.status === "RUNNING" || turn.status.startsWith("WAITING");

// The texts of the model, or the final ones alone.
export const textOf = (turn: Turn, isFinal = false, between = "\n\n"): string =>
  turn.blocks.flatMap((block) => (block.kind === "text" && (block.final || !isFinal) ? [block.text] : [])).join(between);

// In ms; 0: not known.
export const timeOf = (event: AgentEvent | undefined): number => (event && "at" in event && event.at ? Date.parse(event.at) : 0);

// The newest block that fits. Stops at earlier rounds, because a turn may have thousands of blocks.
function newest<T extends Block>(turn: Turn, round: number, fits: (block: Block) => block is T): T | undefined {
  for (let i = turn.blocks.length - 1; i >= 0; --i) {
    const block = turn.blocks[i]!;
    if (fits(block)) return block;
    if (block.kind !== "note" && block.round < round) return undefined;
  }
  return undefined;
}

// The open block of this kind of text in this round, to be changed; a new one, from `now`, if there is none.
function openText(turn: Turn, kind: "text" | "thinking", round: number, now: number): TextBlock {
  let block = newest(turn, round, (each): each is TextBlock => each.kind === kind && each.open && each.round === round);
  if (!block) {
    block = { kind, key: turn.blocks.length, version: 0, text: "", open: true, final: false, round, from: now, to: 0 };
    turn.blocks.push(block);
  }
  block.version++;
  return block;
}

function addDelta(turn: Turn, kind: "text" | "thinking", round: number, text: string, live: boolean): void {
  const now = live ? Date.now() : 0;
  const block = openText(turn, kind, round, now);
  if (kind === "text" && block.text === "") closeThinking(turn, now);
  block.text += text;
}

function closeThinking(turn: Turn, now: number): void {
  for (let i = turn.blocks.length - 1; i >= 0; --i) {
    const block = turn.blocks[i]!;
    if (block.kind === "thinking" && block.open && block.to === 0) (block.to = now), block.version++;
    else if (block.kind === "tool") return;
  }
}

function closeText(turn: Turn, kind: "text" | "thinking", event: AgentEvent, text: string, final: boolean): void {
  const block = openText(turn, kind, event.round_index, 0);
  Object.assign(block, { text, final, open: false });
  if (block.to === 0 && block.from !== 0) block.to = timeOf(event);
}

// The block of the call in this round, to be changed; a new one if there is none.
function toolOf(turn: Turn, id: string, name: string, input: string, round: number): ToolBlock {
  let block = newest(turn, round, (each): each is ToolBlock => each.kind === "tool" && each.id === id && each.round === round);
  if (!block) {
    block = { kind: "tool", key: turn.blocks.length, version: 0, id, name, input, live: "", output: null, failed: false, files: [], chat: turn.chat, from: 0, to: 0, round, nested: null };
    turn.blocks.push(block);
  }
  block.version++;
  return block;
}

// The newest block of the call, to be changed.
function lastTool(turn: Turn, id: string): ToolBlock | undefined {
  const block = newest(turn, 0, (each): each is ToolBlock => each.kind === "tool" && each.id === id);
  if (block) block.version++;
  return block;
}

function note(turn: Turn, what: NoteBlock["what"], text: string, more: Partial<NoteBlock> = {}): void {
  turn.blocks.push({ kind: "note", key: turn.blocks.length, version: 0, what, text, code: "", retryable: false, ...more });
}

interface Usage {
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
}
function addUsage(turn: Turn, usage: Usage): void {
  turn.input += usage.input_tokens;
  turn.output += usage.output_tokens;
  turn.cacheRead += usage.cache_read_tokens ?? 0;
  turn.cacheWrite += usage.cache_write_tokens ?? 0;
}

function sizeOf(event: AgentEvent): number {
  let size = 300;
  for (const value of Object.values(event)) if (typeof value === "string") size += value.length;
  return size;
}

// Forgets the turn's events. They arrive again, or (without `held`) are read again when needed.
export function blank(turn: Turn, held = true): void {
  Object.assign(turn, { blocks: [], events: [], held, stale: false, size: 0, lastSeq: NONE, input: 0, output: 0, cacheRead: 0, cacheWrite: 0 });
  turn.version++;
}

// Takes one event. A repeated event changes nothing.
export function take(turn: Turn, event: AgentEvent, live = false): void {
  if (event.seq <= turn.lastSeq || (event.type === "INTERACTION_COMPLETE" && turn.events[turn.events.length - 1]?.type === event.type)) return;
  turn.lastSeq = event.seq;
  turn.version++;
  if (!event.type.endsWith("_DELTA")) turn.events.push(event), (turn.size += sizeOf(event));
  switch (event.type) {
    case "INTERACTION_STARTED":
      turn.parent = event.parent_id;
      turn.editedFrom = event.edited_from;
      turn.model = event.model;
      turn.attachments = event.attachments ?? turn.attachments;
      turn.createdAt = event.at;
      break;
    case "THINKING_DELTA":
      addDelta(turn, "thinking", event.round_index, event.content, live);
      break;
    case "SOUND_DELTA":
      if (live) sounds.hear(turn.chat, event.content);
      break;
    case "TEXT_DELTA":
      addDelta(turn, "text", event.round_index, event.content, live);
      break;
    case "THINKING":
      closeText(turn, "thinking", event, event.content, false);
      break;
    case "MESSAGE":
    case "ANSWER":
      closeText(turn, "text", event, event.content, event.type === "ANSWER");
      if (event.citations) note(turn, "sources", "", { pages: [...new Map(event.citations.map((page) => [page.url, page])).values()] });
      break;
    case "WEB_SEARCH":
      note(turn, "web_search", event.query, { code: event.error ?? String(event.results.length + (event.omitted ?? 0)), pages: event.results });
      break;
    case "APPROVAL_REQUIRED": {
      const block = toolOf(turn, event.call_id, event.tool_name, event.tool_input, event.round_index);
      block.approval = { ...event, decision: undefined };
      turn.status = "WAITING_APPROVAL";
      break;
    }
    case "APPROVED":
    case "REJECTED": {
      const block = lastTool(turn, event.call_id);
      if (block?.approval) block.approval.decision = { ...event, approved: event.type === "APPROVED" };
      if (event.type === "APPROVED" && event.tool_input && block) block.input = event.tool_input;
      turn.status = "RUNNING";
      break;
    }
    case "TOOL_CALL": {
      const block = toolOf(turn, event.id, event.tool_name, event.tool_input, event.round_index);
      block.input = event.tool_input;
      block.from = timeOf(event);
      break;
    }
    case "TOOL_OUTPUT_DELTA": {
      const block = lastTool(turn, event.id);
      if (block) block.live += event.content;
      break;
    }
    case "TOOL_RESULT": {
      const block = toolOf(turn, event.id, event.tool_name, "", event.round_index);
      block.output = event.tool_output;
      block.failed = event.is_error;
      block.files = event.files ?? [];
      block.live = "";
      block.to = timeOf(event);
      break;
    }
    case "INPUT_REQUIRED": {
      const block = lastTool(turn, event.call_id);
      if (block) block.question = { ...event, chat_id: turn.chat, interaction_id: turn.id } as ToolBlock["question"];
      turn.status = "WAITING_INPUT";
      break;
    }
    case "INPUT_RECEIVED": {
      const block = lastTool(turn, event.call_id);
      if (block?.question) Object.assign(block.question, { answered: true, response: event.response });
      turn.status = "RUNNING";
      break;
    }
    case "NESTED": {
      const block = lastTool(turn, event.call_id);
      const step = event.event;
      // A call that a person was asked about has a block of its own.
      if (step.type === "TOOL_CALL" || step.type === "TOOL_RESULT") {
        const own = lastTool(turn, `${event.call_id}/${step.id}`);
        if (own && step.type === "TOOL_CALL") own.from = timeOf(event);
        else if (own && step.type === "TOOL_RESULT") Object.assign(own, { output: step.tool_output, failed: step.is_error, files: step.files ?? [], to: timeOf(event) });
      }
      if (block) {
        block.nested ??= newTurn(turn.chat, `${turn.id}/${block.id}`);
        // Steps are ordinary events without number and time.
        take(block.nested, { ...event.event, seq: block.nested.lastSeq + 1, at: event.at } as unknown as AgentEvent, live);
      }
      break;
    }
    case "USAGE":
      addUsage(turn, event);
      turn.context = event.context_tokens ?? event.input_tokens + event.output_tokens;
      turn.window = event.context_window ?? 0;
      turn.limit = event.context_limit ?? 0;
      break;
    case "RETRY":
      note(turn, "retry", event.message, { code: event.code, until: timeOf(event) + event.delay_ms });
      break;
    case "COMPACTED":
      turn.context = event.tokens_after;
      turn.limit = event.budget;
      note(turn, event.results ? "cleared" : "compacted", event.summary ?? "", { code: `${event.tokens_before} → ${event.tokens_after}` });
      break;
    case "SENT_BACK":
      note(turn, "sent_back", event.content, {});
      break;
    case "LOOP_DETECTED":
      note(turn, event.pattern === "same_error" || event.pattern === "no_progress" ? event.pattern : "loop", event.tool_name, { code: String(event.count) });
      break;
    case "JOB_STARTED":
      note(turn, "job_started", event.command, { code: event.job_id });
      break;
    case "JOB_ENDED":
      note(turn, "job_ended", event.command, { code: event.status === undefined ? event.reason : `${event.reason} ${event.status}` });
      break;
    case "TASK_UPDATED":
      note(turn, "tasks", "", { code: event.call_id, tasks: event.tasks });
      break;
    case "PLAN_UPDATED":
      note(turn, "plan", "", { code: event.call_id, steps: event.steps });
      break;
    case "CANCELLED":
      note(turn, "cancelled", event.reason);
      turn.status = "CANCELLED";
      break;
    case "ERROR":
      note(turn, "error", event.message, { code: event.code, retryable: event.retryable });
      break;
    case "INTERACTION_COMPLETE":
      turn.status = event.status;
      closeThinking(turn, timeOf(event));
      for (const block of turn.blocks) if (block.kind !== "tool" && block.kind !== "note" && block.open) (block.open = false), block.version++;
      break;
  }
}
