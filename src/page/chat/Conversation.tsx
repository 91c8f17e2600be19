import { Fragment, lazy, ReactNode, RefObject, Suspense, useEffect, useMemo, useState } from "react";
import { MemoryOfRow, useWindow } from "../list/Rows";
import { MOST_PRINTED } from "../list/window";
import { Icon } from "../parts/Icon";
import { branch, cache, earlier, instructBy, isGone, lastTurn, need, tend, useBranch, useChat, useOpen } from "../store/cache";
import { feed } from "../store/feed";
import { leave, navigation } from "../store/navigation";
import { changeUnsent, draftOf, offerDraft, OpenChat, Unsent, writeDraft } from "../store/open";
import * as requests from "../store/requests";
import { useSelect } from "../store/state";
import { isRunning, TextBlock, Turn } from "../store/turn";
import { t } from "../texts";
import { AgendaPanel } from "./AgendaPanel";
import { AnswerAll } from "./ApprovalCard";
import { Composer } from "./Composer";
import { ChatRow, onCopy, rowsOfChat, waitingRows } from "./rows";
import { FolderGone } from "./Folder";
import { Meter } from "./Meter";
import { TurnFoot, TurnHead } from "./TurnEnds";
import { BlockRow, isOfText } from "./TurnView";
import { Welcome } from "./Welcome";

const AskedFilesBox = lazy(() => import("../time/FilesBack").then((part) => ({ default: part.AskedFilesBox })));
const FindBar = lazy(() => import("./FindBar").then((part) => ({ default: part.FindBar })));
const NewInstructions = lazy(() => import("./NewInstructions").then((part) => ({ default: part.NewInstructions })));

const NO_TEXTS: Unsent[] = [];
const NO_CHAT: Pick<OpenChat, "id" | "heights" | "values"> = { id: "", heights: new Map(), values: new Map() };

export function Conversation() {
  const chat = useOpen()?.id ?? "";
  const { box, instructions } = cache.use("box", "instructions");
  const asked = useSelect(() => navigation.askedFiles !== null);
  const running = useSelect(() => [lastTurn()].find((last) => last && isRunning(last)));
  const folder = useSelect(requests.workspace);
  useEffect(() => instructBy(folder), [folder]);
  return (
    <div className="conversation">
      <Turns key={`turns-${chat}`} busy={running !== undefined} />
      <AgendaPanel />
      {instructions.some((each) => each.state === "new" || each.state === "changed") && <Suspense fallback={null}><NewInstructions /></Suspense>}
      <FolderGone />
      <AnswerAll />
      {asked && <Suspense fallback={null}><AskedFilesBox /></Suspense>}
      <Composer key={box} chat={chat} running={running} />
      <Meter />
    </div>
  );
}

// The turns of a chat. The document holds only the turns and blocks near the window.
function Turns({ busy }: { busy: boolean }) {
  const open = useOpen();
  const turns = useBranch();
  const title = useChat()?.title;
  const { finding, began } = navigation.use("finding", "began");
  const gone = useSelect(isGone);
  useSelect(() => feed.connection); // what could not be read is asked for again
  const [chat] = useState(open ?? NO_CHAT);
  const { sent, unsent } = useSelect(() => ({ sent: cache.open?.sent ?? null, unsent: cache.open?.unsent ?? NO_TEXTS }));
  const waits = sent !== null && !busy ? "sent" : null;
  const hasEarlier = useSelect(() => Boolean(cache.open?.previous));
  const { rows, leads, heads } = useSelect(() => rowsOfChat(branch(), navigation.hideTools, !navigation.finding, hasEarlier, [...unsent.map((each) => `unsent-${each.id}`), ...(waits ? [waits] : [])]));
  const waiting = useSelect(() => waitingRows(rows));
  const [window, shown, root] = useWindow(rows, { scroller: ".turns", heights: chat.heights, leads, waits: waiting, sticks: true, place: open?.place });
  useEffect(() => () => {
    if (open) open.place = window.whereItIs();
  }, [window, open]);

  // After sending a message, people want to see the answer.
  const [seen] = useState({ began });
  useEffect(() => {
    if (waits || began !== seen.began) window.toEnd();
    seen.began = began;
  }, [waits, began, seen, window]);
  useGoTo(root, heads, (row, below) => window.reveal(row, below));
  // Reads turns that come near the window, and lets distant ones go.
  const [first, end] = window.seen();
  useEffect(() => {
    const near = new Set<string>();
    for (const index of shown) {
      const turn = rows[index]?.turn;
      if (turn) near.add(turn.id);
      if (rows[index]?.kind === "gone" && turn) void need(turn);
      if (rows[index]?.kind === "earlier" && open) void earlier(open);
    }
    tend(near);
  });

  const height = (from: number, to: number): number => window.height(from, to);
  const values = open?.values ?? chat.values;
  return (
    <>
      {finding && open && <Suspense fallback={null}><FindBar chat={open} window={window} root={root} stamp={`${shown[0]}-${shown[shown.length - 1]}-${rows.length}`} /></Suspense>}
      <div className="turns" role="log" aria-busy={busy} aria-label={title ?? t.newChat} tabIndex={0} data-testid="turns" data-rows={rows.length}
        onCopy={(e) => onCopy(e, rows)}>
        {open && gone && (
          <p className="warning" data-testid="no-such-chat">
            <Icon name="alert" size={16} /> <span className="grow">{t.noSuchChat(open.id)}</span><button type="button" onClick={() => navigation.set({ view: "trash" })}>{t.trash}</button>
            <button type="button" data-testid="begin-instead" onClick={() => beginInstead(open)}>{t.newChat}</button>
          </p>
        )}
        {turns.length === 0 && !gone && !sent && unsent.length === 0 && <Welcome />}
        {(hasEarlier || rows.length > MOST_PRINTED || rows.some((row) => row.kind === "gone")) && <p className="only-print">{t.printedPart}</p>}
        <div ref={root} data-list="" data-seen={`${first}-${end}`}>
          {drawn({ rows, heads, values, height }, shown, turns, unsent, !hasEarlier)}
        </div>
      </div>
      {!window.stuck && turns.length > 0 && <button type="button" className="jump" data-testid="jump" onClick={() => window.toEnd()}><Icon name="down" size={16} />{t.jump}</button>}
    </>
  );
}

// A new chat takes along what was written for the one that is gone, also messages that did not reach it.
function beginInstead(chat: OpenChat): void {
  const draft = draftOf(chat.id);
  const words = [...chat.unsent.map((each) => each.text), draft].filter(Boolean).join("\n\n");
  if (words && offerDraft("", words)) writeDraft(chat.id, "", draft), changeUnsent(chat, () => []);
  leave();
}

const gap = (key: string, height: number): ReactNode => height > 0 && <div key={`gap-${key}`} role="presentation" style={{ height }} />;

interface All {
  rows: ChatRow[];
  heads: Map<string, number>;
  values: Map<string, unknown>;
  height: (from: number, to: number) => number;
}

// The drawn rows within their turns and texts, with empty space in place of the others.
function drawn(all: All, shown: number[], turns: readonly Turn[], unsent: Unsent[], isWhole: boolean): ReactNode[] {
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
    const mine = shown.slice(i, next);
    parts.push(<TurnBox key={turn.id} turn={turn} place={place} count={turns.length} isWhole={isWhole}>{() => drawnTurn(all, mine, head, behind)}</TurnBox>);
    at = behind;
    i = next;
  }
  parts.push(gap("end", height(at, rows.length)));
  return parts;
}

interface BoxProps {
  turn: Turn;
  place: number;
  count: number;
  isWhole: boolean; // no earlier turns are left on the server
  children: () => ReactNode;
}

// One turn, drawn again by itself as it goes on.
function TurnBox({ turn, place, count, isWhole, children }: BoxProps) {
  useSelect(() => [turn.version, cache.open?.shape, cache.open?.turns.size]);
  return (
    <article className={`turn ${isRunning(turn) ? "running" : ""}`} data-testid="turn" data-interaction={turn.id} data-status={turn.status}
      aria-setsize={isWhole ? count : -1} aria-posinset={place} aria-label={t.turnOf(place, count)}>{children()}</article>
  );
}

function drawnTurn({ rows, values, height }: All, shown: number[], head: number, behind: number): ReactNode[] {
  const parts: ReactNode[] = [];
  let at = head;
  for (let i = 0; i < shown.length;) {
    const row = rows[shown[i]!]!;
    parts.push(gap(row.key, height(at, shown[i]!)));
    if (!isOfText(row)) {
      parts.push(<Box key={row.key} row={row} values={values}><TurnRow row={row} turn={row.turn!} /></Box>);
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

function TurnRow({ row, turn }: { row: ChatRow; turn: Turn }) {
  if (row.kind === "head") return turn.message === "" ? null : <header className="question-head"><TurnHead turn={turn} /></header>;
  if (row.kind === "foot") return <TurnFoot turn={turn} version={turn.version} />;
  if (row.kind === "wait") return <p className="faint busy">…</p>;
  if (row.kind === "gone") return <p className="faint gone" style={{ height: row.guess }}>…</p>;
  if (row.kind === "hidden") return <p className="faint" data-testid="tools-hidden">{t.toolsHidden(row.count)}</p>;
  return <BlockRow row={row} />;
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
  const { open } = cache;
  if (!open) return null;
  if (row.kind === "earlier") return <button type="button" className="quiet" data-testid="earlier" onClick={() => void earlier(open)}>{t.earlier}</button>;
  const kept = unsent.find((each) => `unsent-${each.id}` === row.key);
  if (!kept) return <section className="turn running"><header className="question-head"><div className="user-message" dir="auto">{open.sent}</div></header><p className="faint busy">…</p></section>;
  return (
    <section className="turn unsent" data-testid="unsent">
      <div className="user-message" dir="auto">{kept.text}</div>
      <div className="turn-tools">
        <span className="bad">{kept.why ?? t.notSent}</span>
        {!isGone() && <button type="button" data-testid="send-again" onClick={() => void requests.sendAgain(kept)}>{t.sendAgain}</button>}
        <button type="button" className="quiet" data-testid="drop-unsent" onClick={() => requests.drop(kept)}>{t.removeQueued}</button>
      </div>
    </section>
  );
}

const articleOf = (place: RefObject<HTMLElement>, turn: string): HTMLElement | null | undefined => place.current?.querySelector<HTMLElement>(`[data-interaction="${CSS.escape(turn)}"]`);

// Scrolls to the wanted turn, or to the one being edited, once it is there.
function useGoTo(place: RefObject<HTMLElement>, heads: Map<string, number>, reveal: (row: string, below: number) => void): void {
  const { target, editing } = navigation.use("target", "editing");
  const open = useOpen();
  useEffect(() => {
    if (editing && heads.has(editing) && !articleOf(place, editing)) reveal(`${editing}/head`, 0);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- only when editing begins
  }, [editing]);
  useEffect(() => {
    if (!target || target.chat !== open?.id || !heads.has(target.turn)) return;
    navigation.set({ target: null });
    reveal(target.row ?? `${target.turn}/head`, target.below ?? 0);
    if (target.row) return;
    requestAnimationFrame(() => {
      const turn = articleOf(place, target.turn);
      if (!turn) return;
      if (target.focus) {
        const wanted = [target.focus, "branch-prev", "branch-next"].map((name) => turn.querySelector<HTMLElement>(`[data-testid=${name}]:not(:disabled)`));
        return wanted.find((each) => each)?.focus({ preventScroll: true });
      }
      turn.classList.add("found");
      turn.addEventListener("animationend", () => turn.classList.remove("found"), { once: true });
      turn.querySelector<HTMLElement>(".user-message")?.focus({ preventScroll: true });
    });
  });
}
