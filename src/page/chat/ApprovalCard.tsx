import { useEffect, useState } from "react";
import { store, useStore } from "../store/store";
import type { Approval } from "../store/turn";
import { t } from "../texts";
import { get } from "../wire/api";
import type { FileChange } from "../wire";
import { Diff } from "./Diff";
import { hasHidden, spelled } from "./hidden";
import { defaultsOf, parseSchema, SchemaForm, Values } from "./SchemaForm";

// A call that waits for a person: what exactly would run, and every way to answer.
export function ApprovalCard({ approval, tool }: { approval: Approval; tool: string }) {
  const [change, setChange] = useState<FileChange | null>(null);
  const [words, setWords] = useState("");
  const [scope, setScope] = useState("once");
  const [edited, setEdited] = useState<Values | null>(null);
  const [busy, setBusy] = useState(false);
  const { tools } = useStore(); // they may be read after the card is drawn
  const spec = tools?.tools.find((each) => each.name === tool);
  const schema = parseSchema(spec ? JSON.stringify(spec.parameters) : undefined);
  const scopes = ["once", "chat", "always"].filter((each) => each === "once" || approval.allowed_decisions.some((one) => one.includes(each)));

  useEffect(() => {
    void get<FileChange>(`/approvals/${approval.approval_id}/change`).then(setChange, () => undefined);
  }, [approval.approval_id]);

  const answer = async (approved: boolean): Promise<void> => {
    setBusy(true);
    const body: Record<string, unknown> = { approved };
    if (words) body.feedback = words;
    if (approved && scope !== "once") body.scope = scope;
    if (approved && edited) body.arguments = edited;
    await store.answer(approval.approval_id, body);
    setBusy(false);
  };
  const parsed = parse(approval.tool_input);
  return (
    <section className={`card approval risk-${approval.risk}`} data-testid="approval-card" data-approval={approval.approval_id} aria-label={t.approvalFor(tool)}>
      <header><strong>{t.approvalFor(tool)}</strong> <span className={`badge risk-${approval.risk}`}>{t.risk(approval.risk)}</span></header>
      {approval.reason && <p className="hint">{approval.reason}</p>}
      {hasHidden(approval.tool_input) && <p className="warning">{t.hiddenCharacters}</p>}
      {change ? <><p className="path">{change.path}{!change.exists && ` (${t.newFile})`}</p><Diff before={change.before ?? ""} after={change.after ?? ""} /></>
        : <Arguments values={parsed} raw={approval.tool_input} />}
      {edited && schema ? <SchemaForm schema={schema} values={edited} onChange={setEdited} />
        : schema && parsed && <button type="button" className="quiet" data-testid="edit-arguments" onClick={() => setEdited({ ...defaultsOf(schema), ...parsed })}>{t.changeArguments}</button>}
      <label className="field"><span>{t.words}</span><input value={words} data-testid="feedback" onChange={(e) => setWords(e.target.value)} /></label>
      <div className="row">
        <button type="button" className="primary" data-testid="approve" disabled={busy} onClick={() => void answer(true)}>{t.approve}</button>
        <button type="button" data-testid="deny" disabled={busy} onClick={() => void answer(false)}>{t.deny}</button>
        {scopes.length > 1 && (
          <label className="inline">{t.scope} <select data-testid="scope" value={scope} onChange={(e) => setScope(e.target.value)}>
            {scopes.map((each) => <option key={each} value={each}>{t.scopes[each]}</option>)}
          </select></label>
        )}
      </div>
    </section>
  );
}

function parse(text: string): Values | null {
  try {
    const value = JSON.parse(text) as unknown;
    return value && typeof value === "object" && !Array.isArray(value) ? (value as Values) : null;
  } catch {
    return null;
  }
}

// Each argument by its name; whatever cannot be seen is spelled out.
export function Arguments({ values, raw }: { values: Values | null; raw: string }) {
  if (!values) return <pre className="arguments" tabIndex={0}>{spelled(raw)}</pre>;
  return (
    <dl className="arguments">
      {Object.entries(values).map(([name, value]) => (
        <div key={name}><dt>{spelled(name)}</dt><dd><pre tabIndex={0}>{spelled(typeof value === "string" ? value : JSON.stringify(value, null, 2))}</pre></dd></div>
      ))}
    </dl>
  );
}
export const argumentsOf = parse;
