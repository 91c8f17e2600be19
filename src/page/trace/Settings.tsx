import { useEffect, useState } from "react";
import { spelled } from "../chat/hidden";
import { ModelPicker } from "../chat/ModelPicker";
import { Connect } from "../chat/Welcome";
import { beToldNoMore } from "../install/devices";
import { CopyButton } from "../parts/Icon";
import { allTurns, cache, useOpen } from "../store/cache";
import { LANGUAGES, translate } from "../language";
import { navigation } from "../store/navigation";
import { beginWith, newChats } from "../store/requests";
import { attempt, store, tell } from "../store/state";
import { t } from "../texts";
import { v } from "../texts_of_views";
import { setTheme, themeNow } from "../theme";
import type { ChangeChatRequest, ChatGrants, Grants as Standing } from "../wire";
import { call, chatPath, get, hasToken, isNotFound, logOut } from "../wire/api";
import { Devices } from "./Devices";
import { Providers } from "./Providers";
import { Rules } from "./Rules";
import { ToolServers } from "./ToolServers";
import { Usage } from "./Usage";

// The settings of this browser, and those that the server runs with.
export function Settings() {
  const { tools, models, instructions } = cache.use("tools", "models", "instructions");
  const [theme, choose] = useState(themeNow());
  const [notes, setNotes] = useState(localStorage.getItem("notify") === "on");
  const wantNotes = async (wanted: boolean): Promise<void> => {
    const allowed = wanted && typeof Notification !== "undefined" && (await Notification.requestPermission()) === "granted";
    store("notify", allowed ? "on" : "off");
    setNotes(allowed);
    if (wanted && !allowed) tell(v.notAllowed);
  };
  const providers = [...new Set(models.models.map((each) => each.provider))];
  const isOffline = models.models.find((each) => each.name === models.default)?.provider === "offline";
  return (
    <section className="panel narrow" data-testid="settings" aria-label={t.settings}>
      <h2>{t.settings}</h2>
      <label className="setting"><span>{v.theme}</span>
        <select data-testid="theme" value={theme} onChange={(e) => {
          setTheme(e.target.value);
          choose(e.target.value);
        }}>{Object.entries(v.themes).map(([value, name]) => <option key={value} value={value}>{name}</option>)}</select>
      </label>
      <label className="setting"><span>{v.language}</span>
        <select data-testid="language" value={localStorage.getItem("language") ?? ""} onChange={(e) => {
          store("language", e.target.value);
          void attempt(async () => navigation.set({ language: await translate() }));
        }}>
          <option value="">{v.sameLanguage}</option>
          {Object.entries(LANGUAGES).map(([value, { name }]) => <option key={value} value={value} lang={value}>{name}</option>)}
        </select>
      </label>
      <label className="setting"><input type="checkbox" checked={notes} onChange={(e) => void wantNotes(e.target.checked)} /><span>{v.notifications}</span></label>
      <Devices />
      {hasToken() && <button type="button" data-testid="log-out" onClick={() => void Promise.race([beToldNoMore().catch(() => undefined), new Promise((done) => setTimeout(done, 2000))]).then(() => {
        logOut();
        location.reload();
      })}>{v.logOut}</button>}
      <h2>{v.server}</h2>
      <dl className="facts">
        <div><dt>{t.model}</dt><dd><code>{models.default}</code></dd></div>
        {tools && <div><dt>{t.mode}</dt><dd>{v.modes[tools.approval_mode] ?? tools.approval_mode}</dd></div>}
        {tools && <div><dt>{v.workspace}</dt><dd>{tools.workspace ? <><code>{tools.workspace}</code> <CopyButton text={tools.workspace} /></> : "–"}</dd></div>}
        {providers.map((provider) => <div key={provider}><dt>{provider}</dt><dd>{v.modelsOf(models.models.filter((each) => each.provider === provider).length)}</dd></div>)}
      </dl>
      <Providers />
      <Defaults />
      {isOffline && <Connect title={t.howToConnect} />}
      <ToolServers />
      {instructions.length > 0 && (
        <>
          <h2>{v.instructions}</h2>
          <ul className="tool-list" data-testid="instruction-files">
            {instructions.map((each) => <li key={each.path}><code dir="auto">{spelled(each.path)}</code><span className="hint">{each.problem ?? v.instructionsAre(each.state)}{each.name && ` (${each.name}: ${spelled(each.description ?? "")})`}</span></li>)}
          </ul>
        </>
      )}
      <Rules />
      <Grants />
      <Usage />
      {tools && (
        <>
          <h2>{v.tools} <span className="badge">{tools.tools.length}</span></h2>
          <ul className="tool-list" data-testid="tools">
            {tools.tools.map((tool) => (
              <li key={tool.name}>
                <code>{tool.name}</code><span className="hint">{v.toolDoes[tool.name] ?? tool.description.split(/(?<=\.)\s/)[0]}</span>
                <span className={`badge ${tool.requires_approval ? "warned" : ""}`}>{tool.requires_approval ? v.asks : v.runsByItself}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

// What a new chat of this browser begins with.
function Defaults() {
  const [model, setModel] = useState(newChats().model ?? "");
  const [mode, setMode] = useState<string>(newChats().approval_mode ?? "");
  return (
    <>
      <h2>{v.newChats}</h2>
      <div className="setting"><span>{t.model}</span><ModelPicker value={model} testid="default-model" onChange={(name) => {
        setModel(name);
        beginWith({ model: name || null });
      }} /></div>
      <label className="setting"><span>{t.mode}</span>
        <select data-testid="default-mode" value={mode} onChange={(e) => {
          setMode(e.target.value);
          beginWith({ approval_mode: (e.target.value || null) as ChangeChatRequest["approval_mode"] });
        }}>
          <option value="">{t.serversModeMeans}</option>
          {["ask", "read_only", "plan", "auto", "deny_all"].map((each) => <option key={each} value={each}>{t.shortModes[each]}</option>)}
        </select>
      </label>
      <p className="hint">{v.newChatsHint}</p>
    </>
  );
}

// The arguments of allowed calls: a grant has only their digest, so they are found in the chat's events.
async function inputsOf(digests: Set<string>): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const { open } = cache;
  if (!open || digests.size === 0) return found;
  for await (const turns of allTurns(open)) {
    for (const event of turns.flatMap((turn) => turn.events)) {
      if (event.type === "APPROVAL_REQUIRED" && digests.has(event.arguments_digest)) found.set(event.arguments_digest, event.tool_input);
    }
    if (found.size === digests.size) break;
  }
  return found;
}

interface Grant {
  path: string; // to revoke it
  tool: string;
  input?: string;
  means?: string; // meaning of its pattern
  outdated?: boolean; // it covers nothing any more
  uses: number;
  until?: string;
  scope: "always" | "chat";
}

// The date, with the time if it is less than two days away.
function dayOf(time: string): string {
  const date = new Date(time);
  return date.getTime() - Date.now() < 2 * 86_400_000 ? date.toLocaleString([], { dateStyle: "short", timeStyle: "short" }) : date.toLocaleDateString();
}

async function readAll(chat: string | undefined): Promise<Grant[]> {
  const parts = (each: Standing["grants"][number] | ChatGrants["grants"][number]) => ({ tool: each.tool_name, means: each.means, outdated: each.outdated, uses: each.uses ?? 0, until: each.expires_at });
  const standing = (await get<Standing>("/grants")).grants.map((each): Grant => ({ ...parts(each), path: `/grants/${each.id}`, input: each.pattern ?? each.tool_input, scope: "always" }));
  if (!chat) return standing;
  const path = `${chatPath(chat)}/grants`;
  const { grants } = await get<ChatGrants>(path).catch((error) => (isNotFound(error) ? { grants: [] } : Promise.reject(error)));
  const inputs = await inputsOf(new Set(grants.flatMap((each) => (each.pattern ? [] : [each.arguments_digest ?? ""])))).catch(() => new Map<string, string>());
  return [...standing, ...grants.map((each): Grant => ({ ...parts(each), path: `${path}/${each.id}`, input: each.pattern ?? inputs.get(each.arguments_digest ?? ""), scope: "chat" }))];
}

// The grants of all chats and of the open one, each of which can be revoked.
function Grants() {
  const [grants, setGrants] = useState<Grant[] | null>(null); // not known
  const chat = useOpen()?.id;
  const read = async (): Promise<void> => {
    setGrants(null);
    await attempt(async () => setGrants(await readAll(chat)), t.offline);
  };
  useEffect(() => void read(), [chat]);
  const revoke = async (grant: Grant): Promise<void> => {
    await attempt(() => call("DELETE", grant.path));
    await read();
  };
  return (
    <>
      <h2>{v.grants}</h2>
      <p className="hint">{v.grantsMean}</p>
      {grants?.length === 0 && <p className="faint">{v.noGrants}</p>}
      <ul className="plain-list">
        {grants?.map((grant) => (
          <li key={grant.path} className="row" data-testid="grant">
            <strong>{grant.tool}</strong> <span className="badge">{t.scopes[grant.scope]}</span> <code className="grow">{spelled(grant.input ?? "")}</code>
            {grant.outdated && <span className="badge" data-testid="grant-outdated" title={v.grantOutdatedHint}>{v.grantOutdated}</span>}
            <span className="faint" data-testid="grant-use">{v.usedTimes(grant.uses)}{grant.until && `, ${v.until(dayOf(grant.until))}`}</span>
            <button type="button" aria-label={v.revokeOf(grant.tool)} onClick={() => void revoke(grant)}>{v.revoke}</button>
            {!grant.means && <p className="hint means" data-testid="grant-means">{grant.input ? t.allowEqualMeans : v.allowUnknownMeans}</p>}
            {grant.means && <p className="hint means" data-testid="grant-means">{spelled(grant.means)}</p>}
          </li>
        ))}
      </ul>
    </>
  );
}
