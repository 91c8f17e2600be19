import { useState } from "react";
import { Icon } from "../parts/Icon";
import { cache } from "../store/cache";
import * as requests from "../store/requests";
import { useSelect } from "../store/state";
import { t } from "../texts";

// Several calls that wait in one chat, answered with one word.
export function AnswerAll() {
  const [busy, setBusy] = useState(false);
  const mine = useSelect(() => [...cache.approvals.values()].filter((each) => each.chat_id === cache.open?.id));
  if (mine.length < 2) return null;
  const answer = async (approved: boolean): Promise<void> => {
    setBusy(true);
    for (const each of mine) await requests.answer(each.approval_id, { approved });
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
