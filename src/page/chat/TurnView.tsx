import { memo } from "react";
import { Markdown } from "../markdown/Markdown";
import { Block, isRunning, ToolBlock, Turn } from "../store/turn";
import { t } from "../texts";
import { Note } from "./Note";
import { Thinking } from "./Thinking";
import { ToolCard } from "./ToolCard";
import { TurnFoot } from "./TurnFoot";
import { TurnHead } from "./TurnHead";

interface Props {
  turn: Turn;
  version: number; // of the turn, and of what is around it: it is drawn again when one of these changes
  siblings: Turn[];
  place: number;
  hideTools: boolean;
}

// A question and everything that came of it.
export const TurnView = memo(function TurnView({ turn, siblings, place, hideTools }: Props) {
  const running = isRunning(turn);
  return (
    <section className={`turn ${running ? "running" : ""}`} data-testid="turn" data-interaction={turn.id} data-status={turn.status}>
      {turn.message !== "" && <header className="question-head"><TurnHead turn={turn} siblings={siblings} place={place} /></header>}
      <div className="blocks">
        <Blocks turn={turn} running={running} hideTools={hideTools} />
        {running && turn.blocks.length === 0 && <p className="faint busy">…</p>}
      </div>
      {!running && <TurnFoot turn={turn} />}
    </section>
  );
});

// What has come of the question, in its order. Calls that are hidden are counted.
export function Blocks({ turn, running, hideTools }: { turn: Turn; running: boolean; hideTools: boolean }) {
  const shown: JSX.Element[] = [];
  let hidden = 0;
  const flush = (key: string): void => {
    if (hidden > 0) shown.push(<p key={`hidden-${key}`} className="faint" data-testid="tools-hidden">{t.toolsHidden(hidden)}</p>);
    hidden = 0;
  };
  for (const block of turn.blocks) {
    if (hideTools && block.kind === "tool" && block.output !== null) {
      hidden++;
      continue;
    }
    flush(String(block.key));
    shown.push(<OneBlock key={block.key} block={block} turn={turn} running={running} />);
  }
  flush("end");
  return <>{shown}</>;
}

function OneBlock({ block, turn, running }: { block: Block; turn: Turn; running: boolean }) {
  const id = `${turn.chat}/${turn.id}/${block.key}`;
  if (block.kind === "tool") return <ToolCard block={block} id={id} open={running} stamp={stampOf(block)} />;
  if (block.kind === "note") return <Note note={block} turn={turn} />;
  const open = block.open && running;
  if (block.kind === "thinking") return <Thinking block={block} id={id} length={block.text.length} open={open} />;
  return <div className={block.final ? "answer" : "message"} data-testid="answer"><Markdown text={block.text} open={open} /></div>;
}

const stampOf = (block: ToolBlock): string =>
  `${block.live.length}/${block.output?.length ?? -1}/${block.input.length}/${block.nested?.version}/${block.approval?.approval_id}${block.approval?.decision ? "!" : ""}/${block.question?.request_id}${block.question?.answered ? "!" : ""}`;
