// What can be done from everywhere: the palette lists it, and some of it has a key.
import { store, View } from "../store/store";
import { isRunning } from "../store/turn";
import { t } from "../texts";

export interface Action {
  name: string;
  run: () => void;
  key?: (e: KeyboardEvent) => boolean;
}

const withCtrlAlt = (key: string) => (e: KeyboardEvent): boolean => (e.ctrlKey || e.metaKey) && e.altKey && e.code === `Key${key}`;
const show = (view: View) => (): void => store.set({ view });

function neighbour(step: number): void {
  const ids = [...store.chats.values()].sort((a, b) => (a.updated_at < b.updated_at ? 1 : -1)).map((chat) => chat.id);
  const at = store.open ? ids.indexOf(store.open.id) : -1;
  const next = ids[at + step];
  if (next) store.openChat(next);
}

export function actions(): Action[] {
  return [
    { name: t.newChat, run: () => store.leave(), key: withCtrlAlt("N") },
    { name: t.inbox, run: show("inbox"), key: withCtrlAlt("I") },
    { name: t.board, run: show("board"), key: withCtrlAlt("B") },
    { name: t.branchMap, run: show("branches") },
    { name: t.trace, run: show("trace") },
    { name: t.settings, run: show("settings") },
    { name: t.compact, run: () => void store.compact() },
    { name: t.undo, run: () => void store.undo(), key: withCtrlAlt("Z") },
    { name: t.redo, run: () => void store.redo(), key: withCtrlAlt("Y") },
    { name: store.hideTools ? t.showTools : t.hideTools, run: () => store.set({ hideTools: !store.hideTools }), key: withCtrlAlt("T") },
    { name: `${t.chats} ↑`, run: () => neighbour(-1), key: (e) => e.altKey && !e.ctrlKey && e.key === "ArrowUp" },
    { name: `${t.chats} ↓`, run: () => neighbour(1), key: (e) => e.altKey && !e.ctrlKey && e.key === "ArrowDown" },
    {
      name: t.stop,
      run: () => {
        const last = store.branch().pop();
        if (last && isRunning(last)) void store.stop(last);
      },
    },
    ...[...store.chats.values()].map((chat) => ({ name: chat.title || chat.id, run: () => store.openChat(chat.id) })),
  ];
}
