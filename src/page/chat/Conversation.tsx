import { Fragment, ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { MemoryOfRow } from "../list/kept";
import { useWindow } from "../list/useWindow";
import { Icon } from "../parts/Icon";
import { store, useStore } from "../store/store";
import { isRunning, TextBlock, Turn } from "../store/turn";
import type { OpenChat } from "../store/open";
import type { Unsent } from "../store/unsent";
import { t } from "../texts";
import { AskedFilesBox } from "../time/AskedFilesBox";
import { AgendaPanel } from "./AgendaPanel";
import { AnswerAll } from "./AnswerAll";
import { Composer } from "./Composer";
import { onCopy } from "./copying";
import { FindBar } from "./FindBar";
import { NewInstructions } from "./NewInstructions";
import { Meter } from "./Meter";
import { ChatRow, rowsOfChat } from "./rows";
import { BlockRow, isOfText } from "./TurnView";
import { useGoTo } from "./useGoTo";
import { Welcome } from "./Welcome";

const NO_CHAT: Pick<OpenChat, "id" | "heights" | "values"> = { id: "", heights: new Map(), values: new Map() };

export function Conversation() {
  const { open } = useStore();
  const turns = store.branch();
  const last = turns[turns.length - 1];
  const busy = last !== undefined && isRunning(last);
  return (
    <div className="conversation">
      <Turns key={`turns-${open?.id ?? ""}`} turns={turns} busy={busy} />
      <AgendaPanel turns={turns} />
      <NewInstructions />
      <AnswerAll />
      <AskedFilesBox />
      <Composer key={open?.id ?? ""} running={busy ? last : undefined} />
      <Meter turns={turns} />
    </div>
  );
}

// The turns of a chat. The document holds only the turns and blocks near the window.
function Turns({ turns, busy }: { turns: Turn[]; busy: boolean }) {
  const { open, chats, hideTools, finding, began } = useStore();
  const [chat] = useState(open ?? NO_CHAT);
  const earlier = Boolean(open?.previous);
  const waits = open !== null && open.sent !== null && !busy ? "sent" : null;
  const unsent = open?.unsent ?? [];
  const { rows, leads, heads } = rowsOfChat(turns, hideTools, earlier, [...unsent.map((each) => `unsent-${each.id}`), ...(waits ? [waits] : [])]);
  const [window, shown, root] = useWindow(rows, { scroller: ".turns", heights: chat.heights, leads, sticks: true, place: open?.place });
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => () => {
    if (open) open.place = window.whereItIs();
  }, [window, open]);

  // After sending a message, people want to see the answer.
  const [seen] = useState({ began });
  useEffect(() => {
    if (waits || began !== seen.began) window.toEnd();
    seen.began = began;
  }, [waits, began, seen, window]);
  useGoTo(root, heads, (turn, below) => window.reveal(`${turn}/head`, below));
  // Reads turns that come near the window, and lets distant ones go.
  const [first, end] = window.seen();
  useEffect(() => {
    const near = new Set<string>();
    for (const index of shown) {
      const turn = rows[index]?.turn;
      if (turn) near.add(turn.id);
      if (rows[index]?.kind === "gone" && turn) void store.need(turn);
      if (rows[index]?.kind === "earlier" && open) void store.earlier(open);
    }
    store.tend(near);
  });

  const height = (from: number, to: number): number => window.height(from, to);
  const values = open?.values ?? chat.values;
  return (
    <>
      {finding && open && <FindBar chat={open} window={window} root={root} stamp={`${shown[0]}-${shown[shown.length - 1]}-${rows.length}`} />}
      <div className="turns" ref={box} role="log" aria-busy={busy} aria-label={(open && chats.get(open.id)?.title) ?? t.newChat} tabIndex={0} data-testid="turns" data-rows={rows.length}
        onCopy={(e) => onCopy(e, rows)}>
        {turns.length === 0 && !open?.sent && unsent.length === 0 && <Welcome />}
        <div ref={root} data-list="" data-seen={`${first}-${end}`}>
          {drawn({ rows, heads, values, height }, shown, turns, unsent, !earlier)}
        </div>
      </div>
      {!window.stuck && turns.length > 0 && <button type="button" className="jump" data-testid="jump" onClick={() => window.toEnd()}><Icon name="down" size={16} />{t.jump}</button>}
    </>
  );
}

const gap = (key: string, height: number): ReactNode => height > 0 && <div key={`gap-${key}`} role="presentation" style={{ height }} />;

interface All {
  rows: ChatRow[];
  heads: Map<string, number>;
  values: Map<string, unknown>;
  height: (from: number, to: number) => number;
}

// The drawn rows within their turns and texts, with empty space in place of the others.
function drawn(all: All, shown: number[], turns: Turn[], unsent: Unsent[], isWhole: boolean): ReactNode[] {
  const { rows, heads, values, height } = all;
  const parts: ReactNode[] = [];
  let at = 0; // the next row without space
  for (let i = 0; i < shown.length;) {
    const index = shown[i]!;
    const { turn } = rows[index]!;
    parts.push(gap(rows[index]!.key, height(at, index)));
    if (!turn) {
      parts.push(<Box key={rows[index]!.key} row={rows[index]!} values={values}><Loose row={rows[index]!} unsent={unsent} /></Box>);
      at = index + 1;
      i++;
      continue;
    }
    let next = i;
    while (next < shown.length && rows[shown[next]!]!.turn === turn) next++;
    const head = heads.get(turn.id)!;
    let behind = shown[next - 1]! + 1;
    while (behind < rows.length && rows[behind]!.turn === turn) behind++;
    const place = turns.indexOf(turn) + 1;
    parts.push(
      <article key={turn.id} className={`turn ${isRunning(turn) ? "running" : ""}`} data-testid="turn" data-interaction={turn.id} data-status={turn.status}
        aria-setsize={isWhole ? turns.length : -1} aria-posinset={place} aria-label={t.turnOf(place, turns.length)}>
        {drawnTurn(all, shown.slice(i, next), head, behind)}
      </article>,
    );
    at = behind;
    i = next;
  }
  parts.push(gap("end", height(at, rows.length)));
  return parts;
}

function drawnTurn({ rows, values, height }: All, shown: number[], head: number, behind: number): ReactNode[] {
  const parts: ReactNode[] = [];
  let at = head;
  for (let i = 0; i < shown.length;) {
    const row = rows[shown[i]!]!;
    parts.push(gap(row.key, height(at, shown[i]!)));
    if (!isOfText(row)) {
      parts.push(<Box key={row.key} row={row} values={values}><BlockRow row={row} /></Box>);
      at = shown[i]! + 1;
      i++;
      continue;
    }
    const block = row.block as TextBlock;
    const pieces: ReactNode[] = [];
    at = shown[i]!;
    for (; i < shown.length && rows[shown[i]!]!.block === block; i++) {
      const part = rows[shown[i]!]!;
      pieces.push(<Fragment key={part.key}>{gap(part.key, height(at, shown[i]!))}<Box row={part} values={values}><BlockRow row={part} /></Box></Fragment>);
      at = shown[i]! + 1;
    }
    parts.push(<div key={`text-${block.key}`} className={`markdown ${block.final ? "answer" : "message"}`} data-testid="answer" dir="auto">{pieces}</div>);
  }
  parts.push(gap("end", height(at, behind)));
  return parts;
}

function Box({ row, values, children }: { row: ChatRow; values: Map<string, unknown>; children: ReactNode }) {
  const isHead = row.kind === "head";
  const memory = useMemo(() => ({ key: row.key, values }), [row.key, values]);
  return (
    <div className={isHead ? "row-box head-box" : "row-box"} data-row={row.key} data-kind={row.kind} data-guess={row.guess} data-lead={isHead ? "" : undefined}>
      <MemoryOfRow.Provider value={memory}>{children}</MemoryOfRow.Provider>
    </div>
  );
}

// A row outside the turns: the button for earlier ones, or a message that is not a turn yet.
function Loose({ row, unsent }: { row: ChatRow; unsent: Unsent[] }) {
  const { open } = store;
  if (!open) return null;
  if (row.kind === "earlier") return <button type="button" className="quiet" data-testid="earlier" onClick={() => void store.earlier(open)}>{t.earlier}</button>;
  const kept = unsent.find((each) => `unsent-${each.id}` === row.key);
  if (!kept) return <section className="turn running"><header className="question-head"><div className="user-message" dir="auto">{open.sent}</div></header><p className="faint busy">…</p></section>;
  return (
    <section className="turn unsent" data-testid="unsent">
      <div className="user-message" dir="auto">{kept.text}</div>
      <div className="turn-tools">
        <span className="bad">{t.notSent}</span>
        <button type="button" data-testid="send-again" onClick={() => void store.sendAgain(kept)}>{t.sendAgain}</button>
        <button type="button" className="quiet" data-testid="drop-unsent" onClick={() => store.drop(kept)}>{t.removeQueued}</button>
      </div>
    </section>
  );
}
