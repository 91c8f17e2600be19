// Names for types that the wire names differently or not at all.
import type * as wire from "../wire";

export type AgentEvent = Extract<wire.Event, { seq: number; type: string }>;
export type Chat = wire.ChatListEntry;
export type { Attachment, PendingApproval, PendingInput, Status, Task } from "../wire";

// What to do with files of the workspace when a chat moves back or forward.
export type FilesChoice = { files?: "restore"; force?: boolean; allow_imported?: boolean };
