import { KeyboardEvent, RefObject, useEffect, useId, useRef, useState } from "react";
import { bring, goToWaiting } from "../keys/actions";
import { inWords } from "../language";
import { useKept } from "../list/Rows";
import { roomOf } from "../list/window";
import { fit } from "../parts/hooks";
import { duration, useNow } from "../parts/time";
import { Icon } from "../parts/Icon";
import { cache } from "../store/cache";
import * as requests from "../store/requests";
import { state, useSelect } from "../store/state";
import { type Approval, OUTSIDE } from "../store/turn";
import { useWords } from "../store/words";
import { t } from "../texts";
import { changeBy, changeOf, Previewed } from "./changes";
import { ChangeCount, Diff } from "./Diff";
import { isNumber, writeExact } from "./exact";
import { hasHidden, holdsHidden, spelled, Visible } from "./hidden";
import { defaultsOf, parseSchema, problems, SchemaForm } from "./SchemaForm";
import { argumentsOf, titleOf, Values } from "./values";

const LIFETIMES = [3600, 86_400, 604_800, 2_592_000, 0]; // seconds; 0: no end
const OF_PATTERNS = 2_592_000; // the server's default for patterns; for equal calls it is no end
const SOON = 400; // ms: a key pressed before the card was seen does not answer it

// The waiting calls of which everything that would run has been in the window. Only these are approved together.
const seen = state({ calls: new Set<string>() });
const callOf = (approval: Approval): string => `${approval.approval_id} ${approval.arguments_digest}`;
const BAND = 8; // pixels

// Notes which parts of a card have been in the window, from its head to the field below its arguments. The card names the first part that has not.
function useSeen(place: RefObject<HTMLElement>, call: string, isWhole: boolean): void {
  useEffect(() => {
    const card = place.current;
    const { calls } = seen;
    if (!isWhole && calls.has(call)) seen.set({ calls: new Set([...calls].filter((each) => each !== call)) });
    if (!card || !isWhole || calls.has(call)) return undefined;
    const bands = new Set<number>();
    let height = 0;
    const look = (): void => {
      const { top } = card.getBoundingClientRect();
      const tall = card.querySelector(".answer-row")!.getBoundingClientRect().top - top;
      const frame = card.closest(".turns, .panel")?.getBoundingClientRect();
      if (document.hidden || tall <= 0) return;
      if (Math.abs(tall - height) >= BAND) bands.clear(); // drawn anew
      height = tall;
      const from = Math.max(0, (frame?.top ?? 0) + roomOf(card)) - top, to = Math.min(innerHeight, frame?.bottom ?? innerHeight) - top;
      const all = Math.floor(height / BAND);
      const first = Math.ceil((from - 1) / BAND); // scrolling ends at whole pixels, the frame may not begin at one
      for (let i = Math.max(0, first); i < all && (i + 1) * BAND <= to; i++) bands.add(i);
      let next = 0;
      while (bands.has(next)) next++;
      card.dataset.unseen = String(next * BAND);
      if (next >= all) end(), seen.set({ calls: new Set(seen.calls).add(call) });
    };
    // Scrolling, and whatever else moves or changes the card.
    const stop = new AbortController(), moved = new IntersectionObserver(look, { threshold: [0, 0.25, 0.5, 0.75, 1] }), resized = new ResizeObserver(look);
    const end = (): void => (stop.abort(), moved.disconnect(), resized.disconnect());
    for (const name of ["scroll", "resize"]) addEventListener(name, look, { capture: true, passive: true, signal: stop.signal });
    moved.observe(card);
    resized.observe(card);
    return end;
  }, [place, call, isWhole]);
}

// A call that waits for a person: exactly what would run, and every way to answer.
export function ApprovalCard({ approval, tool }: { approval: Approval; tool: string }) {
  const [previewed, setPreviewed] = useState<Previewed | null>(null);
  const chat = useSelect(() => cache.approvals.get(approval.approval_id)?.chat_id ?? cache.open?.id ?? "");
  const [words, setWords] = useWords(chat, approval.approval_id, "words", "");
  const [scope, setScope] = useKept("scope", "once");
  const [pattern, setPattern] = useKept("pattern", "");
  const [chosen, setChosen] = useKept<number | null>("lifetime", null);
  const [mode, setMode] = useKept("mode", "ask"); // of the work, if this is a plan
  const [edited, setEdited, showEdited] = useWords<Values | null>(chat, approval.approval_id, "edited", null);
  const [wrong, setWrong] = useState<Map<string, string>>(new Map());
  const [busy, setBusy] = useState(false);
  const drawn = useRef(0);
  const place = useRef<HTMLElement>(null);
  const id = useId();
  const { tools } = cache.use("tools"); // they may be read after the card is drawn
  const workspace = useSelect(requests.workspace);
  const spec = tools?.tools.find((each) => each.name === tool);
  const schema = parseSchema(spec ? JSON.stringify(spec.parameters) : undefined);
  const scopes = ["once", "chat", "always"].filter((each) => each === "once" || approval.allowed_decisions.some((one) => one.includes(each)));
  // Beyond this call, people can allow equal calls or one of the patterns that the server offers.
  const patterns = scope !== "once" && !edited ? (approval.patterns ?? []) : [];
  const offered = patterns.find((each) => each.pattern === pattern);
  const lifetime = chosen ?? (offered ? OF_PATTERNS : 0);
  const parsed = argumentsOf(approval.tool_input);
  const change = previewed?.change;
  const texts = edited ? changeBy(tool, edited, change) : change && { before: change.before ?? "", after: change.after ?? "" };
  const mayLeave = approval.allowed_decisions.includes(OUTSIDE);
  // A call that asks to leave the sandbox stays inside only with other arguments.
  const mayStay = approval.allowed_decisions.includes("approve") || edited !== null;
  const mayEdit = schema && parsed && approval.allowed_decisions.includes("edit");

  useSeen(place, callOf(approval), previewed !== null && !edited);
  useEffect(() => {
    drawn.current = performance.now();
    void changeOf(approval.approval_id, tool).then(setPreviewed);
  }, [approval.approval_id, tool]);

  const answer = async (approved: boolean, outside = false): Promise<void> => {
    if (busy || (approved && !outside && !mayStay)) return;
    if (approved && edited && schema) {
      const found = problems(schema, edited);
      setWrong(found);
      if (found.size > 0) {
        requestAnimationFrame(() => place.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
        return;
      }
    }
    setBusy(true);
    const body: Record<string, unknown> = { approved, arguments_digest: approval.arguments_digest }; // as it was seen here
    if (words) body.feedback = words;
    if (outside) body.outside_sandbox = true;
    if (approved && !outside && scope !== "once") Object.assign(body, { scope, expires_in_s: lifetime });
    if (approved && approval.modes) body.mode = mode;
    if (approved && !outside && offered) body.pattern = offered.pattern;
    if (approved && edited) body.arguments = edited;
    await requests.answer(approval.approval_id, body);
    setBusy(false);
  };
  const onKey = (e: KeyboardEvent): void => {
    if (e.target !== e.currentTarget || e.repeat || e.ctrlKey || e.altKey || e.metaKey || e.timeStamp < drawn.current + SOON) return;
    const key = e.key.toLowerCase();
    if (key !== "a" && key !== "d") return;
    e.preventDefault();
    void answer(key === "a");
  };
  return (
    <section ref={place} className={`card approval risk-${approval.risk}`} data-testid="approval-card" data-approval={approval.approval_id} aria-label={t.approvalFor(titleOf(tool))} tabIndex={0} onKeyDown={onKey}>
      <header>
        <Icon name="shield" size={18} /><strong>{t.approvalFor(tool)}</strong>
        <span className={`badge risk-${approval.risk}`}>{t.risk(approval.risk)}</span>
        <span className="grow" />
        {approval.expires_at && <Expiry at={approval.expires_at} />}
      </header>
      <p className="hint terms" data-testid="terms">{approval.reason && spelled(inWords(approval.reason))}{workspace && <>{approval.reason && " · "}{t.runsIn} <code>{workspace}</code></>}</p>
      {(parsed ? holdsHidden(edited ?? parsed) : hasHidden(approval.tool_input)) && <p className="warning"><Icon name="eye" size={16} /> {t.hiddenCharacters}</p>}
      {previewed?.problem && !edited && <p className="warning" data-testid="no-preview"><Icon name="alert" size={16} /> <span>{t.noPreview(spelled(previewed.problem))}</span></p>}
      {!texts && !edited && <Arguments values={parsed} raw={approval.tool_input} />}
      {edited && schema && (
        <div className="edited">
          <div className="row"><strong className="grow">{t.changeArguments}</strong><button type="button" className="quiet tiny" data-testid="keep-arguments" onClick={() => setEdited(null)}>{t.keepArguments}</button></div>
          <SchemaForm schema={schema} values={edited} wrong={wrong} onChange={(values) => {
            setEdited(values);
            if (wrong.size > 0) setWrong(problems(schema, values));
          }} />
        </div>
      )}
      {change && texts && (
        <div className="change">
          <div className="code-head"><span className="path">{spelled(change.path)}{!change.exists && ` (${t.newFile})`}</span><ChangeCount before={texts.before} after={texts.after} /></div>
          <Diff before={texts.before} after={texts.after} path={change.path} />
        </div>
      )}
      {!edited && change?.more?.map((each) => (
        <div className="change" key={each.path}>
          <div className="code-head"><span className="path">{spelled(each.path)}{!each.exists && ` (${t.newFile})`}</span><ChangeCount before={each.before ?? ""} after={each.after ?? ""} /></div>
          <Diff before={each.before ?? ""} after={each.after ?? ""} path={each.path} />
        </div>
      ))}
      <div className="answer-row">
        <textarea ref={(area) => fit(area)} rows={1} className="words" dir="auto" aria-label={t.words} placeholder={t.words} value={words} data-testid="feedback" onChange={(e) => setWords(e.target.value)} />
        {approval.modes && (
          <select data-testid="mode-after" aria-label={t.modeAfter} value={mode} onChange={(e) => setMode(e.target.value)}>
            {approval.modes.map((each) => <option key={each} value={each}>{t.shortModes[each] ?? each}</option>)}
          </select>
        )}
        {scopes.length > 1 && (
          <select data-testid="scope" aria-label={t.scope} value={scope} onChange={(e) => setScope(e.target.value)}>
            {scopes.map((each) => <option key={each} value={each}>{t.scopes[each]}</option>)}
          </select>
        )}
        {patterns.length > 0 && (
          <select data-testid="pattern" aria-label={t.allowWhat} aria-describedby={`${id}-means`} value={offered?.pattern ?? ""} onChange={(e) => setPattern(e.target.value)}>
            <option value="">{t.allowEqual}</option>
            {patterns.map((each) => <option key={each.pattern} value={each.pattern}>{spelled(each.pattern)}</option>)}
          </select>
        )}
        {scope !== "once" && (
          <select data-testid="lifetime" aria-label={t.lasts} value={lifetime} onChange={(e) => setChosen(Number(e.target.value))}>
            {LIFETIMES.map((each) => <option key={each} value={each}>{t.lifetimes[each]}</option>)}
          </select>
        )}
      </div>
      {scope !== "once" && (
        <p className="hint" id={`${id}-means`} data-testid="pattern-means" aria-live="polite">
          {offered ? spelled(offered.means) : t.allowEqualMeans} {t.allowed(t.scopes[scope]!, t.lifetimes[lifetime]!)}
        </p>
      )}
      {mayLeave && <p className="hint" id={`${id}-outside`} data-testid="outside-means">{t.outsideMeans}</p>}
      <div className="row">
        {mayStay && <button type="button" className="primary" data-testid="approve" aria-describedby={scope === "once" ? undefined : `${id}-means`} disabled={busy} onClick={() => void answer(true)}><Icon name="check" size={16} />{edited ? t.approveChanged : t.approve}</button>}
        {mayLeave && <button type="button" data-testid="approve-outside" aria-describedby={`${id}-outside`} disabled={busy} onClick={() => void answer(true, true)}><Icon name="alert" size={16} />{t.approve} {t.outside}</button>}
        <button type="button" data-testid="deny" disabled={busy} onClick={() => void answer(false)}><Icon name="close" size={16} />{t.deny}</button>
        {mayEdit && !edited && <button type="button" className="quiet" data-testid="edit-arguments" onClick={() => showEdited({ ...defaultsOf(schema), ...parsed })}><Icon name="pencil" size={15} />{t.changeArguments}</button>}
        <span className="grow" />
        <span className="hint only-wide"><kbd>A</kbd> {t.approve} <kbd>D</kbd> {t.deny}</span>
      </div>
    </section>
  );
}

function Expiry({ at }: { at: string }) {
  const now = useNow(true);
  const left = Date.parse(at) - now;
  return <span className={`badge ${left < 60_000 ? "bad" : ""}`} data-testid="expiry"><Icon name="clock" size={13} /> {left > 0 ? t.expiresIn(duration(Math.ceil(left / 1000) * 1000).replace(".0", "")) : t.expired}</span>;
}

// The arguments by name, with hidden characters spelled out.
export function Arguments({ values, raw }: { values: Values | null; raw: string }) {
  if (!values) return <pre className="arguments" tabIndex={0}><Visible text={raw} /></pre>;
  return (
    <dl className="arguments">
      {Object.entries(values).map(([name, value]) => (
        <div key={name}><dt>{spelled(name)}</dt><dd><pre tabIndex={0}><Visible text={typeof value === "string" ? value : isNumber(value) ? String(value) : writeExact(value, 2)} /></pre></dd></div>
      ))}
    </dl>
  );
}

// Answers several waiting calls of one chat at once, once all that would be approved was seen.
export function AnswerAll() {
  const [busy, setBusy] = useState(false);
  const mine = useSelect(() => [...cache.approvals.values()].filter((each) => each.chat_id === cache.open?.id));
  const unseen = useSelect(() => mine.filter((each) => each.allowed_decisions.includes("approve") && !seen.calls.has(callOf(each))));
  if (mine.length < 2) return null;
  const next = (): void => {
    const id = unseen[0]!.approval_id, card = document.querySelector<HTMLElement>(`.turns [data-approval="${CSS.escape(id)}"]`);
    if (card) bring(card);
    else void goToWaiting(id);
  };
  const answer = async (approved: boolean): Promise<void> => {
    setBusy(true);
    // What asks to leave the sandbox is allowed by itself.
    for (const each of mine) if (!approved || each.allowed_decisions.includes("approve")) await requests.answer(each.approval_id, { approved, arguments_digest: each.arguments_digest });
    setBusy(false);
  };
  return (
    <div className="all" data-testid="answer-all" role="group" aria-label={t.waitingCalls(mine.length, unseen.length)}>
      <Icon name="shield" size={17} /><span className="grow">{t.waitingCalls(mine.length, unseen.length)}</span>
      {unseen.length > 0 && <button type="button" className="quiet" data-testid="show-unseen" onClick={next}><Icon name="eye" size={16} />{t.showNext}</button>}
      <button type="button" className="primary" data-testid="approve-all" disabled={busy || unseen.length > 0} title={unseen.length > 0 ? t.unseenFirst : undefined} onClick={() => void answer(true)}>{t.approveAll}</button>
      <button type="button" data-testid="deny-all" disabled={busy} onClick={() => void answer(false)}>{t.denyAll}</button>
    </div>
  );
}
