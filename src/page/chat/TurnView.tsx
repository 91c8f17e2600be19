import { memo, useEffect, useState } from "react";
import { Markdown } from "../markdown/Markdown";
import { store } from "../store/store";
import { Block, isRunning, NoteBlock, TextBlock, ToolBlock, Turn } from "../store/turn";
import { t } from "../texts";
import { EditPreviewBox } from "../time/EditPreviewBox";
import { ReplayBox } from "../time/ReplayBox";
import { seconds, ToolCard } from "./ToolCard";

interface Props {
  turn: Turn;
  version: number; // of the turn, and of what is around it: it is drawn again when one of these changes
  siblings: Turn[];
  place: number;
  hideTools: boolean;
}

// A question and everything that came of it.
export const TurnView = memo(function TurnView({ turn, siblings, place, hideTools }: Props) {
  const [editing, setEditing] = useState(false);
  const [replaying, setReplaying] = useState(false);
  const running = isRunning(turn);
  return (
    <section className={`turn ${running ? "running" : ""}`} data-testid="turn" data-interaction={turn.id} data-status={turn.status}>
      {turn.message !== "" && (
        <header className="question-head">
          {editing ? <EditPreviewBox turn={turn} onDone={() => setEditing(false)} /> : (
            <>
              <div className="user-message" data-testid="user-message" dir="auto" tabIndex={-1}>{turn.message ?? "…"}</div>
              {turn.attachments.length > 0 && <ul className="attachments">{turn.attachments.map((each) => <li key={each.id}>{each.filename}</li>)}</ul>}
              <div className="turn-tools">
                {siblings.length > 1 && <Branches siblings={siblings} place={place} />}
                {!running && <button type="button" className="quiet" data-testid="edit-message" onClick={() => setEditing(true)}>{t.edit}</button>}
              </div>
            </>
          )}
        </header>
      )}
      <div className="blocks">
        <Blocks turn={turn} running={running} hideTools={hideTools} />
        {running && turn.blocks.length === 0 && <p className="faint busy">…</p>}
      </div>
      {!running && (
        <footer className="turn-tools">
          {turn.message !== "" && <button type="button" className="quiet" data-testid="regenerate" onClick={() => void store.again(turn, "regenerate")}>{t.regenerate}</button>}
          {(turn.status === "FAILED" || turn.status === "CANCELLED") && <button type="button" className="quiet" data-testid="resume" onClick={() => void store.again(turn, "resume")}>{t.resume}</button>}
          <button type="button" className="quiet" data-testid="fork" onClick={() => void store.fork(turn)}>{t.fork}</button>
          <button type="button" className="quiet" data-testid="replay" aria-expanded={replaying} onClick={() => setReplaying(!replaying)}>{t.replay}</button>
          <span className="faint" data-testid="turn-usage">{turn.input + turn.output > 0 && t.tokens(turn.input + turn.output)} {turn.model}</span>
        </footer>
      )}
      {replaying && <ReplayBox turn={turn} />}
    </section>
  );
});

function Branches({ siblings, place }: { siblings: Turn[]; place: number }) {
  const go = (to: number): void => {
    const turn = siblings[to];
    if (turn) void store.moveHead(store.leafOf(turn));
  };
  return (
    <span className="branch" role="group" aria-label={t.branches}>
      <button type="button" className="quiet" data-testid="branch-prev" aria-label={t.previousBranch} disabled={place === 0} onClick={() => go(place - 1)}>‹</button>
      <span data-testid="branch-label">{t.branchOf(place + 1, siblings.length)}</span>
      <button type="button" className="quiet" data-testid="branch-next" aria-label={t.nextBranch} disabled={place === siblings.length - 1} onClick={() => go(place + 1)}>›</button>
    </span>
  );
}

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
  if (block.kind === "tool") return <ToolCard block={block} open={running} stamp={stampOf(block)} />;
  if (block.kind === "note") return <Note note={block} turn={turn} />;
  const open = block.open && running;
  if (block.kind === "thinking") return <Thinking block={block} length={block.text.length} open={open} />;
  return <div className={block.final ? "answer" : "message"} data-testid="answer"><Markdown text={block.text} open={open} /></div>;
}

const stampOf = (block: ToolBlock): string =>
  `${block.live.length}/${block.output?.length ?? -1}/${block.input.length}/${block.steps.length}/${block.approval?.approval_id}${block.approval?.decision ? "!" : ""}/${block.question?.request_id}${block.question?.answered ? "!" : ""}`;

const Thinking = memo(function Thinking({ block, open }: { block: TextBlock; length: number; open: boolean }) {
  const [chosen, setChosen] = useState<boolean | null>(null);
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!open) return undefined;
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [open]);
  const still = open && block.to === 0;
  const taken = block.from > 0 ? (still ? now : block.to || now) - block.from : 0;
  return (
    <div className="thinking" data-testid="thinking">
      <button type="button" className="quiet" aria-expanded={chosen ?? false} onClick={() => setChosen(!chosen)}>
        {still ? `${t.thinking} … ${taken > 0 ? seconds(taken) : ""}` : taken > 0 ? t.thoughtFor(seconds(taken)) : t.thought}
      </button>
      {chosen && <div className="thinking-text" dir="auto">{block.text}</div>}
    </div>
  );
});

function Note({ note, turn }: { note: NoteBlock; turn: Turn }) {
  if (note.what === "error") {
    return (
      <div className="card bad" role="alert" data-testid="error-note">
        <strong>{t.error}</strong> <code>{note.code}</code><p>{note.text}</p>
        {!isRunning(turn) && (
          <div className="row">
            <button type="button" onClick={() => void store.again(turn, "resume")}>{t.errorNext.resume}</button>
            <button type="button" onClick={() => void store.again(turn, "regenerate")}>{t.errorNext.retry}</button>
          </div>
        )}
      </div>
    );
  }
  if (note.what === "tasks") return <ul className="note tasks">{note.tasks?.map((task) => <li key={task.id} className={task.status}>{task.title}</li>)}</ul>;
  if (note.what === "plan") return <ol className="note plan">{note.steps?.map((step, i) => <li key={i}>{step}</li>)}</ol>;
  const text = note.what === "retry" ? `${t.retrying(note.code)}: ${note.text}` : note.what === "compacted" ? t.compacted(note.code)
    : note.what === "loop" ? t.loop(note.text, note.code) : `${t.cancelled} (${note.text})`;
  return <p className="note faint" data-testid={`note-${note.what}`}>{text}</p>;
}
