import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { Board } from "./board/Board";
import { Conversation } from "./chat/Conversation";
import { Sidebar } from "./chats/Sidebar";
import { Inbox } from "./inbox/Inbox";
import { actions } from "./keys/actions";
import { keepFocus } from "./keys/focus";
import { Help, Palette } from "./keys/Palette";
import { store, useStore, View } from "./store/store";
import { t } from "./texts";
import { showTheme } from "./theme";
import { BranchMap } from "./time/BranchMap";
import { Settings } from "./trace/Settings";
import { Trace } from "./trace/Trace";
import { ApiError } from "./wire/api";

const VIEWS: [View, string][] = [["chat", t.chats], ["inbox", t.inbox], ["board", t.board], ["branches", t.branches], ["trace", t.trace], ["settings", t.settings]];

function Page() {
  const { view, open, chats, approvals, inputs, connection, loggedOut, toasts, said } = useStore();
  const [dialog, setDialog] = useState<"palette" | "help" | null>(null);
  const [menu, setMenu] = useState(false);
  const waiting = approvals.size + inputs.size;
  const running = [...chats.values()].filter((chat) => chat.status === "running").length;
  useTitle(waiting, running, (open && chats.get(open.id)?.title) ?? "");
  useEffect(() => {
    const onKey = (e: KeyboardEvent): void => {
      const writing = e.target instanceof HTMLInputElement || e.target instanceof HTMLTextAreaElement || e.target instanceof HTMLSelectElement;
      const action = actions().find((each) => each.key?.(e));
      if ((e.ctrlKey || e.metaKey) && !e.altKey && e.key.toLowerCase() === "k") setDialog("palette");
      else if (e.key === "?" && !writing) setDialog("help");
      else if (action) action.run();
      else return;
      e.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  if (loggedOut) return <LogIn />;
  return (
    <div className={menu ? "layout with-menu" : "layout"}>
      <Sidebar onPick={() => setMenu(false)} />
      <div className="main">
        <header className="bar">
          <button type="button" className="quiet only-narrow" aria-label={t.menu} aria-expanded={menu} onClick={() => setMenu(!menu)}>☰</button>
          <div role="tablist" aria-label={t.name} className="tabs">
            {VIEWS.map(([name, text]) => (
              <button type="button" key={name} role="tab" aria-selected={view === name} data-testid={`tab-${name}`} onClick={() => store.set({ view: name })}>
                {name === "chat" ? (open && chats.get(open.id)?.title) || t.newChat : text}
                {name === "inbox" && waiting > 0 && <span className="badge" data-testid="inbox-count">{waiting}</span>}
              </button>
            ))}
          </div>
        </header>
        {connection !== "live" && <p className="offline" role="status" data-testid="offline">{connection === "offline" ? t.offline : t.connecting}</p>}
        <main>
          {view === "chat" ? <Conversation /> : view === "inbox" ? <Inbox /> : view === "board" ? <Board /> : view === "branches" ? <BranchMap /> : view === "trace" ? <Trace /> : <Settings />}
        </main>
      </div>
      <p className="sr-only" role="status" aria-live="polite" data-testid="said">{said}</p>
      <div className="toasts" role="status">
        {toasts.map((each) => <div key={each.id} className="toast" data-testid="toast">{each.text}{each.action && <button type="button" data-testid="toast-action" onClick={each.action.run}>{each.action.label}</button>}</div>)}
      </div>
      {dialog === "palette" && <Palette onClose={() => setDialog(null)} />}
      {dialog === "help" && <Help onClose={() => setDialog(null)} />}
    </div>
  );
}

function LogIn() {
  const [token, setToken] = useState("");
  const [wrong, setWrong] = useState(false);
  return (
    <main className="login" data-testid="login">
      <h1>{t.name}</h1>
      <form onSubmit={(e) => {
        e.preventDefault();
        store.logIn(token).catch((error) => setWrong(error instanceof ApiError));
      }}>
        <p>{t.login}</p>
        <label className="field"><span>{t.token}</span><input type="password" autoFocus autoComplete="current-password" data-testid="token" value={token} onChange={(e) => setToken(e.target.value)} /></label>
        {wrong && <p className="bad" role="alert">{t.wrongToken}</p>}
        <button type="submit" className="primary" data-testid="log-in">{t.logIn}</button>
      </form>
    </main>
  );
}

// The window's title and icon tell what goes on here when another one is looked at.
function useTitle(waiting: number, running: number, title: string): void {
  useEffect(() => {
    document.title = `${waiting > 0 ? `(${waiting}) ` : running > 0 ? "● " : ""}${title || t.name}`;
    const color = waiting > 0 ? "%23c2410c" : running > 0 ? "%232563eb" : "%23667085";
    const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]");
    if (icon) icon.href = `data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="${color}"/></svg>`;
  }, [waiting, running, title]);
}

// Code is copied by the button that stands in its markdown.
addEventListener("click", (e) => {
  const button = e.target instanceof HTMLButtonElement && e.target.classList.contains("copy") ? e.target : null;
  if (!button) return;
  void navigator.clipboard.writeText(button.closest(".code")?.querySelector("code")?.textContent ?? "").then(() => {
    button.textContent = t.copied;
    setTimeout(() => (button.textContent = t.copy), 1500);
  });
});

showTheme();
keepFocus();
store.start();
createRoot(document.getElementById("page")!).render(<Page />);
