import { Icon } from "../parts/Icon";
import { cache, earlier, useBranch, useOpen } from "../store/cache";
import * as requests from "../store/requests";
import { useSelect } from "../store/state";
import { isRunning, Turn } from "../store/turn";
import { t } from "../texts";
import { v } from "../texts_of_views";

const LONGEST = 140; // characters of a message

// The messages of a long chat, each of which leads to its turn.
export function ChatMap() {
  const turns = useBranch();
  const open = useOpen();
  useSelect(() => [cache.approvals, cache.inputs, cache.version]);
  if (turns.length === 0) return <p className="empty">{v.noTrace}</p>;
  return (
    <>
      {open?.previous && <button type="button" className="quiet" data-testid="map-earlier" onClick={() => void earlier(open)}>{t.earlier}</button>}
      <ol className="chat-map" data-testid="chat-map" aria-label={v.mapTab}>
        {turns.map((turn) => (
          <li key={turn.id}>
            <button type="button" className="quiet" data-testid="map-turn" data-interaction={turn.id} onClick={() => void requests.goTo(turn.chat, turn.id)}>
              <Mark turn={turn} /><span className="grow" dir="auto">{(turn.message || "–").slice(0, LONGEST)}</span>
              <Steps turn={turn} />
            </button>
          </li>
        ))}
      </ol>
    </>
  );
}

function Mark({ turn }: { turn: Turn }) {
  if (turn.status.startsWith("WAITING")) return <span className="dot waiting" role="img" aria-label={t.waiting} />;
  if (isRunning(turn)) return <span className="dot running" role="img" aria-label={t.running} />;
  if (turn.status === "FAILED") return <span className="dot failed" role="img" aria-label={t.failed} />;
  return <span className="dot past" aria-hidden="true" />;
}

function Steps({ turn }: { turn: Turn }) {
  const calls = turn.blocks.filter((block) => block.kind === "tool").length;
  const changed = turn.events.some((event) => event.type === "FILES_CHANGED");
  return <span className="faint number">{calls > 0 && t.toolsHidden(calls)}{changed && <> <Icon name="diff" size={14} /></>}</span>;
}
