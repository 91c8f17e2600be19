import { store, useStore } from "../store/store";
import { t } from "../texts";
import type { ApprovalMode } from "../wire";

const MODES: ApprovalMode[] = ["ask", "read_only", "approve_all", "deny_all"];

// What decides on the tool calls of this chat. The server keeps it.
export function ModePicker() {
  const { tools } = useStore();
  const mode = store.settings().approval_mode ?? "";
  const server = tools?.approval_mode ?? "ask";
  return (
    <select aria-label={t.mode} title={t.mode} data-testid="mode" className="mode" data-mode={mode || server} value={mode} disabled={server === "deny_all"}
      onChange={(e) => void store.configure({ approval_mode: (e.target.value || null) as ApprovalMode | null })}>
      <option value="">{t.serversMode(t.shortModes[server] ?? server)}</option>
      {MODES.map((each) => <option key={each} value={each}>{t.shortModes[each]}</option>)}
    </select>
  );
}
