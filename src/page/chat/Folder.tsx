import { useEffect, useId, useState } from "react";
import { Icon } from "../parts/Icon";
import { useChat, useOpen } from "../store/cache";
import * as requests from "../store/requests";
import { useSelect } from "../store/state";
import { t } from "../texts";

// A field for the folder that the chat works in, with those of other chats to choose from.
export function FolderField({ folder }: { folder: string }) {
  const [text, setText] = useState(folder);
  const [why, setWhy] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const known = useSelect(requests.knownFolders);
  const id = useId();
  useEffect(() => setText(folder), [folder]);
  const use = async (path: string): Promise<void> => {
    if (busy || path === "") return;
    setBusy(true);
    setWhy(await requests.workIn(path));
    setBusy(false);
  };
  return (
    <form className="folder-field" onSubmit={(e) => {
      e.preventDefault();
      void use(text.trim());
    }}>
      <label className="faint" htmlFor={id}>{t.worksIn}</label>
      <input id={id} list={`${id}-known`} spellCheck={false} autoComplete="off" data-testid="folder" value={text} aria-invalid={why !== null} aria-describedby={why !== null ? `${id}-why` : undefined}
        onChange={(e) => {
          setText(e.target.value);
          setWhy(null);
        }} />
      <datalist id={`${id}-known`}>{known.map((each) => <option key={each} value={each} />)}</datalist>
      <button type="submit" data-testid="use-folder" disabled={busy || text.trim() === "" || text.trim() === folder}>{t.useFolder}</button>
      {why !== null && <p id={`${id}-why`} className="bad" role="alert" data-testid="folder-error">{why}</p>}
    </form>
  );
}

// Says that the chat's folder is not there any more, and asks where it is now.
export function FolderGone() {
  const id = useOpen()?.id;
  const folder = useChat()?.workspace;
  const { gone } = requests.folders.use("gone");
  useEffect(() => {
    if (id && folder) void requests.findFolder(id);
  }, [id, folder]);
  if (!id || !folder || gone !== id) return null;
  return (
    <section className="card approval folder-gone" role="status" data-testid="folder-gone" aria-label={t.folderGone}>
      <p>{t.folderGone} <code>{folder}</code></p>
      <FolderField folder={folder} />
    </section>
  );
}

// The folder of the chat, for its head: only if chats work in several.
export function FolderName() {
  const folder = useSelect(requests.workspace);
  const known = useSelect(requests.knownFolders);
  const open = useOpen();
  if (!open || !folder || known.every((each) => each === folder)) return null;
  return <span className="chat-folder faint" data-testid="chat-folder" title={`${t.worksIn} ${folder}`}><Icon name="folder" size={14} /><span className="sr-only">{t.worksIn} </span>{requests.folderName(folder, known)}</span>;
}
