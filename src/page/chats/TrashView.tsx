import { useEffect, useState } from "react";
import { ago, useNow } from "../parts/time";
import { Icon } from "../parts/Icon";
import { cache } from "../store/cache";
import * as requests from "../store/requests";
import { attempt, tell, useSelect } from "../store/state";
import { t } from "../texts";
import { v } from "../texts_of_views";
import type { Trash } from "../wire";
import { get } from "../wire/api";

// Deleted chats, which can be restored.
export function TrashView() {
  const count = useSelect(() => cache.chats.size);
  const [trash, setTrash] = useState<Trash["entries"] | null>(null);
  const now = useNow(true, 30_000);
  useEffect(() => void attempt(async () => setTrash((await get<Trash>("/trash")).entries.slice().reverse())), [count]);
  const restore = (entry: Trash["entries"][number]): void => void attempt(async () => {
    await requests.restore(entry.id);
    setTrash((before) => before && before.filter((each) => each !== entry));
    tell(v.restored(entry.title || entry.chat_id));
  });
  return (
    <section className="panel narrow" data-testid="trash" aria-label={t.trash}>
      <h2>{t.trash}</h2>
      <p className="hint">{v.trashHint}</p>
      {trash?.length === 0 && <p className="empty">{v.trashEmpty}</p>}
      <ul className="plain-list">
        {trash?.map((each) => (
          <li key={each.id} className="row line" data-testid="trash-entry" data-chat={each.chat_id}>
            <Icon name="chat" /><span className="title" dir="auto">{each.title || each.chat_id}</span>
            <span className="faint">{v.deletedAgo(ago(each.deleted_at, now))}</span>
            <button type="button" data-testid="restore" onClick={() => restore(each)}><Icon name="undo" size={15} />{v.restore}</button>
          </li>
        ))}
      </ul>
    </section>
  );
}
