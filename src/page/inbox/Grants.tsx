import { useEffect, useState } from "react";
import { spelled } from "../chat/hidden";
import { allTurns, cache, useOpen } from "../store/cache";
import { attempt } from "../store/state";
import { t } from "../texts";
import type { ChatGrants, Grants as Standing } from "../wire";
import { call, chatPath, get } from "../wire/api";

// What was asked when a call was allowed: a chat keeps the digest of its arguments, and its own events have them.
async function inputsOf(digests: Set<string>): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const { open } = cache;
  if (!open || digests.size === 0) return found;
  for await (const turns of allTurns(open)) {
    for (const event of turns.flatMap((turn) => turn.events)) {
      if (event.type === "APPROVAL_REQUIRED" && digests.has(event.arguments_digest)) found.set(event.arguments_digest, event.tool_input);
    }
    if (found.size === digests.size) break;
  }
  return found;
}

interface Grant {
  path: string; // to take it back
  tool: string;
  input?: string;
  means?: string; // of a pattern
  outdated?: boolean; // it covers nothing any more
  uses: number;
  until?: string;
  scope: "always" | "chat";
}

// With the hour, if that is soon.
function dayOf(time: string): string {
  const date = new Date(time);
  return date.getTime() - Date.now() < 2 * 86_400_000 ? date.toLocaleString([], { dateStyle: "short", timeStyle: "short" }) : date.toLocaleDateString();
}

async function readAll(chat: string | undefined): Promise<Grant[]> {
  const parts = (each: Standing["grants"][number] | ChatGrants["grants"][number]) => ({ tool: each.tool_name, means: each.means, outdated: each.outdated, uses: each.uses ?? 0, until: each.expires_at });
  const standing = (await get<Standing>("/grants")).grants.map((each): Grant => ({ ...parts(each), path: `/grants/${each.id}`, input: each.pattern ?? each.tool_input, scope: "always" }));
  if (!chat) return standing;
  const path = `${chatPath(chat)}/grants`;
  const { grants } = await get<ChatGrants>(path);
  const inputs = await inputsOf(new Set(grants.flatMap((each) => (each.pattern ? [] : [each.arguments_digest ?? ""])))).catch(() => new Map<string, string>());
  return [...standing, ...grants.map((each): Grant => ({ ...parts(each), path: `${path}/${each.id}`, input: each.pattern ?? inputs.get(each.arguments_digest ?? ""), scope: "chat" }))];
}

// What has been allowed for longer than once, everywhere and in the chat that is open; each can be taken back.
export function Grants() {
  const [grants, setGrants] = useState<Grant[]>([]);
  const chat = useOpen()?.id;
  const read = (): Promise<void> => readAll(chat).then(setGrants, () => setGrants([]));
  useEffect(() => void read(), [chat]);
  const revoke = async (grant: Grant): Promise<void> => {
    await attempt(() => call("DELETE", grant.path));
    await read();
  };
  return (
    <>
      <h2>{t.grants}</h2>
      {grants.length === 0 && <p className="faint">{t.noGrants}</p>}
      <ul className="plain-list">
        {grants.map((grant) => (
          <li key={grant.path} className="row" data-testid="grant">
            <strong>{grant.tool}</strong> <span className="badge">{t.scopes[grant.scope]}</span> <code className="grow">{spelled(grant.input ?? "")}</code>
            {grant.outdated && <span className="badge" data-testid="grant-outdated" title={t.grantOutdatedHint}>{t.grantOutdated}</span>}
            <span className="faint" data-testid="grant-use">{t.usedTimes(grant.uses)}{grant.until && `, ${t.until(dayOf(grant.until))}`}</span>
            <button type="button" aria-label={t.revokeOf(grant.tool)} onClick={() => void revoke(grant)}>{t.revoke}</button>
            {!grant.means && <p className="hint means" data-testid="grant-means">{grant.input ? t.allowEqualMeans : t.allowUnknownMeans}</p>}
            {grant.means && <p className="hint means" data-testid="grant-means">{spelled(grant.means)}</p>}
          </li>
        ))}
      </ul>
    </>
  );
}
