import { Component, lazy, ReactNode, Suspense, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { Conversation } from "./chat/Conversation";
import { FolderName } from "./chat/Folder";
import { filesIn } from "./chat/uploads";
import { Sidebar, TitleField } from "./chats/Sidebar";
import { actions, isWriting } from "./keys/actions";
import { keepFocus } from "./keys/focus";
import { Palette } from "./keys/Palette";
import { copied } from "./markdown/Markdown";
import { useNarrow } from "./parts/hooks";
import { Icon, IconName } from "./parts/Icon";
import { cache, useChat, useOpen } from "./store/cache";
import { feed, start } from "./store/feed";
import { closeBeside, navigation, showBeside, toggleMenu, View } from "./store/navigation";
import { act, notices, useSelect } from "./store/state";
import { translate } from "./language";
import { t } from "./texts";
import { showTheme } from "./theme";
import { whenTokenChanges } from "./wire/api";

// Rarely used views are loaded when they are opened.
const Beside = lazy(() => import("./beside/Beside").then((part) => ({ default: part.Beside })));
const Board = lazy(() => import("./board/Board").then((part) => ({ default: part.Board })));
const BranchMap = lazy(() => import("./time/BranchMap").then((part) => ({ default: part.BranchMap })));
const ChatOptions = lazy(() => import("./chat/ChatOptions").then((part) => ({ default: part.ChatOptions })));
const Help = lazy(() => import("./keys/Help").then((part) => ({ default: part.Help })));
const Inbox = lazy(() => import("./inbox/Inbox").then((part) => ({ default: part.Inbox })));
const LogIn = lazy(() => import("./parts/LogIn").then((part) => ({ default: part.LogIn })));
const Settings = lazy(() => import("./trace/Settings").then((part) => ({ default: part.Settings })));
const Trace = lazy(() => import("./trace/Trace").then((part) => ({ default: part.Trace })));
const TrashView = lazy(() => import("./chats/TrashView").then((part) => ({ default: part.TrashView })));

type Tab = [View & keyof typeof t, IconName];
const OF_CHAT: Tab[] = [["chat", "chat"], ["board", "board"], ["branches", "branch"], ["trace", "trace"]];
const OF_ALL: Tab[] = [["inbox", "inbox"], ["settings", "settings"]];

function Page() {
  const { loggedOut, whyLoggedOut } = feed.use("loggedOut", "whyLoggedOut");
  const { beside, dialog, menu, view } = navigation.use("beside", "dialog", "menu", "view", "language"); // another language draws all anew
  const open = useOpen();
  const title = useChat()?.title ?? "";
  const waiting = useSelect(() => cache.approvals.size + cache.inputs.size);
  const running = useSelect(() => [...cache.chats.values()].filter((chat) => chat.status === "running").length);
  const narrow = useNarrow();
  useTitle(waiting, running, title);
  useEffect(() => {
    const onKey = (e: KeyboardEvent): void => {
      const wantsPalette = (e.ctrlKey || e.metaKey) && !e.altKey && e.key.toLowerCase() === "k";
      if (document.querySelector("dialog[open]")) return wantsPalette ? e.preventDefault() : undefined; // it is about what lies beneath it
      const action = actions().find((each) => each.key?.(e));
      if (wantsPalette) navigation.set({ dialog: "palette" });
      else if (e.key === "?" && !isWriting(e.target)) navigation.set({ dialog: "help" });
      else if (action) action.run();
      else return;
      e.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  if (loggedOut) return <Suspense><LogIn why={whyLoggedOut} /></Suspense>;
  const tab = ([name, icon]: Tab): JSX.Element => (
    <button type="button" key={name} aria-current={view === name ? "page" : undefined} title={t[name]} data-testid={`tab-${name}`}
      onClick={() => navigation.set({ view: name })}>
      <Icon name={icon} /><span className="label">{t[name]}</span>
      {name === "inbox" && waiting > 0 && <><span className="badge count" data-testid="inbox-count">{waiting}</span><span className="sr-only">{t.waitingShort}</span></>}
    </button>
  );
  return (
    <div className={`layout${menu === true ? " with-menu" : menu === false ? " without-side" : ""}`}>
      <Sidebar />
      {menu === true && <div className="shade only-narrow" onClick={() => navigation.set({ menu: null })} />}
      <div className="main">
        <header className="bar">
          <button type="button" className="quiet square" aria-label={t.menu} title={t.menu} data-testid="menu"
            aria-expanded={narrow ? menu === true : menu !== false} onClick={() => toggleMenu()}><Icon name="sidebar" /></button>
          <ChatTitle key={open?.id ?? ""} id={open?.id ?? null} title={title} />
          <FolderName />
          {open && <button type="button" className="quiet square" aria-label={t.filesBeside} title={t.withKey(t.filesBeside, "Ctrl Alt F")} data-testid="open-beside" aria-expanded={beside !== null}
            onClick={() => (beside ? closeBeside() : showBeside({ kind: "files" }))}><Icon name="panel" /></button>}
          <nav className="tabs" aria-label={t.views}>
            {OF_CHAT.map(tab)}
            <span className="divider" aria-hidden="true" />
            {OF_ALL.map(tab)}
            <button type="button" aria-label={t.palette} title={t.withKey(t.palette, "Ctrl K")} data-testid="open-palette"
              onClick={() => navigation.set({ dialog: "palette" })}><Icon name="search" /></button>
          </nav>
        </header>
        <Offline />
        <main className={beside && view === "chat" ? "split" : ""}>
          <Suspense fallback={<p className="panel faint">…</p>}>
            {view === "chat" ? <Conversation /> : view === "inbox" ? <Inbox /> : view === "board" ? <Board /> : view === "branches" ? <BranchMap /> : view === "trace" ? <Trace />
              : view === "trash" ? <TrashView /> : <Settings />}
          </Suspense>
          {beside && view === "chat" && <Suspense fallback={null}><Beside /></Suspense>}
        </main>
      </div>
      <Notices />
      {dialog === "palette" && <Palette onClose={() => navigation.set({ dialog: null })} />}
      {dialog === "options" && <Suspense><ChatOptions onClose={() => navigation.set({ dialog: null })} /></Suspense>}
      {dialog === "help" && <Suspense><Help onClose={() => navigation.set({ dialog: null })} /></Suspense>}
    </div>
  );
}

function Offline() {
  const { connection } = feed.use("connection");
  if (connection === "live") return null;
  return <p className="offline" role="status" data-testid="offline"><span className="dot" aria-hidden="true" />{connection === "offline" ? t.offline : t.connecting}</p>;
}

function Notices() {
  const { toasts, said } = notices.use("toasts", "said");
  return (
    <>
      <p className="sr-only" role="status" aria-live="polite" data-testid="said">{said}</p>
      <div className="toasts" role="status">
        {toasts.map((each) => (
          <div key={each.id} className="toast" data-testid="toast">
            <span>{each.text}</span>{each.action && <button type="button" data-testid="toast-action" onClick={() => act(each)}>{each.action.label}</button>}
          </div>
        ))}
      </div>
    </>
  );
}

// Attaches a file dropped anywhere to the next message, except on the list of chats. Otherwise the browser would open the file in place of the page.
function takeDroppedFiles(): void {
  const isOurs = (e: DragEvent): boolean => (e.dataTransfer?.types.includes("Files") ?? false) && !e.defaultPrevented;
  const show = (dropping: boolean): void => void (navigation.dropping !== dropping && navigation.set({ dropping }));
  const onDragOver = (e: DragEvent): void => {
    show(isOurs(e));
    if (isOurs(e)) e.preventDefault();
  };
  const onDragLeave = (e: DragEvent): void => void (e.relatedTarget === null && show(false));
  const onDrop = (e: DragEvent): void => {
    show(false);
    if (!isOurs(e)) return;
    e.preventDefault();
    const files = filesIn(e.dataTransfer);
    if (files.length > 0) navigation.set({ view: "chat", dropped: files });
  };
  addEventListener("dragover", onDragOver);
  addEventListener("dragleave", onDragLeave);
  addEventListener("drop", onDrop);
}

// The title of the chat, which a click makes editable.
function ChatTitle({ id, title }: { id: string | null; title: string }) {
  const [naming, setNaming] = useState(false);
  if (!id) return <h1 className="chat-name">{t.newChat}</h1>;
  if (!naming) return <h1 className="chat-name" dir="auto"><button type="button" className="quiet" title={t.rename} data-testid="title" onClick={() => setNaming(true)}>{title || t.untitled}</button></h1>;
  return <TitleField className="chat-name" id={id} title={title} testid="title-input" onEnd={() => setNaming(false)} />;
}

// The window's title and icon show the state while people look at another window.
function useTitle(waiting: number, running: number, title: string): void {
  useEffect(() => {
    document.title = `${waiting > 0 ? `(${waiting}) ` : running > 0 ? "● " : ""}${title || t.name}`;
    const color = waiting > 0 ? "%23c2410c" : running > 0 ? "%232563eb" : "%23667085";
    const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]");
    if (icon) icon.href = `data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="${color}"/></svg>`;
  }, [waiting, running, title]);
}

// Reports a fault of the page itself instead of an empty window.
class Boundary extends Component<{ children: ReactNode }, { failure: string | null }> {
  override state: { failure: string | null } = { failure: null };
  static getDerivedStateFromError(error: unknown): { failure: string } {
    return { failure: error instanceof Error ? error.message : String(error) };
  }
  override render(): ReactNode {
    if (this.state.failure === null) return this.props.children;
    return (
      <main className="login" role="alert" data-testid="broken">
        <h1>{t.broken}</h1><p>{t.brokenHint}</p><code>{this.state.failure}</code>
        <button type="button" className="primary" onClick={() => location.reload()}>{t.reload}</button>
      </main>
    );
  }
}

// Keys that an input method takes are for it alone: they end a word, not what is done on the page. In Safari the word has ended when its key comes, which has this code.
const OF_METHOD = 229;
addEventListener("keydown", (e) => (e.isComposing || e.keyCode === OF_METHOD) && e.stopImmediatePropagation(), true);

// The copy buttons within rendered code.
addEventListener("click", (e) => {
  const button = e.target instanceof HTMLButtonElement && e.target.classList.contains("copy") ? e.target : null;
  if (!button) return;
  void copied(button, button.closest(".code")?.querySelector("code")?.textContent ?? "");
});

// Lets browsers install the page. They do so from addresses that they trust alone.
if (isSecureContext) addEventListener("load", () => void navigator.serviceWorker?.register("/worker.js").catch(() => undefined));
const onTap = (told: object): void => void import("./install/taps").then((part) => part.tapped(told));
navigator.serviceWorker?.addEventListener("message", (e) => onTap(e.data));
whenTokenChanges(() => location.reload());
showTheme();
keepFocus();
takeDroppedFiles();
void translate().catch(() => undefined).then(() => { // in English, rather than not at all
  start();
  if (location.search) onTap(Object.fromEntries(new URLSearchParams(location.search)));
  createRoot(document.getElementById("page")!).render(<Boundary><Page /></Boundary>);
});
