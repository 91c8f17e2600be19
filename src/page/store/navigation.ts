// Where people are in the page: the chat that is open, its address, the view, and what is open over it.
import { isNarrow } from "../parts/hooks";
import type { FilesPreview } from "../wire";
import { cache, lastTurn, show } from "./cache";
import { state, subscribe } from "./state";
import type { FilesChoice, Turn } from "./turn";

const VIEWS = ["chat", "inbox", "board", "trace", "branches", "settings", "trash"] as const;
export type View = (typeof VIEWS)[number];

// A turn to be shown: its place in the window, and the button that gets the focus. Without these it is at the top, and is marked.
interface Target {
  chat: string;
  turn: string;
  below?: number; // pixels from the upper edge
  focus?: string; // test id of a button in its head
  row?: string; // a row of it, to be there in its place
}

// A step from one state of the chat to another, while the page asks whether files of the workspace go along.
export interface AskedFiles {
  chat: string;
  from: string | null; // the last turn of the chat when it was asked
  what: string;
  preview: FilesPreview;
  run: (files: FilesChoice) => Promise<void>;
}

// What stands beside the chat.
export type BesideView = { kind: "files" | "map" } | { kind: "file"; path: string } | { kind: "text"; title: string; text: string } | { kind: "preview"; title: string; html: string }
  | { kind: "given"; title: string; id: string; type: string }; // a file of the chat

export const navigation = state({
  view: "chat" as View,
  dialog: null as "palette" | "help" | "options" | null,
  menu: null as boolean | null, // the list of chats: shown over a narrow window, hidden in a wide one, or as the width has it
  hideTools: false,
  splitDiffs: false, // before and after in two columns
  finding: false, // words in the chat that is shown
  editing: null as string | null, // the turn whose message is being changed
  target: null as Target | null,
  askedFiles: null as AskedFiles | null,
  beside: null as BesideView | null,
  traced: null as string | null, // the turn that the trace shows; null: the last
  began: 0, // turns that were begun here: each is to be seen as it comes
  wish: null as string | null, // a text for the composer
  dropping: false, // files are held over the page
  dropped: [] as File[], // files that were dropped, for the composer
  language: "", // of the texts, if it was changed since the page was loaded
});

export const editTurn = (turn: Turn | null): void => navigation.set({ editing: turn && turn.id, ...(turn && { view: "chat" as View }) });

// The address is "#CHAT", "#CHAT/VIEW" or "#/VIEW". If somebody typed it, it may not be encoded: then the name is taken as it stands.
function nameIn(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
function addressed(): { chat: string; view: View } {
  const hash = location.hash.slice(1), cut = hash.lastIndexOf("/");
  const view = cut < 0 ? undefined : VIEWS.find((each) => each === hash.slice(cut + 1));
  return view ? { chat: nameIn(hash.slice(0, cut)), view } : { chat: nameIn(hash), view: "chat" };
}

export function startNavigation(): void {
  addEventListener("popstate", showAddress);
  showAddress();
  subscribe(remember);
}
function showAddress(): void {
  const { chat, view } = addressed();
  if (chat && chat !== cache.open?.id) show(chat);
  else if (!chat && cache.open) show(null);
  navigation.set({ view });
}
// Whatever changed the chat or the view: the browser's Back leads to what was before, and a reload to what is shown.
function remember(): void {
  const chat = cache.open?.id ?? "", { view } = navigation, now = addressed();
  if (now.chat === chat && now.view === view) return;
  history.pushState(null, "", chat || view !== "chat" ? `#${encodeURIComponent(chat)}${view === "chat" ? "" : `/${view}`}` : location.pathname);
}

export function openChat(id: string, isNew = false): void {
  navigation.set({ view: "chat" });
  show(id, isNew);
}
export function leave(): void {
  navigation.set({ view: "chat" });
  show(null);
}

let before: HTMLElement | null = null; // what had the focus before something stood beside the chat

export function showBeside(beside: BesideView): void {
  if (!navigation.beside && document.activeElement instanceof HTMLElement) before = document.activeElement;
  navigation.set({ beside, view: "chat" });
}
export function closeBeside(): void {
  navigation.set({ beside: null });
  if (before?.isConnected) before.focus({ preventScroll: true });
  before = null;
}

export function toggleMenu(): void {
  const { menu } = navigation;
  navigation.set({ menu: isNarrow() ? (menu === true ? null : true) : menu === false ? null : false });
}

// Whether the question still holds: not if the chat is in another state by now.
export const isAsked = ({ chat, from }: AskedFiles): boolean => chat === cache.open?.id && from === (lastTurn()?.id ?? null);
