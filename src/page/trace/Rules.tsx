import { FormEvent, useEffect, useState } from "react";
import { spelled } from "../chat/hidden";
import { cache, readTools } from "../store/cache";
import { attempt } from "../store/state";
import { t } from "../texts";
import { v } from "../texts_of_views";
import type { AddRuleRequest, Rules as Listed, RuleSetting } from "../wire";
import { ApiError, call, get } from "../wire/api";
import { Shown } from "./Shown";

const ACTIONS: AddRuleRequest["action"][] = ["deny", "ask", "allow"];
const wordsOf = (rule: { action: string; tool: string; pattern?: string }): string => `${rule.action} ${rule.tool}${rule.pattern === undefined ? "" : `: ${rule.pattern}`}`;

// The approval rules that hold: those of the configuration, which wins, and those that were added here. Nothing is shown to users who may not see them.
export function Rules() {
  const [found, setFound] = useState<Listed | null>(null);
  const [adding, setAdding] = useState(false);
  const read = (): Promise<void> => get<Listed>("/rules").then(setFound, () => setFound(null));
  useEffect(() => void read(), []);
  const again = async (): Promise<void> => {
    await read();
    await readTools();
  };
  const remove = (rule: RuleSetting) => attempt(async () => {
    await call("DELETE", `/rules/${rule.id}?digest=${encodeURIComponent(rule.digest ?? "")}`);
    await again();
  });
  if (!found) return null;
  return (
    <>
      <h2>{v.rules}</h2>
      <p className="hint">{v.rulesMean}</p>
      {found.rules.length === 0 && <p className="faint">{v.noRules}</p>}
      <ul className="plain-list" data-testid="rules">
        {found.rules.map((rule, i) => (
          <li key={rule.id ?? i} className="row" data-testid="rule" data-id={rule.id ?? ""}>
            <span className="badge">{v.ruleActions[rule.action]}</span> <strong>{rule.tool}</strong> <code className="grow" dir="auto">{spelled(rule.pattern ?? "")}</code>
            {rule.problem && <span className="badge warned" title={spelled(rule.problem)}>{v.ruleIsOff}</span>}
            <span className="faint">{rule.id ? v.addedHere : <>{v.standsIn} <code dir="auto">{spelled(rule.source ?? "")}</code></>}</span>
            {rule.id && found.is_local && <button type="button" data-testid="remove-rule" aria-label={v.removeOf(wordsOf(rule))} onClick={() => void remove(rule)}>{v.removeIt}</button>}
            <p className="hint means" data-testid="rule-means">{spelled(rule.problem ?? rule.means)}</p>
          </li>
        ))}
      </ul>
      {!adding && <button type="button" data-testid="add-rule" onClick={() => setAdding(true)}>{v.addRule}</button>}
      {adding && <Add isLocal={found.is_local} onCancel={() => setAdding(false)} onDone={() => {
        setAdding(false);
        void attempt(again);
      }} />}
    </>
  );
}

// The server says what the words mean before the rule is added.
function Add({ isLocal, onCancel, onDone }: { isLocal: boolean; onCancel: () => void; onDone: () => void }) {
  const { tools } = cache.use("tools");
  const [action, setAction] = useState<AddRuleRequest["action"]>("deny");
  const [tool, setTool] = useState("");
  const [pattern, setPattern] = useState("");
  const [shown, setShown] = useState<RuleSetting | null>(null);
  const [failed, setFailed] = useState("");
  const [busy, setBusy] = useState(false);
  const post = async (more: { dry_run?: boolean; digest?: string }): Promise<void> => {
    setBusy(true);
    setFailed("");
    try {
      const answer = await call<RuleSetting>("POST", "/rules", { action, tool, ...(pattern ? { pattern } : {}), ...more });
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
    void post({ dry_run: true });
  };
  const change = (set: (text: string) => void) => (e: { target: { value: string } }): void => {
    setShown(null);
    set(e.target.value);
  };
  return (
    <form className="connect-provider" data-testid="add-rule-form" onSubmit={submit}>
      <label className="field"><span>{v.ruleAction}</span>
        <select data-testid="rule-action" value={action} onChange={change((text) => setAction(text as AddRuleRequest["action"]))}>
          {ACTIONS.filter((each) => isLocal || each !== "allow").map((each) => <option key={each} value={each}>{v.ruleActions[each]}</option>)}
        </select></label>
      <label className="field"><span>{v.ruleTool}</span><input data-testid="rule-tool" list="rule-tools" value={tool} required spellCheck={false} onChange={change(setTool)} /></label>
      <datalist id="rule-tools">{tools?.tools.map((each) => <option key={each.name} value={each.name} />)}</datalist>
      <label className="field"><span>{v.rulePattern}</span><input data-testid="rule-pattern" value={pattern} spellCheck={false} onChange={change(setPattern)} /></label>
      {!isLocal && <p className="hint">{v.onlyLocalRules}</p>}
      {failed && <p className="bad" role="alert" data-testid="rule-failed">{spelled(failed)}</p>}
      {shown && <Shown testid="shown-rule" label={v.ruleWouldBe} words={wordsOf(shown)} more={shown.means} digest={shown.digest ?? ""} />}
      <div className="row">
        {!shown && <button type="submit" className="primary" data-testid="rule-look" disabled={busy}>{v.showFirst}</button>}
        {shown && <button type="button" className="primary" data-testid="rule-agree" disabled={busy} onClick={() => void post({ digest: shown.digest })}>{v.addThisRule}</button>}
        <button type="button" onClick={onCancel}>{t.cancel}</button>
      </div>
    </form>
  );
}
