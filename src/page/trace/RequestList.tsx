import { useEffect, useState } from "react";
import { spelled } from "../chat/hidden";
import { Code } from "../parts/Code";
import { duration } from "../parts/time";
import { attempt, tell } from "../store/state";
import { isRunning, Turn } from "../store/turn";
import { t } from "../texts";
import { v } from "../texts_of_views";
import type { RequestPart, RequestParts, Requests } from "../wire";
import { get, request, save, turnPath } from "../wire/api";

type Sent = Requests["requests"][number];

const MOST = 100; // parts of a list shown at first
const MOST_OPEN = 8; // new messages that are shown without a click

// What a turn sent to models, and what came of it.
export function RequestList({ turn }: { turn: Turn }) {
  const [found, setFound] = useState<Requests | null>(null);
  const running = isRunning(turn);
  const path = `${turnPath(turn.chat, turn.id)}/requests`;
  useEffect(() => {
    setFound(null);
    if (running) return undefined;
    let current = true;
    void attempt(async () => {
      const requests = await get<Requests>(path);
      if (current) setFound(requests);
    });
    return () => {
      current = false;
    };
  }, [path, running]);
  const why = running ? v.requestsLater : !found ? "…" : !found.on_record ? v.notOnRecord : found.requests.length === 0 ? v.nothingSent : "";
  return (
    <>
      <h3>{v.requests} {found && <span className="badge" data-testid="request-count">{found.requests.length}</span>}</h3>
      {why && <p className="hint" data-testid="no-requests">{why}</p>}
      {found && <div className="events requests" data-testid="requests">{found.requests.map((sent, i) => <Line key={`${path}/${i}`} sent={sent} path={`${path}/${i}`} name={`${turn.chat}-${turn.id}-request-${i}.json`} />)}</div>}
    </>
  );
}

function Line({ sent, path, name }: { sent: Sent; path: string; name: string }) {
  const [open, setOpen] = useState(false);
  const { response } = sent;
  const usage = response?.usage;
  return (
    <details data-testid="request" open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        <span className="faint number">{sent.at.slice(11, 23)}</span>
        <span className="type">{v.purposes[sent.purpose]}</span>
        <span className="what">{v.roundOf(sent.round_index, sent.attempt)} · {spelled(sent.model)}</span>
        <span className="faint">{[
          response?.first_token_ms !== undefined ? v.firstToken(duration(response.first_token_ms)) : "", response ? duration(response.ms) : "",
          usage ? t.tokens((usage.input_tokens ?? 0) + (usage.output_tokens ?? 0)) : "",
        ].filter(Boolean).join(" · ")}</span>
        <span className={response?.error ? "badge bad" : "badge"} data-testid="request-end">{!response ? v.noResponse : response.error ? v.requestFailed(response.error) : v.finishes[response.finish ?? "other"]}</span>
      </summary>
      {open && <Opened sent={sent} path={path} name={name} />}
    </details>
  );
}

function Opened({ sent, path, name }: { sent: Sent; path: string; name: string }) {
  const [parts, setParts] = useState<RequestParts | string | null>(null);
  useEffect(() => {
    let current = true;
    get<RequestParts>(`${path}?format=parts`).then((found) => current && setParts(found), (error: unknown) => current && setParts(error instanceof Error ? error.message : String(error)));
    return () => {
      current = false;
    };
  }, [path]);
  const copy = () => attempt(async () => {
    await navigator.clipboard.writeText(await (await request("GET", path)).text());
    tell(t.copied);
  });
  const origins = new Map(sent.tools?.flatMap((of) => Object.keys(of.tools).map((tool) => [tool, "server" in of ? v.ofServer(of.server, of.version) : v.ofClient(of.client)] as const)));
  const { response } = sent;
  const facts: [string, string | undefined][] = [
    [v.sentTo, sent.address], [v.answeredBy, response?.model], [v.providersId, response?.request_id], [v.usageOf, response?.usage && t.meterTip(response.usage.input_tokens ?? 0, response.usage.output_tokens ?? 0)],
    [v.body, `${v.bytes(sent.bytes)}, ${sent.digest}`],
  ];
  return (
    <div className="request" data-testid="request-open">
      <dl className="facts">{facts.map(([term, value]) => value && <div key={term}><dt>{term}</dt><dd>{spelled(value)}</dd></div>)}</dl>
      <div className="row">
        <button type="button" data-testid="copy-body" onClick={() => void copy()}>{v.copyBody}</button>
        <button type="button" data-testid="save-body" onClick={() => void attempt(() => save(path, name))}>{v.saveBody}</button>
      </div>
      {typeof parts === "string" && <p className="warning" data-testid="request-problem">{spelled(parts)}</p>}
      {parts === null && <p className="faint">…</p>}
      {parts !== null && typeof parts === "object" && (
        <>
          <List title={v.systemPrompt} parts={parts.system} nameOf={(part) => part.name ?? v.unnamed} textOf={(part) => String(part.content)} />
          <List title={v.messages} parts={parts.messages} last open nameOf={(part) => roleOf(part.content)} textOf={(part) => messageText(part.content)} />
          <List title={v.tools} parts={parts.tools} nameOf={(part) => part.name ?? ""} textOf={toolText} hintOf={(part) => origins.get(part.name ?? "") ?? (sent.tools ? v.builtIn : "")} />
          <List title={v.parameters} parts={parts.parameters} nameOf={(part) => part.name ?? ""} textOf={(part) => pretty(part.content)} hintOf={(part) => JSON.stringify(part.content).slice(0, 60)} />
          {parts.gone > 0 && <p className="hint" data-testid="parts-gone">{v.partsGone(parts.gone)}</p>}
        </>
      )}
    </div>
  );
}

interface ListProps {
  title: string;
  parts: RequestPart[];
  nameOf: (part: RequestPart) => string;
  textOf: (part: RequestPart) => string;
  hintOf?: (part: RequestPart) => string;
  last?: boolean; // the end of a long list is shown, not its start
  open?: boolean; // new parts are shown, if they are few
}

function List({ title, parts, nameOf, textOf, hintOf, last = false, open = false }: ListProps) {
  const [all, setAll] = useState(false);
  if (parts.length === 0) return null;
  const added = parts.filter((part) => part.new).length;
  const from = all || !last ? 0 : Math.max(0, parts.length - MOST);
  const shown = parts.slice(from, all ? undefined : from + MOST);
  return (
    <section aria-label={title}>
      <h4>{title} <span className="badge">{parts.length}</span> {added > 0 && <span className="badge live" data-testid="new-count">{v.newParts(added)}</span>}</h4>
      {shown.length < parts.length && <button type="button" className="quiet" data-testid="all-parts" onClick={() => setAll(true)}>{v.allParts(parts.length)}</button>}
      {shown.map((part, i) => <Part key={from + i} part={part} name={nameOf(part)} hint={hintOf?.(part) ?? ""} textOf={textOf} open={open && part.new === true && added <= MOST_OPEN} />)}
    </section>
  );
}

function Part({ part, name, hint, textOf, open: atFirst }: { part: RequestPart; name: string; hint: string; textOf: (part: RequestPart) => string; open: boolean }) {
  const [open, setOpen] = useState(atFirst);
  return (
    <details data-testid="part" data-new={part.new === true} open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary><span className="type">{spelled(name)}</span><span className="what">{spelled(hint)}</span>{part.new && <span className="badge live">{v.isNew}</span>}</summary>
      {open && <Code text={textOf(part)} label={name} />}
    </details>
  );
}

// --- the forms of the providers' interfaces
type Members = Record<string, unknown>;
const membersOf = (value: unknown): Members => (typeof value === "object" && value !== null ? (value as Members) : {});
const pretty = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

function roleOf(message: unknown): string {
  const { role, type } = membersOf(message);
  return String(role ?? type ?? v.unnamed);
}

function messageText(message: unknown): string {
  const { role: _, content, ...others } = membersOf(message);
  const texts = (Array.isArray(content) ? content : [content ?? ""]).map((each) => {
    const { text } = membersOf(each);
    return typeof text === "string" ? text : pretty(each);
  });
  if (Object.keys(others).length > 0) texts.push(pretty(others));
  return texts.filter(Boolean).join("\n\n");
}

function toolText({ content }: RequestPart): string {
  const tool = membersOf(content);
  const { name: _, description, ...others } = membersOf(tool.function ?? tool);
  return [description, pretty(others)].filter(Boolean).join("\n\n");
}
