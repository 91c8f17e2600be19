import { ApprovalCard } from "../chat/ApprovalCard";
import { InputCard } from "../chat/InputCard";
import { titleOf } from "../chat/values";
import { ago, useNow } from "../parts/time";
import { Icon } from "../parts/Icon";
import { cache, useChats } from "../store/cache";
import { openChat } from "../store/navigation";
import type { PendingApproval, PendingInput } from "../store/turn";
import { t } from "../texts";
import { v } from "../texts_of_views";

interface Group {
  chat: string;
  approvals: PendingApproval[];
  inputs: PendingInput[];
  since: string;
}

// Everything that waits for a person, by chat, and approvals that were answered elsewhere meanwhile.
export function Inbox() {
  const { approvals, inputs, closed } = cache.use("approvals", "inputs", "closed");
  const chats = useChats();
  const now = useNow(true, 5000);
  const groups = new Map<string, Group>();
  const groupOf = (chat: string): Group => {
    let group = groups.get(chat);
    if (!group) groups.set(chat, (group = { chat, approvals: [], inputs: [], since: chats.get(chat)?.updated_at ?? "" }));
    return group;
  };
  for (const each of approvals.values()) {
    const group = groupOf(each.chat_id);
    if (group.approvals.length === 0 || each.created_at < group.since) group.since = each.created_at;
    group.approvals.push(each);
  }
  for (const each of inputs.values()) groupOf(each.chat_id).inputs.push(each);
  const title = (chat: string): string => chats.get(chat)?.title || chat;
  return (
    <section className="panel narrow" data-testid="inbox" aria-label={t.inbox}>
      <h2>{t.inbox}</h2>
      {groups.size === 0 && <p className="empty" data-testid="inbox-empty"><Icon name="check" size={22} /><br />{t.nothingWaits}</p>}
      {[...groups.values()].sort((a, b) => (a.since < b.since ? -1 : 1)).map((group) => (
        <section key={group.chat} className="inbox-group" data-testid="inbox-group" data-chat={group.chat} aria-label={title(group.chat)}>
          <header>
            <Icon name="chat" size={17} /><span className="title" dir="auto">{title(group.chat)}</span>
            {group.since && <span className="faint number" data-testid="age">{v.waitsFor(ago(group.since, now))}</span>}
            <span className="grow" />
            <button type="button" className="quiet tiny" data-testid="go-to-chat"
              onClick={() => openChat(group.chat)}>{t.goToChat}<Icon name="forward" size={14} /></button>
          </header>
          {group.approvals.map((each) => <ApprovalCard key={each.approval_id} approval={each} tool={each.tool_name} />)}
          {group.inputs.map((each) => <InputCard key={each.request_id} input={each} />)}
        </section>
      ))}
      {closed.length > 0 && (
        <>
          <h3>{v.answeredElsewhere}</h3>
          <ul className="closed-list" data-testid="closed">
            {closed.map(({ approval, how }) => (
              <li key={approval.approval_id}>
                {titleOf(approval.tool_name)} · <button type="button" className="quiet tiny" dir="auto" onClick={() => openChat(approval.chat_id)}>{title(approval.chat_id)}</button> · {how}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}
