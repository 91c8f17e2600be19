import { lazy, memo, Suspense } from "react";
import { useKept } from "../list/kept";
import { CopyButton } from "../parts/CopyButton";
import { duration } from "../parts/duration";
import { Icon } from "../parts/Icon";
import * as requests from "../store/requests";
import { textOf, timeOf, Turn } from "../store/turn";
import { t } from "../texts";
import { TurnCost } from "./Cost";
import { ReadAloud } from "./ReadAloud";

const DiffBox = lazy(() => import("../time/DiffBox").then((part) => ({ default: part.DiffBox })));
const ReplayBox = lazy(() => import("../time/ReplayBox").then((part) => ({ default: part.ReplayBox })));

// What can be done with a turn that has ended, how long it took and what it used.
export const TurnFoot = memo(function TurnFoot({ turn }: { turn: Turn; version: number }) {
  const [replaying, setReplaying] = useKept("replaying", false);
  const [comparing, setComparing] = useKept("comparing", false);
  const changed = turn.events.some((each) => each.type === "FILES_CHANGED");
  const answer = textOf(turn, true);
  const end = timeOf(turn.events[turn.events.length - 1]);
  const taken = end && turn.createdAt ? end - Date.parse(turn.createdAt) : 0;
  return (
    <>
      <footer className="turn-tools foot">
        {answer && <CopyButton text={answer} label={t.copyAnswer} />}
        {turn.message !== "" && <button type="button" className="quiet tiny" data-testid="regenerate" title={t.regenerate} onClick={() => void requests.again(turn, "regenerate")}><Icon name="refresh" size={14} /><span>{t.regenerate}</span></button>}
        {(turn.status === "FAILED" || turn.status === "CANCELLED") && <button type="button" className="quiet tiny" data-testid="resume" onClick={() => void requests.again(turn, "resume")}><Icon name="play" size={14} /><span>{t.resume}</span></button>}
        <button type="button" className="quiet tiny" data-testid="fork" title={t.fork} onClick={() => void requests.fork(turn)}><Icon name="fork" size={14} /><span>{t.forkShort}</span></button>
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
