import { useEffect, useState } from "react";
import { spelled } from "../chat/hidden";
import { shown } from "../chat/Meter";
import { openChat } from "../store/navigation";
import { attempt } from "../store/state";
import { t } from "../texts";
import { v } from "../texts_of_views";
import type { UsageByDay, UsageTotal } from "../wire";
import { get } from "../wire/api";

const SPANS = [7, 30, 90];
const MOST = 20; // chats

const tokensOf = (usage: UsageTotal): number => usage.input_tokens + usage.output_tokens;

// What the chats have used: by day as bars, by model and by chat as tables.
export function Usage() {
  const [span, setSpan] = useState(30);
  const [usage, setUsage] = useState<UsageByDay | null>(null);
  useEffect(() => {
    let current = true;
    void attempt(async () => {
      const found = await get<UsageByDay>(`/usage/days?days=${span}`);
      if (current) setUsage(found);
    });
    return () => {
      current = false;
    };
  }, [span]);
  if (!usage) return <p className="faint">…</p>;
  const most = Math.max(1, ...usage.days.map((each) => tokensOf(each.usage)));
  const models = new Map<string, { tokens: number; cost: number | null }>();
  for (const { usage: day } of usage.days) {
    for (const each of day.models) {
      const known = models.get(each.model) ?? { tokens: 0, cost: 0 };
      models.set(each.model, { tokens: known.tokens + each.input_tokens + each.output_tokens, cost: known.cost === null || each.cost === null ? null : known.cost + each.cost });
    }
  }
  const chats = [...usage.chats].sort((a, b) => tokensOf(b.usage) - tokensOf(a.usage));
  return (
    <section data-testid="usage" aria-label={v.usage}>
      <div className="row"><h2 className="grow">{v.usage}</h2>
        <select aria-label={v.usageSpan} data-testid="usage-span" value={span} onChange={(e) => setSpan(Number(e.target.value))}>{SPANS.map((each) => <option key={each} value={each}>{v.lastDays(each)}</option>)}</select>
      </div>
      {usage.days.length === 0 && <p className="empty">{v.nothingUsed}</p>}
      {!usage.complete && <p className="warning">{v.usageCut}</p>}
      <ol className="usage-days" aria-label={v.byDay}>
        {usage.days.map((each) => (
          <li key={each.day} data-testid="usage-day" data-day={each.day}>
            <span className="number">{each.day}</span><svg className="usage-bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect width={(100 * tokensOf(each.usage)) / most} height="4" /></svg><span className="number">{amount(tokensOf(each.usage), each.usage.cost)}</span>
          </li>
        ))}
      </ol>
      {models.size > 0 && <Table name={t.model} rows={[...models].sort((a, b) => b[1].tokens - a[1].tokens).map(([model, { tokens, cost }]) => [model, tokens, cost])} />}
      {chats.length > 0 && <Table name={t.chat} rows={chats.slice(0, MOST).map((each) => [each.title || each.chat_id, tokensOf(each.usage), each.usage.cost, each.chat_id])} />}
    </section>
  );
}

const amount = (tokens: number, cost: number | null): string => [t.tokens(tokens), cost !== null && cost > 0 ? shown(cost) : ""].filter(Boolean).join(" · ");

function Table({ name, rows }: { name: string; rows: [string, number, number | null, string?][] }) {
  return (
    <table className="usage-table">
      <thead><tr><th>{name}</th><th>{v.usageOf}</th></tr></thead>
      <tbody>
        {rows.map(([what, tokens, cost, chat]) => (
          <tr key={chat ?? what} data-testid="usage-row"><td dir="auto">{chat ? <button type="button" className="quiet tiny" onClick={() => openChat(chat)}>{spelled(what)}</button> : spelled(what)}</td><td className="number">{amount(tokens, cost)}</td></tr>
        ))}
      </tbody>
    </table>
  );
}
