import { useEffect, useState } from "react";
import { branch, cache, lastTurn, useChat, useOpen } from "../store/cache";
import { useSelect } from "../store/state";
import type { Turn } from "../store/turn";
import { t } from "../texts";
import type { ChatUsage, Models } from "../wire";
import { chatPath, get } from "../wire/api";

const NEARLY_FULL = 0.85; // of the context that a request may use

// The conversation's share of the model's context, the tokens used so far, and their cost.
export function Meter() {
  const { context, window, limit, input, output } = useSelect(figures);
  const isWhole = useOpen()?.previous === null; // all turns are read
  const total = useChat()?.tokens || input + output;
  const tip = isWhole ? t.meterTip(input, output) : undefined;
  const share = window > 0 ? Math.min(1, context / window) : 0;
  if (total === 0) return <div className="meter faint" data-testid="meter" />;
  return (
    <div className="meter faint" data-testid="meter" title={tip}>
      {window > 0 && context > 0 && (
        <>
          <span className={`bar-of ${share > 0.9 ? "full" : share > 0.7 ? "high" : ""}`} role="meter" aria-label={t.contextUsed} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(100 * share)} data-testid="context-bar">
            <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect className="back" width="100" height="4" /><rect className="fill" width={100 * share} height="4" /></svg>
          </span>
          <span>{t.context(context, window)}</span>
          {limit > 0 && context >= NEARLY_FULL * limit && <span data-testid="context-nearly-full">{t.nearlyFull}</span>}
        </>
      )}
      <span>{t.tokens(total)}{tip && <span className="sr-only">, {tip}</span>}</span>
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

type Prices = NonNullable<Models["models"][number]["prices"]>;

const MILLION = 1_000_000;

// The cost as the server counts it. Cached tokens are part of the input and may cost less. Sub-agents are included.
function costOf(turn: Turn, price: Prices): number {
  const fresh = turn.input - turn.cacheRead - turn.cacheWrite;
  const own = fresh * price.input + turn.cacheRead * (price.cache_read ?? price.input) + turn.cacheWrite * (price.cache_write ?? price.input) + turn.output * price.output;
  return own / MILLION + turn.blocks.reduce((sum, block) => sum + (block.kind === "tool" && block.nested ? costOf(block.nested, price) : 0), 0);
}

export const shown = (cost: number): string => cost.toLocaleString(undefined, { maximumSignificantDigits: cost < 1 ? 2 : 4 });

export function TurnCost({ turn }: { turn: Turn }) {
  const prices = useSelect(() => cache.models.models.find((each) => each.name === turn.model)?.prices);
  if (!prices || turn.input + turn.output === 0) return null;
  return <> · <span data-testid="turn-cost">{t.cost(shown(costOf(turn, prices)))}</span></>;
}

// The cost of all branches, from the server, because the page has not read them all.
function ChatCost() {
  const chat = useOpen()?.id;
  const [cost, setCost] = useState<number | null>(null);
  const tokens = useChat()?.tokens ?? 0;
  const priced = useSelect(() => cache.models.models.some((each) => each.prices));
  useEffect(() => {
    setCost(null);
    if (!chat || !priced || tokens === 0) return undefined;
    let wanted = true;
    void get<ChatUsage>(`${chatPath(chat)}/usage`).then((usage) => wanted && setCost(usage.all.cost), () => undefined);
    return () => {
      wanted = false;
    };
  }, [chat, tokens, priced]);
  return cost === null ? null : <span data-testid="cost">{t.cost(shown(cost))}</span>;
}
