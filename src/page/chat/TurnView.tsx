import { useState } from "react";
import { Rows } from "../list/Rows";
import { MarkdownPiece } from "../markdown/Markdown";
import { wholeCode } from "../markdown/pieces";
import { store } from "../store/store";
import { isRunning, TextBlock, ToolBlock, Turn } from "../store/turn";
import { t } from "../texts";
import { Note } from "./Note";
import { blocksOf, ChatRow, pieceOf } from "./rows";
import { Thinking } from "./Thinking";
import { IsPlayed, ToolCard } from "./ToolCard";
import { TurnFoot } from "./TurnFoot";
import { TurnHead } from "./TurnHead";

export const isOfText = (row: ChatRow): boolean => row.kind === "text" || row.kind === "code";

// One row of a turn, drawn again only when its content has changed.
export function BlockRow({ row, running = isRunning(row.turn!) }: { row: ChatRow; running?: boolean }) {
  const turn = row.turn!;
  const { block } = row;
  const id = `${turn.chat}/${turn.id}/${block?.key}`;
  if (row.kind === "head") {
    if (turn.message === "") return null;
    const siblings = store.siblings(turn);
    const place = siblings.indexOf(turn);
    const stamp = `${turn.message}/${turn.status}/${turn.attachments.length}/${place}/${siblings.length}/${siblings[siblings.length - 1]?.id}`;
    return <header className="question-head"><TurnHead turn={turn} siblings={siblings} place={place} stamp={stamp} /></header>;
  }
  if (row.kind === "foot") return <TurnFoot turn={turn} stamp={String(turn.version)} />;
  if (row.kind === "wait") return <p className="faint busy">…</p>;
  if (row.kind === "gone") return <p className="faint gone" style={{ height: row.guess }}>…</p>;
  if (row.kind === "hidden") return <p className="faint" data-testid="tools-hidden">{t.toolsHidden(row.count)}</p>;
  if (block?.kind === "tool") return <ToolCard block={block} id={id} open={running} stamp={stampOf(block)} />;
  if (block?.kind === "note") return <Note note={block} turn={turn} />;
  if (block?.kind === "thinking") return <Thinking block={block} id={id} length={block.text.length} open={block.open && running} />;
  return block?.kind === "text" ? <TextPiece block={block} at={row.piece} running={running} /> : null;
}

function TextPiece({ block, at, running }: { block: TextBlock; at: number; running: boolean }) {
  const piece = pieceOf(block, at);
  if (!piece) return null;
  const { kind, text, language, goesOn } = piece;
  return <MarkdownPiece kind={kind} text={text} language={language} goesOn={goesOn} growing={running && block.open && pieceOf(block, at + 1) === null} copy={() => wholeCode(block.text, piece)} />;
}

// The blocks of a sub-agent.
export function Blocks({ turn, running }: { turn: Turn; running: boolean }) {
  return <>{blocksOf(turn, false).map((row) => <PlainRow key={row.key} row={row} running={running} />)}</>;
}
// The blocks of a replayed turn, in a box of their own.
export function BlockList({ turn }: { turn: Turn }) {
  const [values] = useState(() => new Map<string, unknown>());
  const rows = <Rows rows={blocksOf(turn, false)} scroller=".replayed" values={values}>{(row) => <PlainRow row={row} running={false} />}</Rows>;
  return <IsPlayed.Provider value={isRunning(turn)}>{rows}</IsPlayed.Provider>;
}
function PlainRow({ row, running }: { row: ChatRow; running: boolean }) {
  return isOfText(row) ? <div className="markdown" dir="auto" data-testid="answer"><BlockRow row={row} running={running} /></div> : <BlockRow row={row} running={running} />;
}

const stampOf = (block: ToolBlock): string =>
  `${block.live.length}/${block.output?.length ?? -1}/${block.input.length}/${block.nested?.version}/${block.approval?.approval_id}${block.approval?.decision ? "!" : ""}/${block.question?.request_id}${block.question?.answered ? "!" : ""}`;
