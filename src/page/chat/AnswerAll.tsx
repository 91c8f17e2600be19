import { useState } from "react";
import { Icon } from "../parts/Icon";
import { store, useStore } from "../store/store";
import { t } from "../texts";

// Answers several waiting calls of one chat at once.
export function AnswerAll() {
  const { open, approvals } = useStore();
  const [busy, setBusy] = useState(false);
  const mine = [...approvals.values()].filter((each) => each.chat_id === open?.id);
  if (mine.length < 2) return null;
  const answer = async (approved: boolean): Promise<void> => {
    setBusy(true);
    for (const each of mine) await store.answer(each.approval_id, { approved });
    setBusy(false);
  };
  return (
    <div className="all" data-testid="answer-all" role="group" aria-label={t.waitingCalls(mine.length)}>
      <Icon name="shield" size={17} /><span className="grow">{t.waitingCalls(mine.length)}</span>
      <button type="button" className="primary" data-testid="approve-all" disabled={busy} onClick={() => void answer(true)}>{t.approveAll}</button>
      <button type="button" data-testid="deny-all" disabled={busy} onClick={() => void answer(false)}>{t.denyAll}</button>
    </div>
  );
}
