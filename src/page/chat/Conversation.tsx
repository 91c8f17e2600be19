import { useStore, store } from "../store/store";
import { isRunning } from "../store/turn";
import { t } from "../texts";
import { Composer } from "./Composer";
import { TurnView } from "./TurnView";
import { useStickToEnd } from "./useStickToEnd";

export function Conversation() {
  const { open, approvals, chats, models, hideTools } = useStore();
  const turns = store.branch();
  const last = turns[turns.length - 1];
  const [place, stuck, jump] = useStickToEnd(`${open?.id}/${last?.id}/${last?.version}/${open?.sent}`);
  const busy = last !== undefined && isRunning(last);
  const mine = open ? [...approvals.values()].filter((each) => each.chat_id === open.id) : [];
  const chat = open && chats.get(open.id);
  const window = models.models.find((each) => each.name === last?.model)?.context_window ?? 0;
  const answerAll = async (approved: boolean): Promise<void> => {
    for (const each of mine) await store.answer(each.approval_id, { approved });
  };
  return (
    <div className="conversation">
      <div className="turns" ref={place} role="log" aria-busy={busy} aria-label={chat?.title ?? t.newChat} tabIndex={0} data-testid="turns">
        {open?.previous && <button type="button" className="quiet" data-testid="earlier" onClick={() => void store.load(open, open.previous!)}>{t.earlier}</button>}
        {turns.length === 0 && !open?.sent && <h1 className="welcome">{t.welcome}</h1>}
        {turns.map((turn) => {
          const siblings = store.siblings(turn);
          return <TurnView key={turn.id} turn={turn} version={turn.version * 100 + siblings.length} siblings={siblings} place={siblings.indexOf(turn)} hideTools={hideTools} />;
        })}
        {open?.sent && !busy && <section className="turn running"><header className="question-head"><div className="user-message" dir="auto">{open.sent}</div></header><p className="faint busy">…</p></section>}
      </div>
      {!stuck && <button type="button" className="jump" onClick={jump}>{t.jump} ↓</button>}
      {mine.length > 1 && (
        <div className="row all" data-testid="answer-all">
          <button type="button" data-testid="approve-all" onClick={() => void answerAll(true)}>{t.approveAll} ({mine.length})</button>
          <button type="button" data-testid="deny-all" onClick={() => void answerAll(false)}>{t.denyAll}</button>
        </div>
      )}
      <Composer key={open?.id ?? ""} running={busy ? last : undefined} />
      <div className="meter faint" data-testid="meter">
        {chat?.tokens ? t.tokens(chat.tokens) : ""} {last && last.context > 0 && window > 0 ? `· ${t.context(last.context, window)}` : ""}
      </div>
    </div>
  );
}
