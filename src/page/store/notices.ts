// What the page tells people: toasts, words for a screen reader, and notifications of the desktop.
import { t } from "../texts";
import type { ChatChange } from "../wire";
import { state } from "./state";

export interface Toast {
  id: number;
  text: string;
  action?: { label: string; run: () => void };
}

export const notices = state({ toasts: [] as Toast[], said: "" });
let number = 0;

export function tell(text: string, action?: Toast["action"]): void {
  const toast = { id: ++number, text, action };
  notices.set({ toasts: [...notices.toasts.slice(-3), toast] });
  setTimeout(() => dismiss(toast), action ? 10_000 : 6_000);
}
const dismiss = (toast: Toast): void => notices.set({ toasts: notices.toasts.filter((each) => each !== toast) });
// The action of a toast can be run once.
export function act(toast: Toast): void {
  dismiss(toast);
  toast.action?.run();
}

// For a screen reader, which says the same words a second time only if they differ.
export const say = (text: string): void => notices.set({ said: text === notices.said ? `${text}\u00a0` : text });

// Tells why the work failed, unless the server cannot be reached: the page shows that by itself.
export async function attempt(work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") return true;
    if (!(error instanceof TypeError)) tell(error instanceof Error ? error.message : String(error));
    return false;
  }
}

// Only if people asked for it and the window is hidden; the text says nothing of the conversation.
export function notify(event: string, data: ChatChange, open: (chat: string) => void): void {
  if (!document.hidden || localStorage.getItem("notify") !== "on" || typeof Notification === "undefined") return;
  const text = event === "approval_opened" ? t.approvalNeeded : event === "input_opened" ? t.questionWaits : event === "interaction_ended" ? t.answerReady : "";
  if (!text || Notification.permission !== "granted") return;
  const shown = new Notification("Reprise", { body: text, tag: data.chat_id });
  shown.onclick = () => {
    window.focus();
    open(data.chat_id);
  };
}
