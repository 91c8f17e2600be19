import { Icon } from "../parts/Icon";
import { useStore, store } from "../store/store";
import { isRunning } from "../store/turn";
import { t } from "../texts";
import { AgendaPanel } from "./AgendaPanel";
import { AnswerAll } from "./AnswerAll";
import { Composer } from "./Composer";
import { Meter } from "./Meter";
import { TurnView } from "./TurnView";
import { useGoTo } from "./useGoTo";
import { useStickToEnd } from "./useStickToEnd";
import { Welcome } from "./Welcome";

export function Conversation() {
  const { open, chats, hideTools } = useStore();
  const turns = store.branch();
  const last = turns[turns.length - 1];
  const [place, stuck, jump] = useStickToEnd(`${open?.id}/${last?.id}/${last?.version}/${open?.sent}`);
  const busy = last !== undefined && isRunning(last);
  const chat = open && chats.get(open.id);
  useGoTo(place);
  return (
    <div className="conversation">
      <div className="turns" ref={place} role="log" aria-busy={busy} aria-label={chat?.title ?? t.newChat} tabIndex={0} data-testid="turns">
        {open?.previous && <button type="button" className="quiet" data-testid="earlier" onClick={() => void store.load(open, open.previous!)}>{t.earlier}</button>}
        {turns.length === 0 && !open?.sent && <Welcome />}
        {turns.map((turn) => {
          const siblings = store.siblings(turn);
          return <TurnView key={turn.id} turn={turn} version={turn.version * 100 + siblings.length} siblings={siblings} place={siblings.indexOf(turn)} hideTools={hideTools} />;
        })}
        {open?.sent && !busy && <section className="turn running"><header className="question-head"><div className="user-message" dir="auto">{open.sent}</div></header><p className="faint busy">…</p></section>}
      </div>
      {!stuck && <button type="button" className="jump" onClick={jump}><Icon name="down" size={16} />{t.jump}</button>}
      <AgendaPanel turns={turns} />
      <AnswerAll />
      <Composer key={open?.id ?? ""} running={busy ? last : undefined} />
      <Meter turns={turns} />
    </div>
  );
}
