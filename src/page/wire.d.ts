// Written by scripts/page-types from schemas/openapi.json.

export interface AgentState {
  messages: Message[];
  grants: Grant[];
  linked?: StateLink;
  kept_messages?: number;
  tasks?: Task[];
  plan?: string[];
  compaction?: Compaction;
  memory?: Entity[];
}

export interface AguiEvent {
  type: "RUN_STARTED" | "RUN_FINISHED" | "RUN_ERROR" | "TEXT_MESSAGE_START" | "TEXT_MESSAGE_CONTENT" | "TEXT_MESSAGE_END" | "REASONING_START" | "REASONING_MESSAGE_START" | "REASONING_MESSAGE_CONTENT" | "REASONING_MESSAGE_END" | "REASONING_END" | "TOOL_CALL_START" | "TOOL_CALL_ARGS" | "TOOL_CALL_END" | "TOOL_CALL_RESULT" | "STATE_SNAPSHOT" | "STATE_DELTA" | "MESSAGES_SNAPSHOT" | "ACTIVITY_SNAPSHOT" | "ACTIVITY_DELTA" | "SUBAGENT_STARTED" | "SUBAGENT_FINISHED" | "SUBAGENT_ERROR" | "CUSTOM";
}

export interface AguiRunInput {
  threadId: string;
  runId: string;
  parentRunId?: string;
  protocolVersion?: string;
  messages?: ({ id?: string; role: "user" | "assistant" | "tool" | "system" | "developer" | "reasoning" | "activity"; content?: unknown })[];
  tools?: Record<string, unknown>[];
  context?: { description?: string; value?: string }[];
  state?: unknown;
  forwardedProps?: unknown;
  resume?: ({ interruptId: string; status: "resolved" | "cancelled"; payload?: unknown })[];
}

export interface AnswerApprovalRequest {
  approval_id?: string;
  approved: boolean;
  arguments?: Record<string, unknown> | string;
  feedback?: string;
  scope?: "once" | "chat" | "always";
  arguments_digest?: string;
  pattern?: string;
  expires_in_s?: number;
}

export interface AnswerEvent {
  type: "ANSWER";
  seq: number;
  round_index: number;
  at: Timestamp;
  content: string;
  truncated?: true;
  reason?: string;
}

export type ApprovalId = string;

export type ApprovalMode = "ask" | "read_only" | "approve_all" | "deny_all";

export interface ApprovalRequiredEvent {
  type: "APPROVAL_REQUIRED";
  seq: number;
  round_index: number;
  at: Timestamp;
  approval_id: ApprovalId;
  call_id: string;
  tool_name: string;
  tool_input: string;
  tool_input_escaped?: string;
  arguments_digest: Digest;
  terms_digest?: Digest;
  reason: string;
  risk: "low" | "medium" | "high";
  allowed_decisions: string[];
  patterns?: { pattern: string; means: string }[];
  created_at: Timestamp;
  expires_at: Timestamp | null;
}

export interface Approvals {
  approvals: PendingApproval[];
  inputs: PendingInput[];
}

export interface ApproveRequest {
  approval_id: string;
  approved: boolean;
  arguments?: Record<string, unknown> | string;
  feedback?: string;
  scope?: "once" | "chat" | "always";
  arguments_digest?: string;
  pattern?: string;
  expires_in_s?: number;
}

export interface ApproveResponse {
  status: "processed";
  approval_id: ApprovalId;
  approved: boolean;
}

export interface ApprovedEvent {
  type: "APPROVED";
  seq: number;
  round_index: number;
  at: Timestamp;
  approval_id: ApprovalId;
  call_id: string;
  answered_by?: string;
  arguments_digest: Digest;
  scope: "once" | "chat" | "always";
  pattern?: string;
  grant_expires_at?: Timestamp;
  tool_input?: string;
  feedback?: string;
}

export interface AttachWorkspaceFileRequest {
  path: string;
}

export interface Attachment {
  id: FileId;
  filename: string;
  mime_type: string;
  size_bytes: number;
  note?: string;
}

export interface Audit {
  entries: AuditEntry[];
  next: number | null;
  ok: boolean;
  problems: { kind: string; message: string }[];
}

export interface AuditEntry {
  seq: number;
  at: Timestamp;
  event: "started" | "ended" | "approved" | "rejected" | "refused" | "pruned" | "mode_changed";
  chat_id: ChatId;
  interaction_id: InteractionId | "";
  call_id: string;
  tool_name: string;
  decided_by?: string[];
  arguments_digest: Digest;
  reason?: "default" | "mode" | "grant" | "standing_grant" | "rule" | "approval" | "once" | "chat" | "always" | "expired" | "superseded" | "unknown_tool" | "invalid_arguments" | "confirmation" | "loop" | "cancelled" | "rate" | "hook" | "would_fail" | "ask" | "read_only" | "approve_all" | "deny_all" | "server";
  approval_id?: string;
  answered_by?: string;
  is_error?: boolean;
  duration_ms?: number;
  exit_status?: number;
  previous: Digest | null;
  mac?: string;
}

export interface BranchRemoved {
  status: "deleted";
  chat_id: ChatId;
  interactions: InteractionId[];
}

export interface CancelResponse {
  status: "cancelling" | "COMPLETED" | "FAILED" | "CANCELLED";
  interaction_id: InteractionId;
  message: string;
}

export interface CancelledEvent {
  type: "CANCELLED";
  seq: number;
  round_index: number;
  at: Timestamp;
  reason: "requested" | "client_disconnected" | "server_stopping" | "chat_deleted" | "replaced";
}

export interface ChangeChatRequest {
  title?: string;
  approval_mode?: "ask" | "read_only" | "approve_all" | "deny_all" | null;
  model?: string | null;
}

export interface ChatChange {
  chat_id: ChatId;
  chat: ChatListEntry | null;
  interaction_id?: InteractionId;
  approval_id?: ApprovalId;
  approval?: PendingApproval;
  request_id?: RequestId;
  request?: PendingInput;
}

export interface ChatDeleted {
  status: "deleted";
  chat_id: ChatId;
}

export interface ChatEvent {
  chat_id: ChatId;
  interaction_id: InteractionId;
  event: Record<string, unknown>;
}

export interface ChatFile {
  id: FileId;
  filename: string;
  mime_type: string;
  size_bytes: number;
  digest: string;
  created_at: Timestamp;
}

export interface ChatFiles {
  files: FileInfo[];
  damaged?: { file_id: FileId; error: { code: string; message: string } }[];
}

export interface ChatGrants {
  grants: NamedGrant[];
}

export interface ChatHistory {
  id: ChatId;
  title: string;
  created_at: Timestamp;
  updated_at: Timestamp;
  forked_from?: Origin;
  approval_mode?: ApprovalMode;
  chosen_model?: string;
  head: InteractionId | null;
  interactions: HistoryEntry[];
  damaged?: DamagedInteraction[];
  usage?: UsageTotal;
  previous?: InteractionId | null;
}

export type ChatId = string;

export interface ChatList {
  chats: (ChatListEntry | UnreadableChat)[];
  next: string | null;
}

export interface ChatListEntry {
  id: ChatId;
  title: string;
  created_at: Timestamp;
  updated_at: Timestamp;
  head: InteractionId | null;
  status: "idle" | "running" | "waiting";
  head_status: Status | null;
  waiting: number;
  model: string | null;
  tokens: number | null;
  forked_from?: Origin;
  approval_mode?: ApprovalMode;
  chosen_model?: string;
}

export interface ChatSummary {
  id: ChatId;
  title: string;
  created_at: Timestamp;
  updated_at: Timestamp;
  head: InteractionId | null;
  forked_from?: Origin;
  approval_mode?: ApprovalMode;
  chosen_model?: string;
}

export interface ChatUsage {
  chat_id: ChatId;
  branch: UsageTotal;
  all: UsageTotal;
}

export interface ClientRequest {
  key: string;
  digest: string;
}

export interface CompactedEvent {
  type: "COMPACTED";
  seq: number;
  round_index: number;
  at: Timestamp;
  messages: number;
  tokens_before: number;
  tokens_after: number;
  budget: number;
  summary: string;
}

export interface Compaction {
  first: number;
  end: number;
  summary: string;
  requested?: boolean;
}

export type Cost = number | null;

export interface CreateChatRequest {
  id?: ChatId;
  title?: string;
}

export interface DamagedInteraction {
  interaction_id: InteractionId;
  error: { code: string; message: string };
}

export interface DayUsage {
  day: string;
  tokens: number | null;
  limit: number | null;
}

export type Digest = string;

export interface Divergence {
  seq: number;
  expected: Record<string, unknown> | null;
  actual: Record<string, unknown> | null;
  reason: string;
}

export interface EditPreview {
  dry_run: true;
  superseded: InteractionId[];
  side_effects: ({ interaction_id: InteractionId; call_id: string; tool_name: string; tool_input: string; path: string | null; failed: boolean })[];
  files: FilePreview[];
  omitted?: number;
}

export interface EditRequest {
  new_user_message: string;
  attachments?: FileId[];
  files?: "keep" | "restore";
  force?: boolean;
  allow_imported?: boolean;
  dry_run?: boolean;
  model?: string;
  stream?: boolean;
  on_disconnect?: "cancel" | "continue";
  if_running?: "reject" | "cancel";
}

export type EditorAnswer = { content: string } | { done: true } | { output: string; is_error?: boolean; files?: { mime_type: string; filename?: string; content: string }[] } | { error: string };

export interface EditorAnswered {
  status: "processed";
  request_id: string;
}

export interface EditorCancel {
  request_id: string;
}

export type EditorRequest = { method: "read"; path: string; request_id: string } | { method: "write"; path: string; content: string; request_id: string } | { method: "call"; tool: string; arguments: Record<string, unknown>; terms: string; request_id: string };

export interface EditorTools {
  status: "processed";
  tools: number;
}

export interface EditorToolsRequest {
  tools: { name: string; description?: string; input_schema: { type: "object" }; server: string; terms?: string; any_arguments?: boolean }[];
}

export interface Entity {
  type: string;
  id: string;
  name?: string;
}

export interface Error {
  error: { code: string; message: string; retryable: boolean; details?: Record<string, unknown>; type?: string; param?: string | null };
}

export interface ErrorEvent {
  type: "ERROR";
  seq: number;
  round_index: number;
  at: Timestamp;
  code: string;
  message: string;
  retryable: boolean;
}

export type Event = InteractionStartedEvent | ThinkingDeltaEvent | TextDeltaEvent | ToolOutputDeltaEvent | InteractionCompleteEvent | ThinkingEvent | MessageEvent | AnswerEvent | ToolCallEvent | ToolResultEvent | ApprovalRequiredEvent | ApprovedEvent | RejectedEvent | InputRequiredEvent | InputReceivedEvent | TaskUpdatedEvent | PlanUpdatedEvent | GrantsUpdatedEvent | FilesChangedEvent | UsageEvent | RetryEvent | LoopDetectedEvent | CompactedEvent | NestedEvent | CancelledEvent | ErrorEvent | StreamOpenFrame | StreamLiveFrame | QueuedFrame;

export interface EventsPage {
  events: (InteractionStartedEvent | ThinkingDeltaEvent | TextDeltaEvent | ToolOutputDeltaEvent | InteractionCompleteEvent | ThinkingEvent | MessageEvent | AnswerEvent | ToolCallEvent | ToolResultEvent | ApprovalRequiredEvent | ApprovedEvent | RejectedEvent | InputRequiredEvent | InputReceivedEvent | TaskUpdatedEvent | PlanUpdatedEvent | GrantsUpdatedEvent | FilesChangedEvent | UsageEvent | RetryEvent | LoopDetectedEvent | CompactedEvent | NestedEvent | CancelledEvent | ErrorEvent)[];
  next_seq: number;
}

export interface FileChange {
  path: string;
  before: string | null;
  after: string | null;
  exists: boolean;
}

export interface FileDeleted {
  status: "deleted";
  file_id: FileId;
}

export type FileId = string;

export interface FileInfo {
  id: FileId;
  filename: string;
  mime_type: string;
  size_bytes: number;
  digest: string;
  created_at: Timestamp;
}

export interface FilePreview {
  path: string;
  change: "created" | "modified" | "deleted";
  conflict: boolean;
  reason?: "changed" | "not_kept" | "lost" | "out_of_reach" | "not_empty" | "link_outside";
  imported?: true;
  diff?: string;
}

export interface FileVersion {
  type: "file" | "link" | "directory";
  mode?: string;
  size?: number;
  digest?: string;
  modified_ns?: number;
}

export interface FilesChangedEvent {
  type: "FILES_CHANGED";
  seq: number;
  round_index: number;
  at: Timestamp;
  call_id?: string;
  paths: string[];
  changes: WorkspaceChange[];
  omitted?: number;
}

export interface FilesPreview {
  dry_run: true;
  files: FilePreview[];
  omitted?: number;
}

export interface ForeignInteraction {
  status: "RUNNING" | "WAITING_APPROVAL" | "WAITING_INPUT" | "COMPLETED" | "FAILED" | "CANCELLED";
  user_message: string;
}

export interface ForkRequest {
  interaction_id: InteractionId;
  files?: "keep" | "restore";
  force?: boolean;
  allow_imported?: boolean;
  dry_run?: boolean;
  chat_id?: ChatId;
  title?: string;
}

export interface Grant {
  tool_name: string;
  arguments_digest?: Digest;
  terms_digest?: Digest;
  pattern?: string;
  means?: string;
  expires_at?: Timestamp;
  uses?: number;
  used_at?: Timestamp;
}

export type GrantId = string;

export interface GrantRevoked {
  status: "revoked";
  grant_id: GrantId;
}

export interface Grants {
  grants: StandingGrant[];
}

export interface GrantsUpdatedEvent {
  type: "GRANTS_UPDATED";
  seq: number;
  round_index: number;
  at: Timestamp;
  grants: NamedGrant[];
}

export interface Health {
  status: string;
  failing?: { code: string; message: string }[];
}

export interface HistoryEntry {
  schema: 1;
  id: InteractionId;
  chat_id: ChatId;
  parent_id: InteractionId | null;
  edited_from: InteractionId | null;
  status: Status;
  user_message: string;
  attachments?: Attachment[];
  agent_events: StoredEvent[];
  final_agent_state: AgentState | null;
  model: string;
  usage: Usage;
  error: InteractionError | null;
  created_at: Timestamp;
  completed_at: Timestamp | null;
  record?: RunRecord;
  imported?: true;
  superseded?: boolean;
}

export interface ImportRequest {
  id?: unknown;
  title?: unknown;
  created_at?: unknown;
  updated_at?: unknown;
  head?: unknown;
  interactions: ForeignInteraction[];
  files?: Record<string, unknown>[];
  blobs?: Record<string, unknown>[];
}

export interface Imported {
  id: ChatId;
  title: string;
  created_at: Timestamp;
  updated_at: Timestamp;
  head: InteractionId | null;
  status: Status | null;
  notes: string[];
}

export interface InputReceivedEvent {
  type: "INPUT_RECEIVED";
  seq: number;
  round_index: number;
  at: Timestamp;
  request_id: RequestId;
  call_id: string;
  answered_by?: string;
  response: string | null;
}

export interface InputRequiredEvent {
  type: "INPUT_REQUIRED";
  seq: number;
  round_index: number;
  at: Timestamp;
  request_id: RequestId;
  call_id: string;
  question: string;
  options: string[];
  schema?: string;
  url?: string;
}

export interface Instructions {
  files: ({ path: string; kind: "instructions" | "skill"; name?: string; description?: string; state: "used" | "new" | "changed" | "unusable"; digest?: string; text?: string; problem?: string })[];
}

export interface Interaction {
  schema: 1;
  id: InteractionId;
  chat_id: ChatId;
  parent_id: InteractionId | null;
  edited_from: InteractionId | null;
  status: Status;
  user_message: string;
  attachments?: Attachment[];
  agent_events: StoredEvent[];
  final_agent_state: AgentState | null;
  model: string;
  usage: Usage;
  error: InteractionError | null;
  created_at: Timestamp;
  completed_at: Timestamp | null;
  record?: RunRecord;
  imported?: true;
}

export interface InteractionCompleteEvent {
  type: "INTERACTION_COMPLETE";
  seq: number;
  round_index: number;
  at: Timestamp;
  interaction_id: InteractionId;
  status: "COMPLETED" | "FAILED" | "CANCELLED";
}

export interface InteractionDiff {
  interaction_id: InteractionId;
  files: ({ path: string; path_base64?: string; change: "created" | "modified" | "deleted"; before: FileVersion | null; after: FileVersion | null; diff: string })[];
  omitted?: number;
}

export interface InteractionError {
  code: string;
  message: string;
  retryable: boolean;
}

export type InteractionId = string;

export interface InteractionStartedEvent {
  type: "INTERACTION_STARTED";
  seq: number;
  round_index: number;
  at: Timestamp;
  interaction_id: InteractionId;
  chat_id: ChatId;
  parent_id: InteractionId | null;
  edited_from: InteractionId | null;
  model: string;
  attachments?: Attachment[];
}

export interface LoginRequest {
  token: string;
}

export interface LoopDetectedEvent {
  type: "LOOP_DETECTED";
  seq: number;
  round_index: number;
  at: Timestamp;
  tool_name: string;
  count: number;
  pattern?: "same_call" | "alternating" | "same_error" | "no_progress";
}

export interface McpMessage {
  jsonrpc: "2.0";
  id?: string | number;
  method?: string;
  params?: Record<string, unknown>;
  result?: Record<string, unknown>;
  error?: Record<string, unknown>;
}

export interface McpRefusal {
  jsonrpc?: "2.0";
  id?: string | number | null;
  error: { code: number | string; message: string; data?: Record<string, unknown>; retryable?: boolean; details?: Record<string, unknown> };
}

export interface Message {
  role: "system" | "user" | "assistant" | "tool";
  content: string | null | unknown[];
  tool_calls?: ToolCall[];
  tool_call_id?: string;
  name?: string;
  is_error?: boolean;
  provider_extras?: Record<string, unknown>;
}

export interface MessageEvent {
  type: "MESSAGE";
  seq: number;
  round_index: number;
  at: Timestamp;
  content: string;
}

export interface ModelUsage {
  model: string;
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
  cost: Cost;
}

export interface Models {
  models: { name: string; provider: string; context_window?: number; abilities?: { tools?: boolean; images?: boolean; pdf?: boolean; audio?: boolean; reasoning?: boolean }; prices?: { input: number; output: number; cache_read?: number; cache_write?: number } }[];
  default: string;
  audio: { transcription: string | null; speech: string | null };
}

export interface MoveHeadRequest {
  interaction_id: InteractionId;
  files?: "keep" | "restore";
  force?: boolean;
  allow_imported?: boolean;
  dry_run?: boolean;
}

export interface NamedGrant {
  id: GrantId;
  tool_name: string;
  arguments_digest?: Digest;
  terms_digest?: Digest;
  pattern?: string;
  expires_at?: Timestamp;
  uses?: number;
  used_at?: Timestamp;
  means?: string;
  outdated?: true;
}

export interface NestedEvent {
  type: "NESTED";
  seq: number;
  round_index: number;
  at: Timestamp;
  call_id: string;
  event: NestedStep;
}

export interface NestedStep {
  type: "THINKING" | "MESSAGE" | "ANSWER" | "TOOL_CALL" | "TOOL_RESULT" | "USAGE" | "RETRY" | "LOOP_DETECTED" | "COMPACTED" | "ERROR";
  round_index: number;
  content?: string;
  pattern?: string;
  truncated?: true;
  reason?: string;
  id?: string;
  tool_name?: string;
  tool_input?: string;
  tool_output?: string;
  is_error?: boolean;
  files?: Attachment[];
  input_tokens?: number;
  output_tokens?: number;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
  attempt?: number;
  delay_ms?: number;
  count?: number;
  messages?: number;
  tokens_before?: number;
  tokens_after?: number;
  budget?: number;
  summary?: string;
  code?: string;
  message?: string;
  retryable?: boolean;
}

export interface OpenaiChatCompletion {
  id: string;
  object: "chat.completion";
  created: number;
  model: string;
  choices: ({ index: number; message: { role: "assistant"; content: string | null; refusal: null; reasoning_content?: string; tool_calls?: OpenaiToolCall[] }; logprobs: null; finish_reason: "stop" | "length" | "content_filter" | "tool_calls" })[];
  usage: OpenaiUsage;
}

export interface OpenaiChatCompletionChunk {
  id: string;
  object: "chat.completion.chunk";
  created: number;
  model: string;
  choices: ({ index: number; delta: { role?: "assistant"; content?: string; reasoning_content?: string; tool_calls?: { index: number; id: string; type: "function"; function: { name: string; arguments: string } }[] }; logprobs: null; finish_reason: "stop" | "length" | "content_filter" | "tool_calls" | null })[];
  usage?: OpenaiUsage | null;
}

export interface OpenaiChatCompletionRequest {
  model: string;
  messages: ({ role: "system" | "developer" | "user" | "assistant" | "tool" | "function"; content?: string | OpenaiContentPart[] | null; tool_calls?: Record<string, unknown>[] | null; tool_call_id?: string })[];
  stream?: boolean;
  stream_options?: { include_usage?: boolean | null } | null;
  n?: 1;
  tools?: Record<string, unknown>[];
  metadata?: { chat_id?: string | null };
}

export interface OpenaiCompletedEvent {
  type: "response.completed";
  sequence_number: number;
  response: OpenaiResponse;
}

export type OpenaiContentPart = unknown;

export interface OpenaiContentPartAddedEvent {
  type: "response.content_part.added";
  sequence_number: number;
  item_id: string;
  output_index: number;
  content_index: number;
  part: { type: "output_text"; text: string; annotations: Record<string, unknown>[]; logprobs: Record<string, unknown>[] } | { type: "reasoning_text"; text: string };
}

export interface OpenaiContentPartDoneEvent {
  type: "response.content_part.done";
  sequence_number: number;
  item_id: string;
  output_index: number;
  content_index: number;
  part: { type: "output_text"; text: string; annotations: Record<string, unknown>[]; logprobs: Record<string, unknown>[] } | { type: "reasoning_text"; text: string };
}

export interface OpenaiConversation {
  id: string;
  object: "conversation";
  created_at: number;
  metadata: Record<string, unknown>;
}

export interface OpenaiConversationDeleted {
  id: string;
  object: "conversation.deleted";
  deleted: true;
}

export interface OpenaiConversationRequest {
  items?: OpenaiRequestItem[];
  metadata?: Record<string, unknown>;
}

export interface OpenaiCreatedEvent {
  type: "response.created";
  sequence_number: number;
  response: OpenaiResponse;
}

export interface OpenaiFailedEvent {
  type: "response.failed";
  sequence_number: number;
  response: OpenaiResponse;
}

export interface OpenaiFunctionCallArgumentsDeltaEvent {
  type: "response.function_call_arguments.delta";
  sequence_number: number;
  item_id: string;
  output_index: number;
  delta: string;
}

export interface OpenaiFunctionCallArgumentsDoneEvent {
  type: "response.function_call_arguments.done";
  sequence_number: number;
  item_id: string;
  output_index: number;
  call_id: string;
  name: string;
  arguments: string;
}

export interface OpenaiFunctionCallItem {
  type: "function_call";
  id: string;
  call_id: string;
  name: string;
  arguments: string;
  status: "in_progress" | "completed";
  namespace?: string;
}

export interface OpenaiInProgressEvent {
  type: "response.in_progress";
  sequence_number: number;
  response: OpenaiResponse;
}

export interface OpenaiIncompleteEvent {
  type: "response.incomplete";
  sequence_number: number;
  response: OpenaiResponse;
}

export interface OpenaiInputItem {
  type: "message";
  id: string;
  status: "completed";
  role: "user";
  content: ({ type: "input_text" | "input_file"; text?: string; file_id?: string; filename?: string })[];
}

export interface OpenaiInputTokens {
  object: "response.input_tokens";
  input_tokens: number;
}

export type OpenaiItem = OpenaiInputItem | OpenaiMessageItem | OpenaiReasoningItem;

export interface OpenaiItems {
  object: "list";
  data: (OpenaiInputItem | OpenaiMessageItem | OpenaiReasoningItem)[];
  first_id: string | null;
  last_id: string | null;
  has_more: boolean;
}

export interface OpenaiItemsRequest {
  items: OpenaiRequestItem[];
}

export interface OpenaiMessageItem {
  type: "message";
  id: string;
  status: "in_progress" | "completed" | "incomplete";
  role: "assistant";
  content: { type: "output_text"; text: string; annotations: Record<string, unknown>[]; logprobs: Record<string, unknown>[] }[];
}

export interface OpenaiModel {
  id: string;
  object: "model";
  created: number;
  owned_by: string;
}

export interface OpenaiModels {
  object: "list";
  data: OpenaiModel[];
}

export interface OpenaiOutputItemAddedEvent {
  type: "response.output_item.added";
  sequence_number: number;
  output_index: number;
  item: OpenaiMessageItem | OpenaiReasoningItem | OpenaiFunctionCallItem;
}

export interface OpenaiOutputItemDoneEvent {
  type: "response.output_item.done";
  sequence_number: number;
  output_index: number;
  item: OpenaiMessageItem | OpenaiReasoningItem | OpenaiFunctionCallItem;
}

export interface OpenaiOutputTextDeltaEvent {
  type: "response.output_text.delta";
  sequence_number: number;
  item_id: string;
  output_index: number;
  content_index: number;
  delta: string;
  logprobs: Record<string, unknown>[];
}

export interface OpenaiOutputTextDoneEvent {
  type: "response.output_text.done";
  sequence_number: number;
  item_id: string;
  output_index: number;
  content_index: number;
  text: string;
  logprobs: Record<string, unknown>[];
}

export interface OpenaiReasoningItem {
  type: "reasoning";
  id: string;
  status: "in_progress" | "completed" | "incomplete";
  summary: { type: "summary_text"; text: string }[];
  content: { type: "reasoning_text"; text: string }[];
}

export interface OpenaiReasoningSummaryPartAddedEvent {
  type: "response.reasoning_summary_part.added";
  sequence_number: number;
  item_id: string;
  output_index: number;
  summary_index: number;
  part: { type: "summary_text"; text: string };
}

export interface OpenaiReasoningSummaryPartDoneEvent {
  type: "response.reasoning_summary_part.done";
  sequence_number: number;
  item_id: string;
  output_index: number;
  summary_index: number;
  part: { type: "summary_text"; text: string };
}

export interface OpenaiReasoningSummaryTextDeltaEvent {
  type: "response.reasoning_summary_text.delta";
  sequence_number: number;
  item_id: string;
  output_index: number;
  summary_index: number;
  delta: string;
}

export interface OpenaiReasoningSummaryTextDoneEvent {
  type: "response.reasoning_summary_text.done";
  sequence_number: number;
  item_id: string;
  output_index: number;
  summary_index: number;
  text: string;
}

export interface OpenaiReasoningTextDeltaEvent {
  type: "response.reasoning_text.delta";
  sequence_number: number;
  item_id: string;
  output_index: number;
  content_index: number;
  delta: string;
}

export interface OpenaiReasoningTextDoneEvent {
  type: "response.reasoning_text.done";
  sequence_number: number;
  item_id: string;
  output_index: number;
  content_index: number;
  text: string;
}

export type OpenaiRequestItem = unknown;

export interface OpenaiResponse {
  id: string;
  object: "response";
  created_at: number;
  completed_at: number | null;
  status: "in_progress" | "completed" | "incomplete" | "failed" | "cancelled";
  incomplete_details: { reason: "max_output_tokens" | "content_filter" | "cancelled" } | null;
  model: string;
  previous_response_id: string | null;
  conversation: { id: string } | null;
  instructions: string | null;
  output: (OpenaiMessageItem | OpenaiReasoningItem | OpenaiFunctionCallItem)[];
  error: { message: string; type: string; param: string | null; code: string; retryable: boolean } | null;
  tools: Record<string, unknown>[];
  tool_choice: string | Record<string, unknown>;
  truncation: string;
  parallel_tool_calls: boolean;
  text: Record<string, unknown>;
  top_p: number;
  presence_penalty: number;
  frequency_penalty: number;
  top_logprobs: number;
  temperature: number;
  reasoning: Record<string, unknown> | null;
  usage: { input_tokens: number; input_tokens_details: { cached_tokens: number }; output_tokens: number; output_tokens_details: { reasoning_tokens: number }; total_tokens: number } | null;
  max_output_tokens: number | null;
  max_tool_calls: null;
  store: boolean;
  background: boolean;
  service_tier: string;
  metadata: Record<string, unknown>;
  user: null;
  safety_identifier: null;
  prompt_cache_key: null;
}

export interface OpenaiResponseDeleted {
  id: string;
  object: "response";
  deleted: true;
}

export type OpenaiResponseEvent = OpenaiCreatedEvent | OpenaiInProgressEvent | OpenaiCompletedEvent | OpenaiIncompleteEvent | OpenaiFailedEvent | OpenaiOutputItemAddedEvent | OpenaiOutputItemDoneEvent | OpenaiContentPartAddedEvent | OpenaiContentPartDoneEvent | OpenaiOutputTextDeltaEvent | OpenaiOutputTextDoneEvent | OpenaiReasoningSummaryPartAddedEvent | OpenaiReasoningSummaryPartDoneEvent | OpenaiReasoningSummaryTextDeltaEvent | OpenaiReasoningSummaryTextDoneEvent | OpenaiReasoningTextDeltaEvent | OpenaiReasoningTextDoneEvent | OpenaiFunctionCallArgumentsDeltaEvent | OpenaiFunctionCallArgumentsDoneEvent;

export interface OpenaiResponseRequest {
  model: string;
  input: string | OpenaiRequestItem[];
  instructions?: string;
  stream?: boolean;
  background?: boolean;
  previous_response_id?: string;
  conversation?: string | { id: string };
  tools?: Record<string, unknown>[];
  metadata?: { chat_id?: string | null };
}

export interface OpenaiSpeechRequest {
  input: string;
  model?: string;
  voice?: string | Record<string, unknown>;
  response_format?: "mp3" | "opus" | "aac" | "flac" | "wav";
}

export interface OpenaiStreamError {
  error: { message: string; type: string; param: string | null; code: string; retryable: boolean };
}

export interface OpenaiToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

export interface OpenaiUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
}

export interface Origin {
  chat_id: ChatId;
  interaction_id: InteractionId;
}

export interface PendingApproval {
  chat_id: ChatId;
  interaction_id: InteractionId;
  approval_id: ApprovalId;
  call_id: string;
  tool_name: string;
  tool_input: string;
  tool_input_escaped?: string;
  arguments_digest: Digest;
  terms_digest?: Digest;
  reason: string;
  risk: "low" | "medium" | "high";
  allowed_decisions: string[];
  patterns?: { pattern: string; means: string }[];
  created_at: Timestamp;
  expires_at: Timestamp | null;
}

export interface PendingInput {
  chat_id: ChatId;
  interaction_id: InteractionId;
  request_id: RequestId;
  call_id: string;
  question: string;
  options: string[];
  schema?: string;
  url?: string;
}

export interface PlanUpdatedEvent {
  type: "PLAN_UPDATED";
  seq: number;
  round_index: number;
  at: Timestamp;
  call_id?: string;
  steps: string[];
}

export interface Queue {
  queue: QueuedEntry[];
}

export interface QueueEntry {
  id: string;
  user_message: string;
  model: string | null;
  on_disconnect: "cancel" | "continue";
  created_at: Timestamp;
  error: null | { code: string; message: string };
}

export interface QueueRemoved {
  status: "removed";
  id: string;
}

export interface QueueRequest {
  user_message: string;
}

export interface QueuedEntry {
  id: string;
  user_message: string;
  model: string | null;
  on_disconnect: "cancel" | "continue";
  created_at: Timestamp;
  error: null | { code: string; message: string };
}

export interface QueuedFrame {
  id: string | null;
}

export interface RegenerateRequest {
  files?: "keep" | "restore";
  force?: boolean;
  allow_imported?: boolean;
  model?: string;
  stream?: boolean;
  on_disconnect?: "cancel" | "continue";
  if_running?: "reject" | "cancel";
}

export interface RejectedEvent {
  type: "REJECTED";
  seq: number;
  round_index: number;
  at: Timestamp;
  approval_id: ApprovalId;
  call_id: string;
  answered_by?: string;
  feedback?: string;
  expired?: boolean;
  superseded?: boolean;
}

export interface ReplayReport {
  mode: "recorded" | "live";
  match: boolean;
  events: number;
  chat_id?: string;
  interaction_id?: string;
  divergence: null | Divergence;
}

export interface ReplayRequest {
  mode: "events" | "recorded" | "live";
  speed?: number;
}

export type RequestId = string;

export interface RespondRequest {
  request_id: string;
  response?: string | Record<string, unknown>;
  declined?: boolean;
}

export interface RespondResponse {
  status: "processed";
  request_id: RequestId;
}

export interface ResumeRequest {
  model?: string;
  stream?: boolean;
  on_disconnect?: "cancel" | "continue";
  if_running?: "reject" | "cancel";
}

export interface RetryEvent {
  type: "RETRY";
  seq: number;
  round_index: number;
  at: Timestamp;
  attempt: number;
  delay_ms: number;
  code: string;
  message: string;
}

export interface RunRecord {
  first_message: number;
  resumed_from?: { interaction_id: InteractionId; call_ids: string[] };
  agenda_before?: { tasks?: Task[]; plan?: string[] };
  files_from?: InteractionId;
  traceparent?: string;
  request?: ClientRequest;
}

export interface SearchMatch {
  chat_id: ChatId;
  title: string;
  interaction_id: InteractionId;
  where: "user" | "answer" | "tool_call" | "tool_result";
  superseded: boolean;
  snippet: string;
}

export interface SearchMatches {
  matches: SearchMatch[];
  truncated: boolean;
}

export interface ServerLogin {
  open: string | null;
}

export interface ServerLogout {
  was_logged_in: boolean;
}

export interface SpeechRequest {
  text: string;
  voice?: string;
  model?: string;
  format?: "mp3" | "opus" | "aac" | "flac" | "wav";
}

export interface StandingGrant {
  id: GrantId;
  tool_name: string;
  arguments_digest?: Digest;
  terms_digest?: Digest;
  pattern?: string;
  expires_at?: Timestamp;
  uses?: number;
  used_at?: Timestamp;
  means?: string;
  outdated?: true;
  tool_input: string;
  created_at: Timestamp;
}

export interface StartRequest {
  user_message: string;
  attachments?: FileId[];
  compact?: boolean;
  model?: string;
  stream?: boolean;
  on_disconnect?: "cancel" | "continue";
  if_running?: "reject" | "cancel" | "queue";
}

export interface StateLink {
  kept: number;
  messages: number;
  bytes: number;
  digest: string;
  full_bytes: number;
  files: number;
  texts?: number[][];
  arguments?: number[][];
}

export type Status = "RUNNING" | "WAITING_APPROVAL" | "WAITING_INPUT" | "COMPLETED" | "FAILED" | "CANCELLED";

export type StoredEvent = ThinkingEvent | MessageEvent | AnswerEvent | ToolCallEvent | ToolResultEvent | ApprovalRequiredEvent | ApprovedEvent | RejectedEvent | InputRequiredEvent | InputReceivedEvent | TaskUpdatedEvent | PlanUpdatedEvent | GrantsUpdatedEvent | FilesChangedEvent | UsageEvent | RetryEvent | LoopDetectedEvent | CompactedEvent | NestedEvent | CancelledEvent | ErrorEvent;

export type StreamLiveFrame = Record<string, unknown>;

export interface StreamOpenFrame {
  status: Status;
  first_seq: number;
  last_seq: number;
  pending_approvals: PendingApproval[];
  pending_inputs: PendingInput[];
}

export interface Task {
  id: string;
  title: string;
  status: "todo" | "doing" | "done";
}

export interface TaskUpdatedEvent {
  type: "TASK_UPDATED";
  seq: number;
  round_index: number;
  at: Timestamp;
  call_id?: string;
  tasks: Task[];
}

export interface Tasks {
  tasks: Task[];
  plan: string[];
}

export interface TasksRequest {
  tasks?: ({ id?: string; title: string; status?: "todo" | "doing" | "done" })[];
  plan?: string[];
}

export interface TextDeltaEvent {
  type: "TEXT_DELTA";
  seq: number;
  round_index: number;
  content: string;
}

export interface ThinkingDeltaEvent {
  type: "THINKING_DELTA";
  seq: number;
  round_index: number;
  content: string;
}

export interface ThinkingEvent {
  type: "THINKING";
  seq: number;
  round_index: number;
  at: Timestamp;
  content: string;
}

export type Timestamp = string;

export interface Tool {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
  read_only: boolean;
  requires_approval: boolean;
  left_out?: { model: string; reason: string }[];
  lacks?: string;
  rules?: ({ rule: string; action: "allow" | "ask" | "deny"; pattern?: string; means: string })[];
}

export interface ToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

export interface ToolCallEvent {
  type: "TOOL_CALL";
  seq: number;
  round_index: number;
  at: Timestamp;
  id: string;
  tool_name: string;
  tool_input: string;
}

export interface ToolOutputDeltaEvent {
  type: "TOOL_OUTPUT_DELTA";
  seq: number;
  round_index: number;
  id: string;
  tool_name: string;
  content: string;
}

export interface ToolResultEvent {
  type: "TOOL_RESULT";
  seq: number;
  round_index: number;
  at: Timestamp;
  id: string;
  tool_name: string;
  tool_output: string;
  is_error: boolean;
  files?: Attachment[];
}

export interface ToolServer {
  name: string;
  state: "connecting" | "ready" | "failed";
  message: string;
  tools: number;
  login: "not_needed" | "logged_out" | "logged_in";
}

export interface Tools {
  tools: Tool[];
  read_only: string[];
  read_write: string[];
  servers: ToolServer[];
  approval_mode: "ask" | "read_only" | "approve_all" | "deny_all";
  workspace?: string;
}

export interface Transcription {
  text: string;
}

export interface Trash {
  entries: TrashEntry[];
}

export interface TrashEntry {
  id: TrashId;
  chat_id: ChatId;
  title: string | null;
  deleted_at: Timestamp;
  bytes: number;
}

export type TrashId = string;

export interface TrustInstructionsRequest {
  path: string;
  digest: string;
}

export interface UndoRequest {
  files?: "keep" | "restore" | "only";
  force?: boolean;
  allow_imported?: boolean;
  dry_run?: boolean;
}

export interface UnreadableChat {
  id: ChatId;
  error: { code: string; message: string };
}

export interface Usage {
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
}

export interface UsageEvent {
  type: "USAGE";
  seq: number;
  round_index: number;
  at: Timestamp;
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
  context_tokens?: number;
  context_window?: number;
  context_limit?: number;
}

export interface UsageTotal {
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
  cost: Cost;
  models: ModelUsage[];
}

export interface Users {
  users: { org: string; user: string }[];
}

export interface WorkspaceChange {
  path: string;
  path_base64?: string;
  before: FileVersion | null;
  after: FileVersion | null;
}

export interface WorkspaceFiles {
  files: { path: string; size_bytes: number }[];
  complete: boolean;
}
