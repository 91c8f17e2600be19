import { useRef } from "react";
import { Icon } from "../parts/Icon";
import { cache, leafOf, siblings } from "../store/cache";
import { editTurn, navigation } from "../store/navigation";
import * as requests from "../store/requests";
import { useSelect } from "../store/state";
import { isRunning, Turn } from "../store/turn";
import { t } from "../texts";
import { EditPreviewBox } from "../time/EditPreviewBox";
import { GivenFiles } from "./Attachments";

// The question of a turn, to be read, changed where it stands, or seen in its other versions.
export function TurnHead({ turn }: { turn: Turn }) {
  const editing = useSelect(() => navigation.editing === turn.id && cache.open?.id === turn.chat);
  if (editing) return <EditPreviewBox turn={turn} onDone={() => editTurn(null)} />;
  return (
    <>
      <div className="user-message" data-testid="user-message" dir="auto" tabIndex={-1}>{turn.message ?? "…"}</div>
      <GivenFiles chat={turn.chat} files={turn.attachments} label={t.attachments} className="sent" />
      <div className="turn-tools head">
        <Branches turn={turn} />
        {!isRunning(turn) && <button type="button" className="quiet tiny" data-testid="edit-message" title={t.edit} onClick={() => editTurn(turn)}><Icon name="pencil" size={14} /><span>{t.edit}</span></button>}
      </div>
    </>
  );
}

function Branches({ turn: shown }: { turn: Turn }) {
  const box = useRef<HTMLSpanElement>(null);
  const all = siblings(shown);
  const place = all.indexOf(shown);
  if (all.length < 2) return null;
  // The other version stands where this one stood, with the focus on the same arrow.
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
