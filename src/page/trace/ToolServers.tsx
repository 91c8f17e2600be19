import { FormEvent, useEffect, useState } from "react";
import { spelled } from "../chat/hidden";
import { cache, readTools } from "../store/cache";
import { attempt } from "../store/state";
import { t } from "../texts";
import { v } from "../texts_of_views";
import type { AddToolServerRequest, ServerLogin, ServerSetting, ToolServer, ToolServers as Listed, ToolServerTested } from "../wire";
import { ApiError, call, get } from "../wire/api";
import { Shown } from "./Shown";

const IS_WEB = /^https?:\/\//;
const AGAIN = 1500; // ms between checks of a log-in or a connection
const pathOf = (name: string): string => `/tools/servers/${encodeURIComponent(name)}`;
const linesOf = (text: string): string[] => text.split("\n").filter((line) => line !== "");
const pairsOf = (text: string, between: string): Record<string, string> =>
  Object.fromEntries(linesOf(text).map((line) => {
    const at = line.indexOf(between);
    return at < 0 ? [line.trim(), ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  }));

// Words as a shell would need them, so that it shows where each begins and ends.
const quoted = (words: string[]): string => words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");

// The MCP servers: those of the configuration, which wins, and those that were added here. Users who may not change them see which there are.
export function ToolServers() {
  const { tools } = cache.use("tools");
  const [found, setFound] = useState<Listed | null>(null);
  const [adding, setAdding] = useState(false);
  const read = (): Promise<void> => get<Listed>("/tools/servers").then(setFound, () => setFound(null));
  const states = tools?.servers ?? [];
  useEffect(() => void read(), []);
  useLookingAgain(states.some((server) => server.state === "connecting"));
  const again = async (): Promise<void> => {
    await read();
    await readTools();
  };
  if (!found && states.length === 0) return null;
  const listed: ServerSetting[] = found?.servers ?? states.map((each) => ({ name: each.name, is_configured: true, has_auth: false }));
  return (
    <>
      <h2>{v.servers}</h2>
      <p className="hint">{v.serversMean}</p>
      <ul className="tool-list" data-testid="servers">
        {listed.map((each) => <Line key={each.name} server={each} now={states.find((state) => state.name === each.name)} may={found !== null} isLocal={found?.is_local ?? false} again={again} />)}
      </ul>
      {found && !adding && <button type="button" data-testid="add-server" onClick={() => setAdding(true)}>{v.addServer}</button>}
      {found && adding && <Add found={found} onCancel={() => setAdding(false)} onDone={() => {
        setAdding(false);
        void attempt(again);
      }} />}
    </>
  );
}

function useLookingAgain(changes: boolean) {
  useEffect(() => {
    if (!changes) return;
    const timer = setInterval(() => void readTools(), AGAIN);
    return () => clearInterval(timer);
  }, [changes]);
}

function Line({ server, now, may, isLocal, again }: { server: ServerSetting; now?: ToolServer; may: boolean; isLocal: boolean; again: () => Promise<void> }) {
  const [page, setPage] = useState<string | null>(null); // to open for the log-in
  const [said, setSaid] = useState<{ text: string; good: boolean } | null>(null);
  const [busy, setBusy] = useState(false);
  const path = pathOf(server.name);
  const waits = now?.login === "logged_in" ? null : page;
  useLookingAgain(waits !== null);
  const logIn = () => attempt(async () => {
    const { open } = await call<ServerLogin>("POST", `${path}/login`);
    if (open && IS_WEB.test(open)) window.open(open, "_blank", "noopener,noreferrer");
    setPage(open);
    if (!open) await readTools();
  });
  const logOut = () => attempt(async () => {
    await call("POST", `${path}/logout`);
    setPage(null);
    await readTools();
  });
  const test = async (): Promise<void> => {
    setBusy(true);
    setSaid(null);
    try {
      setSaid({ text: (await call<ToolServerTested>("POST", `${path}/test`)).message, good: true });
    } catch (error) {
      setSaid({ text: error instanceof ApiError ? error.message : t.offline, good: false });
    }
    setBusy(false);
  };
  const remove = () => attempt(async () => {
    await call("DELETE", `${path}?digest=${encodeURIComponent(server.digest ?? "")}`);
    await again();
  });
  const state = server.problem ? "failed" : now?.state;
  const where = server.command ? quoted(server.command) : (server.url ?? "");
  return (
    <li data-testid="server" data-name={server.name}>
      <span><span className={`dot ${state === "failed" ? "failed" : state === "ready" ? "" : "running"}`} aria-hidden="true" /> {server.name}</span>
      <span className="hint">
        {waits && IS_WEB.test(waits) ? <>{v.loginOpens} <a href={waits} target="_blank" rel="noopener noreferrer">{v.loginPage}</a></> : server.problem || now?.message || (now ? v.toolCount(now.tools) : "")}
        {where && <> · <code dir="auto">{spelled(where)}</code></>}
        {server.is_configured && server.source && <> · {v.standsIn} <code dir="auto">{spelled(server.source)}</code></>}
        {said && <span role="status" className={said.good ? "good" : "bad"} data-testid="server-said"> {spelled(said.text)}</span>}
      </span>
      {now?.login === "logged_out" && <button type="button" data-testid="server-login" aria-label={v.loginAt(server.name)} onClick={() => void logIn()}>{v.loginThere}</button>}
      {now?.login === "logged_in" && <button type="button" data-testid="server-logout" aria-label={v.logoutAt(server.name)} onClick={() => void logOut()}>{v.logoutThere}</button>}
      {may && <button type="button" data-testid="test-server" aria-label={v.testOf(server.name)} disabled={busy} onClick={() => void test()}>{v.testIt}</button>}
      {may && !server.is_configured && (isLocal || !server.command) && <button type="button" data-testid="remove-server" aria-label={v.removeOf(server.name)} onClick={() => void remove()}>{v.removeIt}</button>}
      {state && <span className="badge">{v.serverIs(state)}</span>}
    </li>
  );
}

// A server with an address is added at once. The command line of a program is shown as it would run, with its digest, before it is added.
function Add({ found, onCancel, onDone }: { found: Listed; onCancel: () => void; onDone: () => void }) {
  const [runs, setRuns] = useState(false);
  const [name, setName] = useState("");
  const [place, setPlace] = useState(""); // its address, or its program
  const [words, setWords] = useState("");
  const [secrets, setSecrets] = useState("");
  const [login, setLogin] = useState(false);
  const [shown, setShown] = useState<ServerSetting | null>(null);
  const [failed, setFailed] = useState("");
  const [busy, setBusy] = useState(false);
  const wanted = (): AddToolServerRequest => (runs
    ? { command: place, args: linesOf(words), env: pairsOf(secrets, "=") }
    : { url: place, headers: pairsOf(secrets, ":"), ...(login ? { auth: { type: "oauth" } } : {}) });
  const put = async (more: { dry_run?: boolean; digest?: string }): Promise<void> => {
    setBusy(true);
    setFailed("");
    try {
      const answer = await call<ServerSetting>("PUT", pathOf(name), { ...wanted(), ...more });
      if (more.dry_run) setShown(answer);
      else onDone();
    } catch (error) {
      setShown(null);
      setFailed(error instanceof ApiError ? error.message : t.offline);
    }
    setBusy(false);
  };
  const submit = (e: FormEvent): void => {
    e.preventDefault();
    void put(runs ? { dry_run: true } : {});
  };
  const change = (set: (text: string) => void) => (e: { target: { value: string } }): void => {
    setShown(null); // what was shown is not what would be added now
    set(e.target.value);
  };
  return (
    <form className="connect-provider" data-testid="add-server-form" onSubmit={submit}>
      <label className="field"><span>{v.serverKind}</span>
        <select data-testid="server-kind" value={runs ? "program" : "address"} onChange={(e) => { setRuns(e.target.value === "program"); setShown(null); }}>
          <option value="address">{v.serverAddress}</option>
          {found.is_local && <option value="program">{v.serverProgram}</option>}
        </select></label>
      {!found.is_local && <p className="hint" data-testid="only-local">{v.onlyLocal}</p>}
      <label className="field"><span>{v.serverName}</span><input data-testid="server-name" value={name} required pattern="[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}" spellCheck={false} onChange={change(setName)} /></label>
      <label className="field"><span>{runs ? v.serverProgram : v.serverAddress}</span><input data-testid="server-place" type={runs ? "text" : "url"} value={place} required spellCheck={false} onChange={change(setPlace)} /></label>
      {runs && <label className="field"><span>{v.serverWords}</span><textarea data-testid="server-words" rows={3} value={words} spellCheck={false} onChange={change(setWords)} /></label>}
      <label className="field"><span>{runs ? v.serverVariables : v.serverHeaders}</span><textarea data-testid="server-secrets" rows={2} autoComplete="off" value={secrets} spellCheck={false} onChange={change(setSecrets)} /></label>
      {!runs && <label className="setting"><input type="checkbox" data-testid="server-oauth" checked={login} onChange={(e) => setLogin(e.target.checked)} /><span>{v.serverLogin}</span></label>}
      <p className="hint">{runs ? v.programMeans : v.addressMeans} {found.sealed ? v.secretsAreKept : v.secretsAreKeptPlain}</p>
      {failed && <p className="bad" role="alert" data-testid="server-failed">{spelled(failed)}</p>}
      {shown && <Shown testid="shown-server" label={v.runsThis} words={quoted(shown.command ?? [])} more={shown.env ? `${v.serverVariables}: ${shown.env.join(", ")}` : ""} digest={shown.digest ?? ""} />}
      <div className="row">
        {!shown && <button type="submit" className="primary" data-testid="server-add" disabled={busy}>{runs ? v.showFirst : v.addServer}</button>}
        {shown && <button type="button" className="primary" data-testid="server-agree" disabled={busy} onClick={() => void put({ digest: shown.digest })}>{v.runIt}</button>}
        <button type="button" onClick={onCancel}>{t.cancel}</button>
      </div>
    </form>
  );
}
