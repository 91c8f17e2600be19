import { useEffect, useState } from "react";
import { readTools } from "../store/cache";
import { attempt } from "../store/state";
import { t } from "../texts";
import type { ServerLogin, ToolServer, Tools } from "../wire";
import { call } from "../wire/api";

const IS_WEB = /^https?:\/\//;
const AGAIN = 1500; // ms between two looks at whether somebody has logged in, or what became of a connection

// The MCP servers, how they are, and logging in at them.
export function ToolServers({ servers }: { servers: Tools["servers"] }) {
  useLookingAgain(servers.some((server) => server.state === "connecting"));
  return (
    <>
      <h2>{t.servers}</h2>
      <ul className="tool-list" data-testid="servers">{servers.map((server) => <Line key={server.name} server={server} />)}</ul>
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

function Line({ server }: { server: ToolServer }) {
  const [page, setPage] = useState<string | null>(null); // to be opened
  const path = `/tools/servers/${encodeURIComponent(server.name)}`;
  const waits = server.login === "logged_in" ? null : page;
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
  return (
    <li>
      <span><span className={`dot ${server.state === "failed" ? "failed" : server.state === "ready" ? "" : "running"}`} aria-hidden="true" /> {server.name}</span>
      <span className="hint">{waits && IS_WEB.test(waits) ? <>{t.loginOpens} <a href={waits} target="_blank" rel="noopener noreferrer">{t.loginPage}</a></> : server.message || t.toolCount(server.tools)}</span>
      {server.login === "logged_out" && <button type="button" data-testid="server-login" aria-label={t.loginAt(server.name)} onClick={() => void logIn()}>{t.loginThere}</button>}
      {server.login === "logged_in" && <button type="button" data-testid="server-logout" aria-label={t.logoutAt(server.name)} onClick={() => void logOut()}>{t.logoutThere}</button>}
      <span className="badge">{server.state}</span>
    </li>
  );
}
