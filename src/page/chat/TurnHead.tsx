import { memo, useSyncExternalStore } from "react";
import { Icon } from "../parts/Icon";
import { store } from "../store/store";
import { isRunning, Turn } from "../store/turn";
import type { Attachment } from "../store/types";
import { t } from "../texts";
import { EditPreviewBox } from "../time/EditPreviewBox";
import { chatPath } from "../wire/api";

// The question of a turn, to be read, changed where it stands, or seen in its other versions.
export const TurnHead = memo(function TurnHead({ turn, siblings, place }: { turn: Turn; siblings: Turn[]; place: number; stamp: string }) {
  const editing = useSyncExternalStore(store.subscribe, () => store.editing === turn.id && store.open?.id === turn.chat);
  if (editing) return <EditPreviewBox turn={turn} onDone={() => store.set({ editing: null })} />;
  return (
    <>
      <div className="user-message" data-testid="user-message" dir="auto" tabIndex={-1}>{turn.message ?? "…"}</div>
      {turn.attachments.length > 0 && <ul className="attachments sent" aria-label={t.attachments}>{turn.attachments.map((each) => <li key={each.id}><Attached chat={turn.chat} file={each} /></li>)}</ul>}
      <div className="turn-tools head">
        {siblings.length > 1 && <Branches siblings={siblings} place={place} />}
        {!isRunning(turn) && <button type="button" className="quiet tiny" data-testid="edit-message" title={t.edit} onClick={() => store.set({ editing: turn.id })}><Icon name="pencil" size={14} /><span>{t.edit}</span></button>}
      </div>
    </>
  );
});

function Attached({ chat, file }: { chat: string; file: Attachment }) {
  const path = `${chatPath(chat)}/files/${encodeURIComponent(file.id)}`;
  const isPicture = /^image\/(png|jpeg|gif|webp|avif)$/.test(file.mime_type);
  return <a href={path} download={file.filename} title={file.filename}>{isPicture ? <img src={path} alt={file.filename} loading="lazy" /> : <Icon name="file" size={16} />}<span className="title">{file.filename}</span></a>;
}

function Branches({ siblings, place }: { siblings: Turn[]; place: number }) {
  const go = (to: number): void => {
    const turn = siblings[to];
    if (turn) void store.moveHead(store.leafOf(turn));
  };
  return (
    <span className="branch" role="group" aria-label={t.branches}>
      <button type="button" className="quiet square small" data-testid="branch-prev" aria-label={t.previousBranch} title={t.previousBranch} disabled={place === 0} onClick={() => go(place - 1)}><Icon name="back" size={15} /></button>
      <span className="number" data-testid="branch-label">{t.branchOf(place + 1, siblings.length)}</span>
      <button type="button" className="quiet square small" data-testid="branch-next" aria-label={t.nextBranch} title={t.nextBranch} disabled={place === siblings.length - 1} onClick={() => go(place + 1)}><Icon name="forward" size={15} /></button>
    </span>
  );
}
