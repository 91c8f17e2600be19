import { useState } from "react";
import { store } from "../store/store";
import type { PendingInput } from "../store/types";
import { t } from "../texts";
import { defaultsOf, parseSchema, SchemaForm, Values } from "./SchemaForm";

// A question of a tool: free text, options, a form, or an address to go to.
export function InputCard({ input }: { input: PendingInput }) {
  const schema = parseSchema(input.schema);
  const [text, setText] = useState("");
  const [values, setValues] = useState<Values>(() => (schema ? defaultsOf(schema) : {}));
  const [busy, setBusy] = useState(false);
  const answer = async (response: string | null): Promise<void> => {
    setBusy(true);
    await store.respond(input, response);
    setBusy(false);
  };
  const isWeb = /^https?:\/\//i.test(input.url ?? "");
  return (
    <section className="card question" data-testid="input-card" data-request={input.request_id} aria-label={input.question}>
      <p className="question-text">{input.question}</p>
      {input.url && (isWeb ? <p><a href={input.url} target="_blank" rel="noreferrer noopener">{t.openLink}: {input.url}</a></p> : <p><code>{input.url}</code></p>)}
      {(input.options ?? []).length > 0 && (
        <div className="row" role="group">{input.options.map((option) => <button type="button" key={option} disabled={busy} onClick={() => void answer(option)}>{option}</button>)}</div>
      )}
      <form onSubmit={(e) => {
        e.preventDefault();
        void answer(schema ? JSON.stringify(values) : input.url ? "{}" : text);
      }}>
        {schema ? <SchemaForm schema={schema} values={values} onChange={setValues} />
          : !input.url && <textarea aria-label={input.question} data-testid="input-text" rows={2} value={text} onChange={(e) => setText(e.target.value)} />}
        <div className="row">
          <button type="submit" className="primary" data-testid="input-send" disabled={busy}>{t.answerQuestion}</button>
          <button type="button" disabled={busy} data-testid="input-decline" onClick={() => void answer(null)}>{t.decline}</button>
        </div>
      </form>
    </section>
  );
}
