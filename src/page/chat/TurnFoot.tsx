import { lazy, memo, Suspense } from "react";
import { useKept } from "../list/kept";
import { CopyButton } from "../parts/CopyButton";
import { duration } from "../parts/duration";
import { Icon } from "../parts/Icon";
import { store } from "../store/store";
import type { TextBlock, Turn } from "../store/turn";
import { t } from "../texts";
import { TurnCost } from "./Cost";
import { ReadAloud } from "./ReadAloud";

const DiffBox = lazy(() => import("../time/DiffBox").then((part) => ({ default: part.DiffBox })));
const ReplayBox = lazy(() => import("../time/ReplayBox").then((part) => ({ default: part.ReplayBox })));

// The actions for a finished turn, its duration and its usage.
export const TurnFoot = memo(function TurnFoot({ turn }: { turn: Turn; stamp: string }) {
  const [replaying, setReplaying] = useKept("replaying", false);
  const [comparing, setComparing] = useKept("comparing", false);
  const changed = turn.events.some((each) => each.type === "FILES_CHANGED");
  const answer = turn.blocks.filter((block): block is TextBlock => block.kind === "text" && block.final).map((block) => block.text).join("\n\n");
  const last = turn.events[turn.events.length - 1];
  const taken = last && "at" in last && turn.createdAt ? Date.parse(last.at) - Date.parse(turn.createdAt) : 0;
  return (
    <>
      <footer className="turn-tools foot">
        {answer && <CopyButton text={answer} label={t.copyAnswer} />}
        {turn.message !== "" && <button type="button" className="quiet tiny" data-testid="regenerate" title={t.regenerate} onClick={() => void store.again(turn, "regenerate")}><Icon name="refresh" size={14} /><span>{t.regenerate}</span></button>}
        {(turn.status === "FAILED" || turn.status === "CANCELLED") && <button type="button" className="quiet tiny" data-testid="resume" onClick={() => void store.again(turn, "resume")}><Icon name="play" size={14} /><span>{t.resume}</span></button>}
        <button type="button" className="quiet tiny" data-testid="fork" title={t.fork} onClick={() => void store.fork(turn)}><Icon name="fork" size={14} /><span>{t.forkShort}</span></button>
        <button type="button" className="quiet tiny" data-testid="replay" aria-expanded={replaying} onClick={() => setReplaying(!replaying)}><Icon name="loop" size={14} /><span>{t.replay}</span></button>
        {changed && <button type="button" className="quiet tiny" data-testid="diff" title={t.filesChanged} aria-expanded={comparing} onClick={() => setComparing(!comparing)}><Icon name="file" size={14} /><span>{t.changesShort}</span></button>}
        <ReadAloud turn={turn} />
        <span className="grow" />
        <span className="faint usage" data-testid="turn-usage" title={t.meterTip(turn.input, turn.output)}>
          {[taken > 0 ? duration(taken) : "", turn.input + turn.output > 0 ? t.tokens(turn.input + turn.output) : "", turn.model].filter(Boolean).join(" · ")}
          <TurnCost turn={turn} />
        </span>
      </footer>
      {changed && comparing && <Suspense fallback={<p className="faint">…</p>}><DiffBox turn={turn} /></Suspense>}
      {replaying && <Suspense fallback={<p className="faint">…</p>}><ReplayBox turn={turn} /></Suspense>}
    </>
  );
});
