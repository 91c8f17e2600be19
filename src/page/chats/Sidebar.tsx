import { createContext, DragEvent, ReactNode, useCallback, useContext, useEffect, useMemo, useRef, useState } from "react";
import { SaveLink } from "../chat/Attachments";
import { useWindow } from "../list/Rows";
import type { Row } from "../list/window";
import { Icon } from "../parts/Icon";
import { filesIn } from "../chat/uploads";
import { useAway } from "../parts/hooks";
import { cache, inOrder, useChats, useOpen } from "../store/cache";
import { leave, navigation, openChat } from "../store/navigation";
import * as requests from "../store/requests";
import { attempt, tell, useSelect } from "../store/state";
import type { Chat } from "../store/turn";
import { t } from "../texts";
import type { SearchMatches } from "../wire";
import { exported, get } from "../wire/api";
import { Group, groupsOf, Place } from "./groups";
import { Marked } from "./Marked";

type Hit = SearchMatches["matches"][number];

const done = (): void => void (navigation.menu === true && navigation.set({ menu: null }));

// All chats with their state: busy and waiting ones first, then the others by age. Also a search over all messages.
export function Sidebar() {
  const chats = useChats();
  const version = cache.version; // the chats are changed where they stand
  const open = useOpen();
  const { view } = navigation.use("view");
  const [query, setQuery] = useState("");
  const [hits, setHits] = useState<Hit[] | null>(null);
  const [chosen, setChosen] = useState<Set<string> | null>(null); // null: not selecting
  const [dropping, setDropping] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  useEffect(() => {
    setHits(null);
    if (query.trim().length < 2) return undefined;
    let wanted = true;
    const timer = setTimeout(() => void attempt(async () => {
      const found = await get<SearchMatches>(`/search?q=${encodeURIComponent(query)}&limit=30`);
      if (wanted) setHits(found.matches);
    }, t.offline), 200);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [query]);
  const words = query.toLowerCase();
  const listed = useMemo(() => inOrder([...chats.values()].filter((chat) => !words || chat.title.toLowerCase().includes(words) || chat.id.toLowerCase().includes(words))), [chats, version, words]);
  const folders = useSelect(requests.knownFolders);
  const own = useSelect(() => cache.tools?.workspace ?? "");
  const [archive, setArchive] = useState(false); // whether archived chats are listed; those that are searched for always are
  const [dragged, setDragged] = useState<string | null>(null);
  const groups = useMemo(() => groupsOf(listed, folders, own, archive || words !== "", dragged !== null), [listed, folders, own, archive, words, dragged, t.today]);
  const archived = useSelect(() => [...cache.chats.values()].filter((chat) => chat.shelf === "archived").length);
  const move = (to: Place): void => {
    const chats = chosen?.has(dragged!) ? [...chosen] : [dragged!];
    setDragged(null);
    setChosen(null);
    void requests.put(chats, to);
  };
  const take = (file: File): void => void attempt(async () => {
    const { importFile } = await import("./import");
    const chat = await importFile(file);
    if (chat.notes.length > 0) tell(chat.notes.join("\n"));
    openChat(chat.id);
    done();
  });
  const onDrop = (e: DragEvent): void => {
    e.preventDefault();
    setDropping(false);
    filesIn(e.dataTransfer).forEach(take);
  };
  const choose = (id: string): void => setChosen((before) => {
    const next = new Set(before);
    if (!next.delete(id)) next.add(id);
    return next;
  });
  return (
    <nav className={`sidebar${dropping ? " dropping" : ""}`} data-testid="sidebar" aria-label={t.chats} onDrop={onDrop} onDragLeave={() => setDropping(false)} onDragOver={(e) => {
      e.preventDefault();
      setDropping(e.dataTransfer.types.includes("Files"));
    }}>
      <div className="brand"><svg className="logo" aria-hidden="true" viewBox="0 0 24 24" width="22" height="22"><path d="M4 9h.01M4 15h.01" /><path className="thin" d="M10 4v16" /><path className="thick" d="M17 4v16" /></svg><span>{t.name}</span></div>
      <div className="row">
        <button type="button" className="primary grow" data-testid="new-chat" onClick={() => {
          leave();
          done();
        }}><Icon name="plus" size={17} />{t.newChat}</button>
        <button type="button" className="quiet square" aria-label={t.importChat} title={t.importChat} data-testid="import" onClick={() => picker.current?.click()}><Icon name="upload" /></button>
        <input ref={picker} type="file" accept=".json,.jsonl" hidden data-testid="import-file" onChange={(e) => {
          const file = e.target.files?.[0];
          if (file) take(file);
          e.target.value = "";
        }} />
      </div>
      <div className="search-box"><Icon name="search" size={16} /><input type="search" data-testid="search" aria-label={t.search} placeholder={t.search} value={query} onChange={(e) => setQuery(e.target.value)} /></div>
      {hits && hits.length > 0 && (
        <ul className="hits" data-testid="hits" aria-label={t.searchAll}>
          {hits.map((hit, i) => (
            <li key={i}><button type="button" className="quiet" data-testid="hit" data-interaction={hit.interaction_id} onClick={() => {
              void requests.goTo(hit.chat_id, hit.interaction_id);
              done();
            }}><strong dir="auto">{hit.title || hit.chat_id}</strong><span className="faint" dir="auto"><Marked text={hit.snippet} words={query} /></span></button></li>
          ))}
        </ul>
      )}
      {hits && hits.length + listed.length === 0 && <p className="empty">{t.nothingFound}</p>}
      {dropping && <p className="drop-hint">{t.dropChat}</p>}
      <div className="chat-list">
        {!query && listed.length === 0 && <p className="empty">{t.noChats}</p>}
        <ChatList groups={groups} isDragging={dragged !== null} onMove={move}>{(chat) => <Item chat={chat} current={chat.id === open?.id && view !== "trash"} chosen={chosen && chosen.has(chat.id)} onChoose={() => choose(chat.id)} onDrag={setDragged} />}</ChatList>
        {archived > 0 && !words && <button type="button" className="quiet tiny" data-testid="show-archive" aria-expanded={archive} onClick={() => setArchive(!archive)}><Icon name={archive ? "down" : "forward"} size={14} />{t.archivedOf(archived)}</button>}
      </div>
      {chosen ? (
        <div className="side-foot row" data-testid="select-bar">
          <span className="grow faint">{t.selected(chosen.size)}</span>
          <button type="button" className="quiet tiny" onClick={() => setChosen(null)}>{t.cancel}</button>
          <span className="row buttons">
            <button type="button" data-testid="archive-selected" disabled={chosen.size === 0} onClick={() => {
              void requests.put([...chosen], { shelf: "archived" });
              setChosen(null);
            }}><Icon name="archive" size={15} />{t.archive}</button>
            <button type="button" className="danger" data-testid="delete-selected" disabled={chosen.size === 0} onClick={() => {
              void requests.remove([...chosen]);
              setChosen(null);
            }}><Icon name="trash" size={15} />{t.deleteSelected}</button>
          </span>
        </div>
      ) : (
        <div className="side-foot row">
          <button type="button" className="quiet tiny" data-testid="select" disabled={chats.size === 0} onClick={() => setChosen(new Set())}><Icon name="tasks" size={15} />{t.select}</button>
          <span className="grow" />
          <button type="button" className="quiet tiny" data-testid="open-trash" aria-current={view === "trash" ? "page" : undefined} onClick={() => {
            navigation.set({ view: "trash" });
            done();
          }}><Icon name="trash" size={15} />{t.trash}</button>
          <button type="button" className="quiet tiny" aria-label={t.help} title={`${t.help} (?)`} data-testid="open-help" onClick={() => navigation.set({ dialog: "help" })}><Icon name="help" size={15} /></button>
        </div>
      )}
    </nav>
  );
}

interface ItemRow extends Row {
  chat: Chat | null; // null: the heading of a group
}

interface ListProps {
  groups: Group[];
  isDragging: boolean; // a chat, which may be dropped on a group
  onMove: (to: Place) => void;
  children: (chat: Chat) => ReactNode;
}

// The document holds only the chats near the list's window.
function ChatList({ groups, isDragging, onMove, children }: ListProps) {
  const rows = useMemo(() => groups.flatMap(({ name, chats }): ItemRow[] => [{ key: `group-${name}`, kind: "group", guess: 40, chat: null },
    ...chats.map((chat): ItemRow => ({ key: `chat-${chat.id}`, kind: "chat", guess: 36, chat }))]), [groups]);
  const [over, setOver] = useState("");
  const [window, shown, root] = useWindow(rows, { scroller: ".chat-list" });
  // Scrolls to an opened chat, unless it is already visible.
  const open = useOpen();
  const { menu } = navigation.use("menu");
  useEffect(() => {
    const row = open && rows.some((each) => each.key === `chat-${open.id}`) ? `chat-${open.id}` : null;
    if (row) window.show(row);
  }, [open?.id, menu, rows.length > 0]);
  let begin = 0;
  return (
    <div ref={root} data-list="">
      {groups.map(({ name, chats, takes }) => {
        const first = begin + 1, behind = (begin = first + chats.length);
        let at = first;
        const items = shown.filter((index) => index >= first && index < behind).map((index) => {
          const row = rows[index]!;
          const room = window.height(at, index);
          at = index + 1;
          const place: RowPlace = { row, size: chats.length, at: index - first + 1, room };
          return <PlaceInList.Provider key={row.key} value={place}>{children(row.chat!)}</PlaceInList.Provider>;
        });
        return (
          <section key={name} aria-label={name} className={isDragging && takes ? (over === name ? "target over" : "target") : ""} onDragOver={(e) => {
            if (!isDragging || !takes) return;
            e.preventDefault();
            e.stopPropagation();
            setOver(name);
          }} onDrop={(e) => {
            if (!isDragging || !takes) return;
            e.preventDefault();
            e.stopPropagation();
            onMove(takes);
          }}>
            <h2 data-row={`group-${name}`} data-kind="group" data-guess={40}>{name}</h2>
            <ul style={{ paddingBottom: window.height(at, behind) }}>{items}</ul>
          </section>
        );
      })}
    </div>
  );
}

interface RowPlace {
  row: ItemRow;
  size: number;
  at: number;
  room: number; // pixels for the chats before it that are not drawn
}
const PlaceInList = createContext<RowPlace | null>(null);

function usePlace() {
  const place = useContext(PlaceInList)!;
  return { "data-row": place.row.key, "data-kind": "chat", "data-guess": place.row.guess, "aria-setsize": place.size, "aria-posinset": place.at, style: { marginTop: place.room } };
}

interface ItemProps {
  chat: Chat;
  current: boolean;
  chosen: boolean | null;
  onChoose: () => void;
  onDrag: (chat: string | null) => void;
}

// Takes a new title of a chat. It is saved when the field is left, and Escape keeps the old one. What was not taken stays typed.
export function TitleField({ id, title, testid, className, onEnd }: { id: string; title: string; testid: string; className?: string; onEnd: () => void }) {
  const given = useRef(false);
  return (
    <input className={className} autoFocus aria-label={t.rename} data-testid={testid} dir="auto" defaultValue={title} onFocus={(e) => e.target.select()} onBlur={async ({ target: { value } }) => {
      if (given.current || !value.trim() || value === title || (await requests.rename(id, value))) onEnd();
    }} onKeyDown={(e) => {
      if (e.key !== "Escape" && e.key !== "Enter") return;
      e.preventDefault(); // so that the next focused element does not get the key
      given.current = e.key === "Escape";
      e.currentTarget.blur();
    }} />
  );
}

function Item({ chat, current, chosen, onChoose, onDrag }: ItemProps) {
  const [naming, setNaming] = useState(false);
  const [menu, setMenu] = useState(false);
  const place = useRef<HTMLLIElement>(null);
  const close = useCallback(() => setMenu(false), []);
  useAway(place, menu, close);
  const title = chat.title || t.untitled;
  const where = usePlace();
  if (naming) {
    return <li {...where}><TitleField id={chat.id} title={chat.title} testid="rename" onEnd={() => setNaming(false)} /></li>;
  }
  return (
    <li ref={place} {...where} className={current ? "current" : ""} data-testid="chat-item" data-chat={chat.id} data-status={chat.status} data-shelf={chat.shelf} draggable onDragStart={(e) => {
      e.dataTransfer.setData("text/plain", title);
      e.dataTransfer.effectAllowed = "move";
      setTimeout(() => onDrag(chat.id)); // the browser gives up a drag whose element moves at once
    }} onDragEnd={() => onDrag(null)}>
      {chosen !== null && <input type="checkbox" checked={chosen} aria-label={`${t.select}: ${title}`} data-testid="choose" onChange={onChoose} />}
      <button type="button" className="quiet chat-title" aria-current={current ? "page" : undefined} onClick={() => {
        if (chosen !== null) return onChoose();
        openChat(chat.id);
        done();
      }}>
        <span className="title" dir="auto">{title}</span>
        {chat.status === "running" && <span className="dot running" role="img" aria-label={t.running} title={t.running} />}
        {chat.status === "waiting" && <span className="dot waiting" role="img" aria-label={t.waiting} title={t.waiting} />}
        {chat.status === "idle" && chat.head_status === "FAILED" && <span className="dot failed" role="img" aria-label={t.failed} title={t.failed} />}
        {chat.jobs && <span className="dot job" role="img" data-testid="job-mark" aria-label={t.jobsRun(chat.jobs)} title={t.jobsRun(chat.jobs)} />}
        {chat.damaged && <span className="badge" role="img" aria-label={t.isDamaged} title={t.isDamaged}>!</span>}
        {chat.waiting > 0 && <span className="badge count">{chat.waiting}</span>}
      </button>
      <button type="button" className="quiet square small" data-testid="chat-menu" aria-label={`${t.menu}: ${title}`} aria-expanded={menu} onClick={() => setMenu(!menu)}><Icon name="more" /></button>
      {menu && (
        <div className="menu" onClick={() => setMenu(false)}>
          <button type="button" data-testid="chat-rename" onClick={() => setNaming(true)}><Icon name="pencil" size={16} />{t.rename}</button>
          <button type="button" data-testid="chat-pin" onClick={() => void requests.put([chat.id], { shelf: chat.shelf === "pinned" ? null : "pinned" })}><Icon name="pin" size={16} />{chat.shelf === "pinned" ? t.unpin : t.pin}</button>
          <button type="button" data-testid="chat-archive" onClick={() => void requests.put([chat.id], { shelf: chat.shelf === "archived" ? null : "archived" })}><Icon name="archive" size={16} />{chat.shelf === "archived" ? t.unarchive : t.archive}</button>
          <OtherFolders chat={chat} />
          {Object.entries(t.formats).map(([format, name]) => (
            <SaveLink key={format} {...exported(chat.id, format)}><Icon name="download" size={16} />{t.exportAs(name)}</SaveLink>
          ))}
          <button type="button" className="bad" data-testid="chat-delete" onClick={() => void requests.remove([chat.id])}><Icon name="trash" size={16} />{t.remove}</button>
        </div>
      )}
    </li>
  );
}

const MOST_FOLDERS = 5;

// What dragging the chat to the group of another folder does.
function OtherFolders({ chat }: { chat: Chat }) {
  const folders = useSelect(requests.knownFolders);
  const others = folders.filter((folder) => folder !== (chat.workspace ?? cache.tools?.workspace)).slice(0, MOST_FOLDERS);
  return <>{others.map((folder) => (
    <button type="button" key={folder} data-testid="chat-move" data-folder={folder} disabled={chat.status !== "idle"} onClick={() => void requests.put([chat.id], { shelf: chat.shelf ?? null, folder })}><Icon name="folder" size={16} />{t.moveTo(requests.folderName(folder, folders))}</button>
  ))}</>;
}
