import { lazy, memo, Suspense, useRef } from "react";
import { useKept } from "../list/Rows";
import { CopyButton, Icon } from "../parts/Icon";
import { duration } from "../parts/time";
import { cache, leafOf, siblings } from "../store/cache";
import { editTurn, navigation } from "../store/navigation";
import * as requests from "../store/requests";
import { useSelect } from "../store/state";
import { isRunning, textOf, timeOf, Turn } from "../store/turn";
import { t } from "../texts";
import { GivenFiles } from "./Attachments";
import { TurnCost } from "./Meter";

const EditPreviewBox = lazy(() => import("../time/EditPreviewBox").then((part) => ({ default: part.EditPreviewBox })));

// The message of a turn, which can be edited in place and compared with its other versions.
export function TurnHead({ turn }: { turn: Turn }) {
  const editing = useSelect(() => navigation.editing === turn.id && cache.open?.id === turn.chat);
  if (editing) return <Suspense fallback={<p className="faint">…</p>}><EditPreviewBox turn={turn} onDone={() => editTurn(null)} /></Suspense>;
  return (
    <>
      <div className="user-message" data-testid="user-message" dir="auto" tabIndex={-1}>{turn.message ?? "…"}</div>
      <GivenFiles chat={turn.chat} files={turn.attachments} label={t.attachments} className="sent" />
      <div className="turn-tools head">
        <Branches turn={turn} />
        <KeptWhatIf turn={turn} />
        {!isRunning(turn) && <button type="button" className="quiet tiny" data-testid="edit-message" title={t.edit} onClick={() => editTurn(turn)}><Icon name="pencil" size={14} /><span>{t.edit}</span></button>}
      </div>
    </>
  );
}

// Marks a turn whose calls before the event were not run again, and whose files changed in a copy alone.
export function KeptWhatIf({ turn }: { turn: Turn }) {
  return turn.whatIf === null ? null : <span className="badge" data-testid="kept-what-if" title={t.keptWhatIfTip(turn.whatIf)}>{t.keptWhatIf}</span>;
}

function Branches({ turn: shown }: { turn: Turn }) {
  const box = useRef<HTMLSpanElement>(null);
  const all = siblings(shown);
  const place = all.indexOf(shown);
  if (all.length < 2) return null;
  // Shows the other version in the same place, with the focus on the same arrow.
  const go = (to: number): void => {
    const turn = all[to];
    if (!turn) return;
    const top = (selector: string): number => box.current?.closest(selector)?.getBoundingClientRect().top ?? 0;
    const below = top(".turn") - top(".turns");
    void requests.moveHead(leafOf(turn), undefined, () => navigation.set({ target: { chat: turn.chat, turn: turn.id, below, focus: to < place ? "branch-prev" : "branch-next" } }));
  };
  return (
    <span ref={box} className="branch" role="group" aria-label={t.branches}>
      <button type="button" className="quiet square small" data-testid="branch-prev" aria-label={t.previousBranch} title={t.previousBranch} disabled={place === 0} onClick={() => go(place - 1)}><Icon name="back" size={15} /></button>
      <span className="number" data-testid="branch-label">{t.branchOf(place + 1, all.length)}</span>
      <button type="button" className="quiet square small" data-testid="branch-next" aria-label={t.nextBranch} title={t.nextBranch} disabled={place === all.length - 1} onClick={() => go(place + 1)}><Icon name="forward" size={15} /></button>
    </span>
  );
}

const DiffBox = lazy(() => import("../time/DiffBox").then((part) => ({ default: part.DiffBox })));
const ReadAloud = lazy(() => import("./ReadAloud").then((part) => ({ default: part.ReadAloud })));
const ReplayBox = lazy(() => import("../time/ReplayBox").then((part) => ({ default: part.ReplayBox })));

// The actions for a finished turn, its duration and its usage.
export const TurnFoot = memo(function TurnFoot({ turn }: { turn: Turn; version: number }) {
  const { models } = cache.use("models");
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
        <button type="button" className="quiet tiny" data-testid="replay" title={t.replay} aria-expanded={replaying} onClick={() => setReplaying(!replaying)}><Icon name="loop" size={14} /><span>{t.replay}</span></button>
        {changed && <button type="button" className="quiet tiny" data-testid="diff" title={t.filesChanged} aria-expanded={comparing} onClick={() => setComparing(!comparing)}><Icon name="file" size={14} /><span>{t.changesShort}</span></button>}
        {models.audio?.speech && <Suspense fallback={null}><ReadAloud turn={turn} /></Suspense>}
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
