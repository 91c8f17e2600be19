import { useState } from "react";
import { Grants } from "../inbox/Grants";
import { useStore } from "../store/store";
import { setTheme, themeNow } from "../theme";
import { t } from "../texts";

// What this browser shows, and what the server runs with.
export function Settings() {
  const { tools, models } = useStore();
  const [theme, choose] = useState(themeNow());
  const [notes, setNotes] = useState(localStorage.getItem("notify") === "on");
  const wantNotes = async (wanted: boolean): Promise<void> => {
    const allowed = wanted && typeof Notification !== "undefined" && (await Notification.requestPermission()) === "granted";
    localStorage.setItem("notify", allowed ? "on" : "off");
    setNotes(allowed);
  };
  return (
    <section className="panel" data-testid="settings" aria-label={t.settings}>
      <h2>{t.settings}</h2>
      <label className="field"><span>{t.theme}</span>
        <select data-testid="theme" value={theme} onChange={(e) => {
          setTheme(e.target.value);
          choose(e.target.value);
        }}>{Object.entries(t.themes).map(([value, name]) => <option key={value} value={value}>{name}</option>)}</select>
      </label>
      <label className="field check"><input type="checkbox" checked={notes} onChange={(e) => void wantNotes(e.target.checked)} /><span>{t.notifications}</span></label>
      <h2>{t.server}</h2>
      <dl className="facts">
        <div><dt>{t.model}</dt><dd>{models.default}</dd></div>
        {tools && <><div><dt>{t.mode}</dt><dd>{tools.approval_mode}</dd></div><div><dt>{t.workspace}</dt><dd>{tools.workspace ?? "–"}</dd></div>
          <div><dt>{t.tools}</dt><dd>{tools.tools.map((tool) => tool.name).join(", ")}</dd></div>
          {tools.servers.length > 0 && <div><dt>{t.servers}</dt><dd>{tools.servers.map((server) => `${server.name}: ${server.state}`).join(", ")}</dd></div>}</>}
      </dl>
      <Grants />
    </section>
  );
}
