import { useEffect, useMemo, useState } from "react";
import { spelled } from "../chat/hidden";
import { Icon } from "../parts/Icon";
import { useBranch } from "../store/cache";
import { showBeside } from "../store/navigation";
import { useSelect } from "../store/state";
import { t } from "../texts";
import { v } from "../texts_of_views";
import type { WorkspaceFiles } from "../wire";
import { get } from "../wire/api";

type Done = "created" | "modified" | "deleted";

// The files that turns of this branch have changed, and all others by a part of their names.
export function FileList({ chat }: { chat: string }) {
  const turns = useBranch();
  const stamp = useSelect(() => turns.reduce((sum, turn) => sum + turn.version, 0));
  const changed = useMemo(() => {
    const files = new Map<string, { done: Done; turn: string }>(); // the last change of each
    for (const turn of turns) {
      for (const event of turn.events) {
        if (event.type !== "FILES_CHANGED") continue;
        for (const change of event.changes) {
          files.delete(change.path);
          files.set(change.path, { done: !change.before ? "created" : !change.after ? "deleted" : "modified", turn: turn.id });
        }
      }
    }
    return [...files].reverse();
  }, [turns, stamp]);
  const [query, setQuery] = useState("");
  const [found, setFound] = useState<WorkspaceFiles | null>(null);
  const [why, setWhy] = useState("");
  useEffect(() => {
    let current = true;
    const timer = setTimeout(() => {
      get<WorkspaceFiles>(`/workspace/files?chat_id=${encodeURIComponent(chat)}&limit=100&q=${encodeURIComponent(query)}`)
        .then((files) => current && (setFound(files), setWhy("")), (error) => current && (setFound(null), setWhy(error instanceof Error ? error.message : String(error))));
    }, query ? 150 : 0);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [chat, query]);
  return (
    <>
      <div className="search-box"><Icon name="search" size={16} /><input data-first type="search" data-testid="find-file" aria-label={v.findFile} placeholder={v.findFile} value={query} onChange={(e) => setQuery(e.target.value)} /></div>
      {!query && changed.length > 0 && (
        <>
          <h3>{v.changedHere}</h3>
          <ul className="plain-list" data-testid="changed-files">
            {changed.map(([path, { done }]) => <li key={path}><FileLine path={path} more={v.fileDone[done]} disabled={done === "deleted"} /></li>)}
          </ul>
        </>
      )}
      <h3>{v.inFolder}</h3>
      {why && <p className="hint">{why}</p>}
      {found?.files.length === 0 && <p className="empty">{t.nothingFound}</p>}
      <ul className="plain-list" data-testid="workspace-files">{found?.files.map((file) => <li key={file.path}><FileLine path={file.path} more={v.bytes(file.size_bytes)} /></li>)}</ul>
      {found && !found.complete && <p className="hint">{v.moreFilesThere}</p>}
    </>
  );
}

function FileLine({ path, more, disabled = false }: { path: string; more: string; disabled?: boolean }) {
  return (
    <button type="button" className="quiet file-line" data-testid="file-line" data-path={path} disabled={disabled} onClick={() => showBeside({ kind: "file", path })}>
      <Icon name="file" size={15} /><span className="path grow">{spelled(path)}</span><span className="faint number">{more}</span>
    </button>
  );
}
