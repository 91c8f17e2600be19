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
  const [listed, setListed] = useState<ConnectedProvider[] | null>(null);
  const [adding, setAdding] = useState(false);
  const read = (): Promise<void> => get<Listed>("/providers").then(({ providers }) => setListed(providers), () => setListed(null));
  useEffect(() => void read(), []);
  const remove = (name: string): Promise<boolean> => attempt(async () => {
    await call("DELETE", `/providers/${name}`);
    await read();
    await readModels();
  });
  if (!listed) return null;
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
      {!adding && <button type="button" data-testid="add-provider" onClick={() => setAdding(true)}>{v.connectProvider}</button>}
      {adding && <Connect taken={listed.filter((each) => each.is_configured).map((each) => each.name)} onDone={() => {
        setAdding(false);
        void read();
        void attempt(readModels);
      }} />}
    </>
  );
}

// The server asks the provider for its models with the key before it keeps it. The key is not shown again.
function Connect({ taken, onDone }: { taken: string[]; onDone: () => void }) {
  const [first] = KNOWN.filter(([name]) => !taken.includes(name));
  const [[name, type, address], setWanted] = useState(first ?? KNOWN[0]!);
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState(false);
  const [said, setSaid] = useState<{ text: string; failed: boolean } | null>(null);
  const connect = async (e: FormEvent): Promise<void> => {
    e.preventDefault();
    setBusy(true);
    setSaid(null);
    try {
      const { models } = await call<{ models: number }>("PUT", `/providers/${encodeURIComponent(name)}`, { type, base_url: address, api_key: key });
      setKey("");
      setSaid({ text: v.providerAnswers(models), failed: false });
      onDone();
    } catch (error) {
      setSaid({ text: error instanceof ApiError ? error.message : t.offline, failed: true });
    }
    setBusy(false);
  };
  return (
    <form className="connect-provider" data-testid="connect-provider" onSubmit={(e) => void connect(e)}>
      <label className="field"><span>{v.provider}</span>
        <select data-testid="provider-known" value={KNOWN.find((each) => each[0] === name)?.[0] ?? ""} onChange={(e) => setWanted(KNOWN.find((each) => each[0] === e.target.value) ?? ["", "openai", ""])}>
          {KNOWN.filter(([each]) => !taken.includes(each)).map(([each]) => <option key={each} value={each}>{each}</option>)}
          <option value="">{v.anotherProvider}</option>
        </select></label>
      <label className="field"><span>{v.providerName}</span><input data-testid="provider-name" value={name} required pattern="[a-z0-9_\-]{1,40}" spellCheck={false} onChange={(e) => setWanted([e.target.value, type, address])} /></label>
      <label className="field"><span>{v.providerType}</span><select data-testid="provider-type" value={type} onChange={(e) => setWanted([name, e.target.value as ConnectedProvider["type"], address])}>{TYPES.map((each) => <option key={each}>{each}</option>)}</select></label>
      <label className="field"><span>{v.providerAddress}</span><input data-testid="provider-address" type="url" value={address} required spellCheck={false} onChange={(e) => setWanted([name, type, e.target.value])} /></label>
      <label className="field"><span>{v.providerKey}</span><input data-testid="provider-key" type="password" autoComplete="off" value={key} onChange={(e) => setKey(e.target.value)} /></label>
      <p className="hint">{v.keyIsKept}</p>
      {said && <p className={said.failed ? "bad" : "good"} role="alert" data-testid="provider-said">{said.text}</p>}
      <div className="row"><button type="submit" className="primary" data-testid="provider-connect" disabled={busy}>{v.testAndConnect}</button><button type="button" onClick={onDone}>{t.cancel}</button></div>
    </form>
  );
}
