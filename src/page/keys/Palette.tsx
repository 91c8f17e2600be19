import { useEffect, useRef, useState } from "react";
import { Icon } from "../parts/Icon";
import { cache, inOrder, lastTurn } from "../store/cache";
import { navigation, openChat } from "../store/navigation";
import { useSelect } from "../store/state";
import { t } from "../texts";
import { Action, actions } from "./actions";

const MOST = 60;

const everything = (): Action[] => [
  ...actions(),
  ...inOrder(cache.chats.values()).map((chat): Action => ({ id: chat.id, name: chat.title || chat.id, icon: "chat", run: () => openChat(chat.id) })),
];

export function Palette({ onClose }: { onClose: () => void }) {
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const words = query.toLowerCase().split(/\s+/);
  useSelect(() => [cache.version, lastTurn()?.status, navigation.hideTools]); // as what can be done depends on
  const found = everything().filter((each) => words.every((word) => each.name.toLowerCase().includes(word))).slice(0, MOST);
  const run = (index: number): void => {
    onClose();
    found[index]?.run();
  };
  useEffect(() => void list.current?.children[at]?.scrollIntoView({ block: "nearest" }), [at]);
  return (
    <Dialog label={t.palette} onClose={onClose} testid="palette">
      <div className="search-box"><Icon name="search" size={17} />
        <input autoFocus role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant={`palette-${at}`} aria-label={t.palette}
          placeholder={t.paletteHint} value={query}
          onChange={(e) => {
            setQuery(e.target.value);
            setAt(0);
          }} onKeyDown={(e) => {
            if (e.key === "ArrowDown") setAt(Math.min(at + 1, found.length - 1));
            else if (e.key === "ArrowUp") setAt(Math.max(at - 1, 0));
            else if (e.key === "Enter") run(at);
            else return;
            e.preventDefault();
          }} />
      </div>
      <ul ref={list} id="palette-list" role="listbox" aria-label={t.palette} tabIndex={-1}>
        {found.map((each, i) => (
          <li key={each.id + i} id={`palette-${i}`} role="option" aria-selected={i === at} data-testid="palette-option" onPointerMove={() => i !== at && setAt(i)}
            onClick={() => run(i)}>
            <Icon name={each.icon} size={17} /><span className="grow title" dir="auto">{each.name}</span>{each.keys && <kbd>{each.keys}</kbd>}
          </li>
        ))}
      </ul>
      {found.length === 0 && <p className="empty">{t.nothingFound}</p>}
    </Dialog>
  );
}

export function Dialog({ label, testid, onClose, children }: { label: string; testid: string; onClose: () => void; children: React.ReactNode }) {
  const place = useRef<HTMLDialogElement>(null);
  const pressed = useRef(false); // outside; a selection that ends there began inside
  // Closing gives the focus back, unless a field that the action opened (such as the find bar) has taken it.
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    place.current?.showModal();
    return () => {
      const now = document.activeElement;
      if (!(now instanceof HTMLInputElement || now instanceof HTMLTextAreaElement)) before?.focus({ preventScroll: true });
    };
  }, []);
  return (
    <dialog ref={place} className={testid} aria-label={label} data-testid={testid} onClose={onClose}
      onPointerDown={(e) => void (pressed.current = e.target === place.current)} onClick={(e) => e.target === place.current && pressed.current && onClose()}>{children}</dialog>
  );
}
