import { useEffect, useRef, useState } from "react";
import { store, useStore } from "../store/store";
import type { Chat } from "../store/types";
import { t } from "../texts";
import type { SearchMatches } from "../wire";
import { call, get } from "../wire/api";

type Hit = SearchMatches["matches"][number];

// All chats by age, with what goes on in each; and a search over what was said in them.
export function Sidebar({ onPick }: { onPick: () => void }) {
  const { chats, open } = useStore();
  const [query, setQuery] = useState("");
  const [hits, setHits] = useState<Hit[] | null>(null);
  const picker = useRef<HTMLInputElement>(null);
  useEffect(() => {
    setHits(null);
    if (query.trim().length < 2) return undefined;
    const timer = setTimeout(() => {
      void get<SearchMatches>(`/search?q=${encodeURIComponent(query)}&limit=30`).then((found) => setHits(found.matches), () => setHits([]));
    }, 200);
    return () => clearTimeout(timer);
  }, [query]);
  const words = query.toLowerCase();
  const listed = [...chats.values()].filter((chat) => !words || chat.title.toLowerCase().includes(words) || chat.id.toLowerCase().includes(words))
    .sort((a, b) => (a.updated_at < b.updated_at ? 1 : a.updated_at > b.updated_at ? -1 : 0));
  const groups = groupByAge(listed);
  const take = (file: File): void => {
    void store.attempt(async () => {
      const chat = await call<{ id: string }>("POST", "/import", JSON.parse(await file.text()));
      store.openChat(chat.id);
    });
  };
  return (
    <nav className="sidebar" data-testid="sidebar" aria-label={t.chats}>
      <div className="row">
        <button type="button" className="primary grow" data-testid="new-chat" onClick={() => {
          store.leave();
          onPick();
        }}>{t.newChat}</button>
        <button type="button" className="quiet" aria-label={t.importChat} title={t.importChat} onClick={() => picker.current?.click()}>⇪</button>
        <input ref={picker} type="file" accept="application/json,.json" hidden data-testid="import-file" onChange={(e) => {
          const file = e.target.files?.[0];
          if (file) take(file);
          e.target.value = "";
        }} />
      </div>
      <input type="search" data-testid="search" aria-label={t.search} placeholder={t.search} value={query} onChange={(e) => setQuery(e.target.value)} />
      {hits && hits.length > 0 && (
        <ul className="hits" data-testid="hits" aria-label={t.searchAll}>
          {hits.map((hit, i) => (
            <li key={i}><button type="button" className="quiet" onClick={() => {
              store.openChat(hit.chat_id);
              onPick();
            }}><strong>{hit.title || hit.chat_id}</strong><span className="faint">{hit.snippet}</span></button></li>
          ))}
        </ul>
      )}
      <div className="chat-list">
        {groups.map(([name, group]) => (
          <section key={name} aria-label={name}>
            <h2>{name}</h2>
            <ul>{group.map((chat) => <Item key={chat.id} chat={chat} current={chat.id === open?.id} onPick={onPick} />)}</ul>
          </section>
        ))}
      </div>
    </nav>
  );
}

function Item({ chat, current, onPick }: { chat: Chat; current: boolean; onPick: () => void }) {
  const [naming, setNaming] = useState(false);
  const [menu, setMenu] = useState(false);
  const title = chat.title || t.untitled;
  if (naming) {
    return (
      <li><input autoFocus aria-label={t.rename} data-testid="rename" defaultValue={chat.title} onBlur={() => setNaming(false)} onKeyDown={(e) => {
        if (e.key === "Escape") setNaming(false);
        if (e.key === "Enter") {
          void store.rename(chat.id, e.currentTarget.value);
          setNaming(false);
        }
      }} /></li>
    );
  }
  return (
    <li className={current ? "current" : ""} data-testid="chat-item" data-chat={chat.id} data-status={chat.status}>
      <button type="button" className="quiet chat-title" aria-current={current ? "page" : undefined} onClick={() => {
        store.openChat(chat.id);
        onPick();
      }}>
        {chat.status !== "idle" && <span className={`dot ${chat.status}`} role="img" aria-label={chat.status === "waiting" ? t.waiting : t.running} />}
        <span className="title" dir="auto">{title}</span>
        {chat.waiting > 0 && <span className="badge">{chat.waiting}</span>}
      </button>
      <button type="button" className="quiet" data-testid="chat-menu" aria-label={`${t.menu}: ${title}`} aria-expanded={menu} onClick={() => setMenu(!menu)}>⋯</button>
      {menu && (
        <div className="menu" onClick={() => setMenu(false)}>
          <button type="button" data-testid="chat-rename" onClick={() => setNaming(true)}>{t.rename}</button>
          <a href={`/chats/${chat.id}/export?format=json`} download={`${chat.id}.json`}>{t.exportChat} (JSON)</a>
          <a href={`/chats/${chat.id}/export?format=markdown`} download={`${chat.id}.md`}>{t.exportChat} (Markdown)</a>
          <button type="button" data-testid="chat-delete" onClick={() => void store.remove(chat.id)}>{t.remove}</button>
        </div>
      )}
    </li>
  );
}

function groupByAge(chats: Chat[]): [string, Chat[]][] {
  const midnight = new Date();
  midnight.setHours(0, 0, 0, 0);
  const day = 86_400_000;
  const today = midnight.getTime();
  const groups: [string, number][] = [[t.today, today], [t.yesterday, today - day], [t.thisWeek, today - 6 * day], [t.older, -Infinity]];
  const found = groups.map(([name]): [string, Chat[]] => [name, []]);
  for (const chat of chats) {
    const at = Date.parse(chat.updated_at);
    found[groups.findIndex(([, from]) => at >= from)]![1].push(chat);
  }
  return found.filter(([, group]) => group.length > 0);
}
