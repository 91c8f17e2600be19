import { KeyboardEvent, useEffect, useRef, useState } from "react";
import { isWriting } from "../keys/actions";
import { useKept } from "../list/Rows";
import { Icon } from "../parts/Icon";
import * as requests from "../store/requests";
import type { PendingInput } from "../store/turn";
import { useWords } from "../store/words";
import { t } from "../texts";
import { writeExact } from "./exact";
import { spelled, Visible } from "./hidden";
import { defaultsOf, parseSchema, problems, SchemaForm } from "./SchemaForm";
import type { Values } from "./values";

const SOON = 400; // ms: a key pressed before the card was seen does not answer it

// A tool's question: free text, options, a form, or an address to open.
export function InputCard({ input }: { input: PendingInput }) {
  const schema = parseSchema(input.schema);
  const [text, setText] = useWords(input.chat_id, input.request_id, "text", "");
  const [defaults] = useState<Values>(() => (schema ? defaultsOf(schema) : {}));
  const [values, setValues] = useWords(input.chat_id, input.request_id, "values", defaults);
  const [wrong, setWrong] = useState<Map<string, string>>(new Map());
  const [visited, setVisited] = useKept("visited", false);
  const [busy, setBusy] = useState(false);
  const place = useRef<HTMLElement>(null);
  const drawn = useRef(0);
  useEffect(() => {
    drawn.current = performance.now();
  }, [input.request_id]);
  const options = input.options ?? [];
  const answer = async (response: string | null): Promise<void> => {
    setBusy(true);
    await requests.respond(input, response);
    setBusy(false);
  };
  const send = (): void => {
    if (!schema) return void answer(input.url ? "{}" : text);
    const found = problems(schema, values);
    setWrong(found);
    if (found.size === 0) void answer(writeExact(values));
    else requestAnimationFrame(() => place.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
  };
  // A number key picks an option, unless the focus is in a field.
  const onKey = (e: KeyboardEvent): void => {
    const option = options[Number(e.key) - 1];
    if (e.target instanceof HTMLInputElement || isWriting(e.target) || busy || e.repeat || e.ctrlKey || e.altKey || e.metaKey || option === undefined || e.timeStamp < drawn.current + SOON) return;
    e.preventDefault();
    void answer(option);
  };
  const isWeb = /^https?:\/\//i.test(input.url ?? "");
  return (
    <section ref={place} className="card question" data-testid="input-card" data-request={input.request_id} aria-label={input.question} tabIndex={0}
      onKeyDown={onKey}>
      <header><Icon name="question" size={18} /><strong>{t.asksYou}</strong></header>
      <p className="question-text" dir="auto"><Visible text={input.question} /></p>
      {input.url && (isWeb ? (
        <p>
          <a className="button" href={input.url} target="_blank" rel="noreferrer noopener" data-testid="input-url" onClick={() => setVisited(true)}><Icon name="link" size={16} />{t.openLink}</a>
          {" "}<code className="path">{spelled(input.url)}</code>
        </p>
      ) : <p><code>{spelled(input.url)}</code></p>)}
      {options.length > 0 && (
        <div className="options" role="group" aria-label={input.question}>
          {options.map((option, i) => <button type="button" key={option} disabled={busy} data-testid="option" onClick={() => void answer(option)}>{i < 9 && <kbd aria-hidden="true">{i + 1}</kbd>}<span><Visible text={option} /></span></button>)}
        </div>
      )}
      <form noValidate onSubmit={(e) => {
        e.preventDefault();
        send();
      }}>
        {schema ? <SchemaForm schema={schema} values={values} wrong={wrong} onChange={(next) => {
          setValues(next);
          if (wrong.size > 0) setWrong(problems(schema, next));
        }} /> : !input.url && <textarea aria-label={input.question} dir="auto" placeholder={options.length > 0 ? t.otherAnswer : t.yourAnswer} data-testid="input-text" rows={2} value={text} onChange={(e) => setText(e.target.value)}
          onKeyDown={(e) => {
            if (e.key === "Enter" && !e.shiftKey) {
              e.preventDefault();
              send();
            }
          }} />}
        <div className="row">
          <button type="submit" className={input.url && !visited ? "" : "primary"} data-testid="input-send"
            disabled={busy}>{input.url && !schema ? t.didIt : t.answerQuestion}</button>
          <button type="button" disabled={busy} data-testid="input-decline" onClick={() => void answer(null)}>{t.decline}</button>
        </div>
      </form>
    </section>
  );
}
