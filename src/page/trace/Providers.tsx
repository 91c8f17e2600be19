import { FormEvent, useEffect, useState } from "react";
import { cache } from "../store/cache";
import { attempt } from "../store/state";
import { t } from "../texts";
import { v } from "../texts_of_views";
import type { ConnectedProvider, Models, Providers as Listed } from "../wire";
import { ApiError, call, get } from "../wire/api";

// What most people connect, with the addresses of their providers.
const KNOWN: [string, ConnectedProvider["type"], string][] = [
  ["openai", "openai", "https://api.openai.com/v1"], ["anthropic", "anthropic", "https://api.anthropic.com"], ["openrouter", "openai", "https://openrouter.ai/api/v1"],
  ["ollama", "openai", "http://127.0.0.1:11434/v1"], ["local", "openai", "http://127.0.0.1:8080/v1"],
];
const TYPES: ConnectedProvider["type"][] = ["openai", "openai_responses", "anthropic"];

const readModels = async (): Promise<void> => cache.set({ models: await get<Models>("/models") });

// The providers of models: those of the configuration, which wins, and those that are connected here. Nothing is shown to users who may not see them.
export function Providers() {
  const [found, setFound] = useState<Listed | null>(null);
  const [adding, setAdding] = useState(false);
  const [answer, setAnswer] = useState("");
  const read = (): Promise<void> => get<Listed>("/providers").then(setFound, () => setFound(null));
  useEffect(() => void read(), []);
  const remove = (name: string): Promise<boolean> => attempt(async () => {
    await call("DELETE", `/providers/${name}`);
    await read();
    await readModels();
  });
  if (!found) return null;
  const listed = found.providers;
  return (
    <>
      <h2>{v.providers}</h2>
      <ul className="tool-list" data-testid="providers">
        {listed.map((each) => (
          <li key={each.name} data-testid="provider" data-name={each.name}>
            <span>{each.name}</span>
            <span className="hint"><code>{each.base_url}</code> · {each.has_key ? v.hasKey : v.hasNoKey}{each.is_configured && ` · ${v.inConfiguration}`}</span>
            {!each.is_configured && <button type="button" data-testid="disconnect" aria-label={v.disconnectOf(each.name)} onClick={() => void remove(each.name)}>{v.disconnect}</button>}
          </li>
        ))}
      </ul>
      {!adding && <button type="button" data-testid="add-provider" onClick={() => { setAdding(true); setAnswer(""); }}>{v.connectProvider}</button>}
      {answer && <p className="good" role="status" data-testid="provider-answer">{answer}</p>}
      {adding && <Connect taken={listed.filter((each) => each.is_configured).map((each) => each.name)} sealed={found.sealed} onCancel={() => setAdding(false)} onDone={(name, models) => {
        setAdding(false);
        setAnswer(`${name}: ${v.providerAnswers(models)}`);
        void read();
        void attempt(readModels);
      }} />}
    </>
  );
}

// The server asks the provider for its models with the key before it keeps it. The key is not shown again.
function Connect({ taken, sealed, onCancel, onDone }: { taken: string[]; sealed: boolean; onCancel: () => void; onDone: (name: string, models: number) => void }) {
  const [first] = KNOWN.filter(([name]) => !taken.includes(name));
  const [[name, type, address], setWanted] = useState(first ?? KNOWN[0]!);
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState<{ text: string; hasNoList: boolean } | null>(null);
  const connect = async (has_no_list: boolean): Promise<void> => {
    setBusy(true);
    setFailed(null);
    try {
      const { models } = await call<{ models: number }>("PUT", `/providers/${encodeURIComponent(name)}`, { type, base_url: address, api_key: key, has_no_list });
      onDone(name, models);
    } catch (error) {
      const hasNoList = error instanceof ApiError && error.code === "provider_not_found";
      setFailed({ text: hasNoList ? `${v.noListThere}${/\/v1\/?$/.test(address) ? "" : ` ${v.endsInV1}`}` : error instanceof ApiError ? error.message : t.offline, hasNoList });
      setBusy(false);
    }
  };
  const submit = (e: FormEvent): void => {
    e.preventDefault();
    void connect(false);
  };
  return (
    <form className="connect-provider" data-testid="connect-provider" onSubmit={submit}>
      <label className="field"><span>{v.provider}</span>
        <select data-testid="provider-known" value={KNOWN.find((each) => each[0] === name)?.[0] ?? ""} onChange={(e) => setWanted(KNOWN.find((each) => each[0] === e.target.value) ?? ["", "openai", ""])}>
          {KNOWN.filter(([each]) => !taken.includes(each)).map(([each]) => <option key={each} value={each}>{each}</option>)}
          <option value="">{v.anotherProvider}</option>
        </select></label>
      <label className="field"><span>{v.providerName}</span><input data-testid="provider-name" value={name} required pattern="[a-z0-9_\-]{1,40}" spellCheck={false} onChange={(e) => setWanted([e.target.value, type, address])} /></label>
      <label className="field"><span>{v.providerType}</span><select data-testid="provider-type" value={type} onChange={(e) => setWanted([name, e.target.value as ConnectedProvider["type"], address])}>{TYPES.map((each) => <option key={each}>{each}</option>)}</select></label>
      <label className="field"><span>{v.providerAddress}</span><input data-testid="provider-address" type="url" value={address} required spellCheck={false} onChange={(e) => setWanted([name, type, e.target.value])} /></label>
      <label className="field"><span>{v.providerKey}</span><input data-testid="provider-key" type="password" autoComplete="off" value={key} onChange={(e) => setKey(e.target.value)} /></label>
      <p className="hint">{sealed ? v.keyIsKept : v.keyIsKeptPlain}</p>
      {failed && <p className="bad" role="alert" data-testid="provider-said">{failed.text}</p>}
      <div className="row"><button type="submit" className="primary" data-testid="provider-connect" disabled={busy}>{v.testAndConnect}</button>{failed?.hasNoList && <button type="button" data-testid="provider-no-list" disabled={busy} onClick={() => void connect(true)}>{v.connectWithoutList}</button>}<button type="button" onClick={onCancel}>{t.cancel}</button></div>
    </form>
  );
}
