import { branch, cache, lastTurn, useChat } from "../store/cache";
import { useSelect } from "../store/state";
import { t } from "../texts";
import { ChatCost } from "./Cost";

const NEARLY_FULL = 0.85; // of what a request may have

// How much of the model's context the conversation takes, what it has used so far, and what that cost.
export function Meter() {
  const { context, window, limit, input, output } = useSelect(figures);
  const total = useChat()?.tokens || input + output;
  const share = window > 0 ? Math.min(1, context / window) : 0;
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

// In tokens.
function figures() {
  const turns = branch();
  const told = [...turns].reverse().find((turn) => turn.context > 0);
  const model = cache.models.models.find((each) => each.name === lastTurn()?.model);
  return {
    context: told?.context ?? 0,
    window: told?.window || model?.context_window || 0,
    limit: told?.limit ?? 0,
    input: turns.reduce((sum, turn) => sum + turn.input, 0),
    output: turns.reduce((sum, turn) => sum + turn.output, 0),
  };
}
