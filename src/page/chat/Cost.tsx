import { useEffect, useState } from "react";
import { useStore } from "../store/store";
import type { Turn } from "../store/turn";
import { t } from "../texts";
import type { ChatUsage, Models } from "../wire";
import { chatPath, get } from "../wire/api";

type Prices = NonNullable<Models["models"][number]["prices"]>;

const MILLION = 1_000_000;

// The cost as the server counts it. Cached tokens are part of the input and may cost less. Sub-agents are included.
function costOf(turn: Turn, price: Prices): number {
  const fresh = turn.input - turn.cacheRead - turn.cacheWrite;
  const own = fresh * price.input + turn.cacheRead * (price.cache_read ?? price.input) + turn.cacheWrite * (price.cache_write ?? price.input) + turn.output * price.output;
  return own / MILLION + turn.blocks.reduce((sum, block) => sum + (block.kind === "tool" && block.nested ? costOf(block.nested, price) : 0), 0);
}

const shown = (cost: number): string => cost.toLocaleString(undefined, { maximumSignificantDigits: cost < 1 ? 2 : 4 });

export function TurnCost({ turn }: { turn: Turn }) {
  const prices = useStore().models.models.find((each) => each.name === turn.model)?.prices;
  if (!prices || turn.input + turn.output === 0) return null;
  return <> · <span data-testid="turn-cost">{t.cost(shown(costOf(turn, prices)))}</span></>;
}

// The cost of all branches, from the server, because the page has not read them all.
export function ChatCost() {
  const { open, chats, models } = useStore();
  const [cost, setCost] = useState<number | null>(null);
  const tokens = (open && chats.get(open.id)?.tokens) ?? 0;
  const priced = models.models.some((each) => each.prices);
  useEffect(() => {
    setCost(null);
    if (!open || !priced || tokens === 0) return undefined;
    let wanted = true;
    void get<ChatUsage>(`${chatPath(open.id)}/usage`).then((usage) => wanted && setCost(usage.all.cost), () => undefined);
    return () => {
      wanted = false;
    };
  }, [open?.id, tokens, priced]);
  return cost === null ? null : <span data-testid="cost">{t.cost(shown(cost))}</span>;
}
