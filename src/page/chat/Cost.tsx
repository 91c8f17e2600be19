import { useEffect, useState } from "react";
import { cache, useChat, useOpen } from "../store/cache";
import { useSelect } from "../store/state";
import type { Turn } from "../store/turn";
import { t } from "../texts";
import type { ChatUsage, Models } from "../wire";
import { chatPath, get } from "../wire/api";

type Prices = NonNullable<Models["models"][number]["prices"]>;

const MILLION = 1_000_000;

// As the server counts it: what the provider had in its cache is part of the input, and may cost less. Sub-agents cost too.
function costOf(turn: Turn, price: Prices): number {
  const fresh = turn.input - turn.cacheRead - turn.cacheWrite;
  const own = fresh * price.input + turn.cacheRead * (price.cache_read ?? price.input) + turn.cacheWrite * (price.cache_write ?? price.input) + turn.output * price.output;
  return own / MILLION + turn.blocks.reduce((sum, block) => sum + (block.kind === "tool" && block.nested ? costOf(block.nested, price) : 0), 0);
}

const shown = (cost: number): string => cost.toLocaleString(undefined, { maximumSignificantDigits: cost < 1 ? 2 : 4 });

export function TurnCost({ turn }: { turn: Turn }) {
  const prices = useSelect(() => cache.models.models.find((each) => each.name === turn.model)?.prices);
  if (!prices || turn.input + turn.output === 0) return null;
  return <> · <span data-testid="turn-cost">{t.cost(shown(costOf(turn, prices)))}</span></>;
}

// Of all branches. The server knows those that are not read here.
export function ChatCost() {
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
