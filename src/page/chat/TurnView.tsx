import { memo, useState } from "react";
import { Rows } from "../list/Rows";
import { MarkdownPiece } from "../markdown/Markdown";
import { wholeCode } from "../markdown/pieces";
import { duration, useNow } from "../parts/time";
import { Icon } from "../parts/Icon";
import { isRunning, TextBlock, Turn } from "../store/turn";
import { t } from "../texts";
import { useFold } from "./folding";
import { BlocksOf } from "./ToolBody";
import { Note } from "./Note";
import { blocksOf, ChatRow, pieceOf } from "./rows";
import { IsPlayed, ToolCard } from "./ToolCard";

export const isOfText = (row: ChatRow): boolean => row.kind === "text" || row.kind === "code";

// One row of a block. It is drawn again when what it shows has changed.
export function BlockRow({ row, running = isRunning(row.turn!) }: { row: ChatRow; running?: boolean }) {
  const turn = row.turn!;
  const { block } = row;
  const id = `${turn.chat}/${turn.id}/${block?.key}`;
  if (row.reads) return <BlocksOf.Provider value={Blocks}><Reads row={row} id={id} running={running} /></BlocksOf.Provider>;
  if (block?.kind === "tool") return <BlocksOf.Provider value={Blocks}><ToolCard block={block} id={id} open={running} version={block.version} /></BlocksOf.Provider>;
  if (block?.kind === "note") return <Note note={block} turn={turn} />;
  if (block?.kind === "thinking") return <Thinking block={block} id={id} version={block.version} open={block.open && running} />;
  return block?.kind === "text" ? <TextPiece block={block} at={row.piece} running={running} /> : null;
}

// Calls that only read, in one line: "Read 3 files, searched 1".
function Reads({ row, id, running }: { row: ChatRow; id: string; running: boolean }) {
  const [shown, toggle] = useFold(`reads/${id}`, false, true);
  const count = (names: RegExp): number => row.reads!.filter((each) => names.test(each.name)).length;
  const failed = row.reads!.filter((each) => each.failed).length;
  const what = t.readsOf(count(/^read/), count(/^search/), count(/^(list|find)/));
  return (
    <div className="reads" data-testid="reads">
      <button type="button" className="quiet tiny" aria-expanded={shown} onClick={toggle}>
        <Icon name="eye" size={15} /><span>{what}</span>{failed > 0 && <span className="badge bad">{t.failedOf(failed)}</span>}<Icon name={shown ? "down" : "forward"} size={13} />
      </button>
      {shown && row.reads!.map((each) => <ToolCard key={each.key} block={each} id={`${row.turn!.chat}/${row.turn!.id}/${each.key}`} open={running} version={each.version} />)}
    </div>
  );
}

function TextPiece({ block, at, running }: { block: TextBlock; at: number; running: boolean }) {
  const piece = pieceOf(block, at);
  if (!piece) return null;
  const { kind, text, language, goesOn } = piece;
  return <MarkdownPiece kind={kind} text={text} language={language} goesOn={goesOn} growing={running && block.open && pieceOf(block, at + 1) === null} copy={() => wholeCode(block.text, piece)} />;
}

// The blocks of a sub-agent.
function Blocks({ turn, running }: { turn: Turn; running: boolean }) {
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

// The model's thinking, folded, and how long it took or has taken so far.
const Thinking = memo(function Thinking({ block, id, open }: { block: TextBlock; id: string; version: number; open: boolean }) {
  const [shown, toggle] = useFold(`thinking/${id}`, false, true);
  const still = open && block.to === 0;
  const now = useNow(still, 200);
  const taken = block.from > 0 ? (still ? now : block.to || now) - block.from : 0;
  return (
    <div className="thinking" data-testid="thinking">
      <button type="button" className={`quiet ${still ? "glow" : ""}`} aria-expanded={shown} onClick={toggle}>
        <Icon name="thinking" size={15} />
        <span>{still ? t.thinking : taken > 0 ? t.thoughtFor(duration(taken)) : t.thought}</span>
        {still && taken > 0 && <span className="number" data-testid="thinking-time" aria-hidden="true">{duration(Math.max(1000, taken))}</span>}
        <Icon name={shown ? "down" : "forward"} size={13} />
      </button>
      {shown && <div className="thinking-text" dir="auto">{block.text}</div>}
    </div>
  );
});
