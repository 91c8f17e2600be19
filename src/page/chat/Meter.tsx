import { useStore } from "../store/store";
import type { Turn } from "../store/turn";
import { t } from "../texts";
import { ChatCost } from "./Cost";

const NEARLY_FULL = 0.85; // of the context that a request may use

// The conversation's share of the model's context, the tokens used so far, and their cost.
export function Meter({ turns }: { turns: Turn[] }) {
  const { open, chats, models } = useStore();
  const last = turns[turns.length - 1];
  const chat = open && chats.get(open.id);
  const model = models.models.find((each) => each.name === last?.model);
  const told = [...turns].reverse().find((turn) => turn.context > 0);
  const context = told?.context ?? 0;
  const window = told?.window || model?.context_window || 0;
  const limit = told?.limit ?? 0;
  const input = turns.reduce((sum, turn) => sum + turn.input, 0);
  const output = turns.reduce((sum, turn) => sum + turn.output, 0);
  const share = window > 0 ? Math.min(1, context / window) : 0;
  const total = chat?.tokens || input + output;
  if (total === 0) return <div className="meter faint" data-testid="meter" />;
  return (
    <div className="meter faint" data-testid="meter" title={t.meterTip(input, output)}>
      {window > 0 && context > 0 && (
        <>
          <span className={`bar-of ${share > 0.9 ? "full" : share > 0.7 ? "high" : ""}`} role="meter" aria-label={t.contextUsed} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(100 * share)} data-testid="context-bar">
            <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect className="back" width="100" height="4" /><rect className="fill" width={100 * share} height="4" /></svg>
          </span>
          <span>{t.context(context, window)}</span>
          {limit > 0 && context >= NEARLY_FULL * limit && <span data-testid="context-nearly-full">{t.nearlyFull}</span>}
        </>
      )}
      <span>{t.tokens(total)}<span className="sr-only">, {t.meterTip(input, output)}</span></span>
      <ChatCost />
    </div>
  );
}
