import type { Chat } from "../store/turn";

const byAge = (a: Chat, b: Chat): number => (a.updated_at < b.updated_at ? 1 : a.updated_at > b.updated_at ? -1 : 0);

// As they are listed: those that work or wait first, then the newest.
export const inOrder = (chats: Iterable<Chat>): Chat[] => [...chats].sort((a, b) => Number(a.status === "idle") - Number(b.status === "idle") || byAge(a, b));
