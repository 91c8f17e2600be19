// Actions available everywhere: the palette lists them, the composer takes them after a slash, and some have a key.
import { allOpen, foldAll } from "../chat/folding";
import type { IconName } from "../parts/Icon";
import { roomOf } from "../list/window";
import { cache, inOrder, lastTurn } from "../store/cache";
import { editTurn, leave, navigation, openChat, toggleMenu, View } from "../store/navigation";
import { attempt, tell } from "../store/state";
import * as requests from "../store/requests";
import { isRunning } from "../store/turn";
import { t } from "../texts";
import { setTheme, themeNow } from "../theme";
import { exported, save } from "../wire/api";

export interface Action {
  id: string; // typed after a slash
  name: string;
  icon: IconName;
  run: () => void;
  key?: (e: KeyboardEvent) => boolean;
  keys?: string; // the key's label
}

export const isWriting = (place: EventTarget | null): boolean =>
  place instanceof HTMLInputElement ? !/^(checkbox|range|button)$/.test(place.type) : place instanceof HTMLTextAreaElement || place instanceof HTMLSelectElement || place instanceof HTMLOptionElement;

const withCtrlAlt = (key: string) => (e: KeyboardEvent): boolean => (e.ctrlKey || e.metaKey) && e.altKey && e.code === `Key${key}`;
// In a list of choices these keys open it.
const withAlt = (key: string) => (e: KeyboardEvent): boolean => e.altKey && !e.ctrlKey && e.key === key && !(e.target instanceof HTMLSelectElement);
const show = (view: View) => (): void => navigation.set({ view });

function neighbour(step: number): void {
  const ids = inOrder(cache.chats.values()).map((chat) => chat.id);
  const at = cache.open ? ids.indexOf(cache.open.id) : -1;
  const next = ids[at + step];
  if (next) openChat(next);
}

// Scrolls to a card that waits: to the middle if it fits, else to the first part of it that was not in the window yet.
export function bring(card: HTMLElement): void {
  const row = card.closest<HTMLElement>("[data-row]"), turn = card.closest<HTMLElement>(".turn"), list = card.closest<HTMLElement>(".turns");
  if (!row || !turn || !list || !cache.open) return;
  const box = card.getBoundingClientRect(), room = roomOf(card);
  const above = (list.clientHeight + room - box.height) / 2;
  const below = above > room ? above : room - Math.max(0, Number(card.dataset.unseen ?? 0) - 16); // a line of what was seen goes with it
  navigation.set({ target: { chat: cache.open.id, turn: turn.dataset.interaction!, row: row.dataset.row!, below: below - (box.top - row.getBoundingClientRect().top) } });
  card.focus({ preventScroll: true });
}

const CARDS = ".turns :is([data-testid=approval-card], [data-testid=input-card])";

// Shows the next call or question that waits: those of this chat first, then those of the others, again and again; or the wanted one.
export async function goToWaiting(wanted?: string): Promise<void> {
  const waiting = [...[...cache.approvals.values()].map((each) => [each.chat_id, each.approval_id]), ...[...cache.inputs.values()].map((each) => [each.chat_id, each.request_id])]
    .filter(([, id]) => !wanted || id === wanted);
  if (waiting.length === 0) return tell(t.nothingWaits);
  const cards = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>(CARDS)].filter((card) =>
    waiting.some(([chat, id]) => chat === cache.open?.id && id === (card.dataset.approval ?? card.dataset.request)));
  const shown = navigation.view === "chat" ? cards() : [];
  let card = shown[shown.findIndex((each) => each.contains(document.activeElement)) + 1];
  if (!card) {
    const chats = [...new Set(waiting.map(([chat]) => chat!))];
    openChat(chats[(chats.indexOf(cache.open?.id ?? "") + 1) % chats.length]!);
    navigation.set({ began: navigation.began + 1 }); // the view moves to the end, where a chat waits
    for (let frames = 0; !card && frames < 200; frames++) {
      await new Promise((resume) => requestAnimationFrame(resume));
      card = cards()[0];
    }
  }
  if (card) bring(card);
}

export function editLast(): void {
  const turn = lastTurn();
  if (turn && !isRunning(turn)) editTurn(turn);
}

function ofChat(): Action[] {
  const turn = lastTurn();
  const chat = cache.open;
  if (!chat || !turn) return [];
  const idle = !isRunning(turn);
  return [
    ...(idle ? [
      { id: "edit", name: t.editLast, icon: "pencil", run: editLast, keys: "↑" },
      { id: "regenerate", name: t.regenerate, icon: "refresh", run: () => void requests.again(turn, "regenerate") },
      ...(turn.status === "COMPLETED" ? [] : [{ id: "resume", name: t.resume, icon: "play", run: () => void requests.again(turn, "resume") }]),
      { id: "fork", name: t.fork, icon: "fork", run: () => void requests.fork(turn) },
      { id: "compact", name: t.compact, icon: "compress", run: () => void requests.compact() },
    ] : [{ id: "stop", name: t.stop, icon: "stop", run: () => void requests.stop(turn), keys: "Esc" }]) as Action[],
    { id: "undo", name: t.undoTurn, icon: "undo", run: () => void requests.undo(), key: withCtrlAlt("Z"), keys: "Ctrl Alt Z" },
    { id: "redo", name: t.redoTurn, icon: "redo", run: () => void requests.redo(), key: withCtrlAlt("Y"), keys: "Ctrl Alt Y" },
    ...Object.entries(t.formats).map(([format, name]): Action => ({ id: `export-${format}`, name: t.exportAs(name), icon: "download", run: () => {
      const { path, name: file } = exported(chat.id, format);
      void attempt(() => save(path, file));
    } })),
    { id: "delete", name: t.deleteChat, icon: "trash", run: () => void requests.remove([chat.id]) },
  ];
}

export function actions(): Action[] {
  return [
    { id: "new", name: t.newChat, icon: "plus", run: () => leave(), key: withCtrlAlt("N"), keys: "Ctrl Alt N" },
    ...ofChat(),
    { id: "options", name: t.chatOptions, icon: "settings", run: () => navigation.set({ dialog: "options" }) },
    { id: "chat", name: t.chat, icon: "chat", run: show("chat") },
    { id: "inbox", name: t.inbox, icon: "inbox", run: show("inbox"), key: withCtrlAlt("I"), keys: "Ctrl Alt I" },
    { id: "waiting", name: t.goToWaiting, icon: "shield", run: () => void goToWaiting(), key: withCtrlAlt("W"), keys: "Ctrl Alt W" },
    { id: "board", name: t.board, icon: "board", run: show("board"), key: withCtrlAlt("B"), keys: "Ctrl Alt B" },
    { id: "branches", name: t.branchMap, icon: "branch", run: show("branches") },
    { id: "trace", name: t.trace, icon: "trace", run: show("trace") },
    { id: "trash", name: t.trash, icon: "trash", run: show("trash") },
    { id: "settings", name: t.settings, icon: "settings", run: show("settings") },
    { id: "find", name: t.find, icon: "search", run: () => navigation.set({ view: "chat", finding: true }) },
    { id: "expand", name: allOpen() ? t.collapseAll : t.expandAll, icon: allOpen() ? "collapse" : "expand", run: () => foldAll(!allOpen()), key: withCtrlAlt("E"), keys: "Ctrl Alt E" },
    { id: "hide", name: navigation.hideTools ? t.showTools : t.hideTools, icon: "eye", run: () => navigation.set({ hideTools: !navigation.hideTools }), key: withCtrlAlt("T"), keys: "Ctrl Alt T" },
    { id: "sidebar", name: t.toggleSidebar, icon: "sidebar", run: () => toggleMenu(), key: withCtrlAlt("S"), keys: "Ctrl Alt S" },
    { id: "theme", name: t.otherTheme, icon: "eye", run: () => setTheme(themeNow() === "dark" ? "light" : "dark") },
    { id: "help", name: t.help, icon: "help", run: () => navigation.set({ dialog: "help" }), keys: "?" },
    { id: "previous", name: t.chatAbove, icon: "back", run: () => neighbour(-1), key: withAlt("ArrowUp"), keys: "Alt ↑" },
    { id: "next", name: t.chatBelow, icon: "forward", run: () => neighbour(1), key: withAlt("ArrowDown"), keys: "Alt ↓" },
  ];
}
