import { ApprovalCard } from "../chat/ApprovalCard";
import { InputCard } from "../chat/InputCard";
import { store, useStore } from "../store/store";
import { t } from "../texts";

// Everything that waits for a person, in every chat.
export function Inbox() {
  const { approvals, inputs, chats } = useStore();
  const from = (chat: string): JSX.Element => <button type="button" className="quiet" onClick={() => store.openChat(chat)}>{chats.get(chat)?.title || chat}</button>;
  return (
    <section className="panel" data-testid="inbox" aria-label={t.inbox}>
      <h2>{t.inbox}</h2>
      {approvals.size + inputs.size === 0 && <p className="faint">{t.nothingWaits}</p>}
      {[...approvals.values()].map((each) => <div key={each.approval_id}>{from(each.chat_id)}<ApprovalCard approval={each} tool={each.tool_name} /></div>)}
      {[...inputs.values()].map((each) => <div key={each.request_id}>{from(each.chat_id)}<InputCard input={each} /></div>)}
    </section>
  );
}
