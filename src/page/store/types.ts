// Names for what the wire calls by other words, or does not name.
import type * as wire from "../wire";

export type AgentEvent = Extract<wire.Event, { seq: number; type: string }>;
export type Chat = wire.ChatListEntry;
export type { Attachment, PendingApproval, PendingInput, Status, Task } from "../wire";

// What becomes of files of the workspace when a chat goes back or forward.
export type FilesChoice = { files?: "restore"; force?: boolean; allow_imported?: boolean };
