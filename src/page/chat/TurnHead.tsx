import { memo, useRef, useSyncExternalStore } from "react";
import { Icon } from "../parts/Icon";
import { store } from "../store/store";
import { isRunning, Turn } from "../store/turn";
import { t } from "../texts";
import { EditPreviewBox } from "../time/EditPreviewBox";
import { GivenFiles } from "./Attachments";

// The message of a turn, which can be edited in place and compared with its other versions.
export const TurnHead = memo(function TurnHead({ turn, siblings, place }: { turn: Turn; siblings: Turn[]; place: number; stamp: string }) {
  const editing = useSyncExternalStore(store.subscribe, () => store.editing === turn.id && store.open?.id === turn.chat);
  if (editing) return <EditPreviewBox turn={turn} onDone={() => store.set({ editing: null })} />;
  return (
    <>
      <div className="user-message" data-testid="user-message" dir="auto" tabIndex={-1}>{turn.message ?? "…"}</div>
      <GivenFiles chat={turn.chat} files={turn.attachments} label={t.attachments} className="sent" />
      <div className="turn-tools head">
        {siblings.length > 1 && <Branches siblings={siblings} place={place} />}
        {!isRunning(turn) && <button type="button" className="quiet tiny" data-testid="edit-message" title={t.edit} onClick={() => store.set({ editing: turn.id })}><Icon name="pencil" size={14} /><span>{t.edit}</span></button>}
      </div>
    </>
  );
});

function Branches({ siblings, place }: { siblings: Turn[]; place: number }) {
  const box = useRef<HTMLSpanElement>(null);
  // Shows the other version in the same place, with the focus on the same arrow.
  const go = (to: number): void => {
    const turn = siblings[to];
    if (!turn) return;
    const top = (selector: string): number => box.current?.closest(selector)?.getBoundingClientRect().top ?? 0;
    const below = top(".turn") - top(".turns");
    void store.moveHead(store.leafOf(turn), undefined, () => store.set({ target: { chat: turn.chat, turn: turn.id, below, focus: to < place ? "branch-prev" : "branch-next" } }));
  };
  return (
    <span ref={box} className="branch" role="group" aria-label={t.branches}>
      <button type="button" className="quiet square small" data-testid="branch-prev" aria-label={t.previousBranch} title={t.previousBranch} disabled={place === 0} onClick={() => go(place - 1)}><Icon name="back" size={15} /></button>
      <span className="number" data-testid="branch-label">{t.branchOf(place + 1, siblings.length)}</span>
      <button type="button" className="quiet square small" data-testid="branch-next" aria-label={t.nextBranch} title={t.nextBranch} disabled={place === siblings.length - 1} onClick={() => go(place + 1)}><Icon name="forward" size={15} /></button>
    </span>
  );
}
