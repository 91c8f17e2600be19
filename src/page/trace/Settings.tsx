import { useState } from "react";
import { Grants } from "../inbox/Grants";
import { spelled } from "../chat/hidden";
import { Connect } from "../chat/Welcome";
import { CopyButton } from "../parts/CopyButton";
import { cache } from "../store/cache";
import { tell } from "../store/state";
import { setTheme, themeNow } from "../theme";
import { t } from "../texts";
import { hasToken, logOut } from "../wire/api";
import { ToolServers } from "./ToolServers";

// What this browser shows, and what the server runs with.
export function Settings() {
  const { tools, models, instructions } = cache.use("tools", "models", "instructions");
  const [theme, choose] = useState(themeNow());
  const [notes, setNotes] = useState(localStorage.getItem("notify") === "on");
  const wantNotes = async (wanted: boolean): Promise<void> => {
    const allowed = wanted && typeof Notification !== "undefined" && (await Notification.requestPermission()) === "granted";
    localStorage.setItem("notify", allowed ? "on" : "off");
    setNotes(allowed);
    if (wanted && !allowed) tell(t.notAllowed);
  };
  const providers = [...new Set(models.models.map((each) => each.provider))];
  const isOffline = models.models.find((each) => each.name === models.default)?.provider === "offline";
  return (
    <section className="panel narrow" data-testid="settings" aria-label={t.settings}>
      <h2>{t.settings}</h2>
      <label className="setting"><span>{t.theme}</span>
        <select data-testid="theme" value={theme} onChange={(e) => {
          setTheme(e.target.value);
          choose(e.target.value);
        }}>{Object.entries(t.themes).map(([value, name]) => <option key={value} value={value}>{name}</option>)}</select>
      </label>
      <label className="setting"><input type="checkbox" checked={notes} onChange={(e) => void wantNotes(e.target.checked)} /><span>{t.notifications}</span></label>
      {hasToken() && <button type="button" data-testid="log-out" onClick={() => {
        logOut();
        location.reload();
      }}>{t.logOut}</button>}
      <h2>{t.server}</h2>
      <dl className="facts">
        <div><dt>{t.model}</dt><dd><code>{models.default}</code></dd></div>
        {tools && <div><dt>{t.mode}</dt><dd>{t.modes[tools.approval_mode] ?? tools.approval_mode}</dd></div>}
        {tools && <div><dt>{t.workspace}</dt><dd>{tools.workspace ? <><code>{tools.workspace}</code> <CopyButton text={tools.workspace} /></> : "–"}</dd></div>}
        {providers.map((provider) => <div key={provider}><dt>{provider}</dt><dd>{t.modelsOf(models.models.filter((each) => each.provider === provider).length)}</dd></div>)}
      </dl>
      {isOffline && <Connect title={t.howToConnect} />}
      {tools && tools.servers.length > 0 && <ToolServers servers={tools.servers} />}
      {instructions.length > 0 && (
        <>
          <h2>{t.instructions}</h2>
          <ul className="tool-list" data-testid="instruction-files">
            {instructions.map((each) => <li key={each.path}><code dir="auto">{spelled(each.path)}</code><span className="hint">{each.problem ?? t.instructionsAre(each.state)}{each.name && ` (${each.name}: ${spelled(each.description ?? "")})`}</span></li>)}
          </ul>
        </>
      )}
      <Grants />
      {tools && (
        <>
          <h2>{t.tools} <span className="badge">{tools.tools.length}</span></h2>
          <ul className="tool-list" data-testid="tools">
            {tools.tools.map((tool) => (
              <li key={tool.name}>
                <code>{tool.name}</code><span className="hint">{tool.description.split(/(?<=\.)\s/)[0]}</span>
                <span className={`badge ${tool.requires_approval ? "warned" : ""}`}>{tool.requires_approval ? t.asks : t.runsByItself}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}
