import { useEffect, useState } from "react";
import { SaveLink } from "../chat/Attachments";
import { spelled } from "../chat/hidden";
import { Icon } from "../parts/Icon";
import { attempt } from "../store/state";
import { t } from "../texts";
import type { ChatFiles, FileInfo } from "../wire";
import { call, chatPath, get } from "../wire/api";

// The files of a chat: what people attached, and what the agent saved.
export function Files({ chat, stamp }: { chat: string; stamp: string }) {
  const [files, setFiles] = useState<FileInfo[]>([]);
  const [asked, setAsked] = useState<string | null>(null); // the file of which it is asked whether it shall go
  const path = `${chatPath(chat)}/files`;
  const read = (): Promise<void> => get<ChatFiles>(path).then((found) => setFiles(found.files), () => setFiles([]));
  useEffect(() => void read(), [path, stamp]);
  const remove = async (file: FileInfo): Promise<void> => {
    setAsked(null);
    await attempt(() => call("DELETE", `${path}/${file.id}`));
    await read();
  };
  if (files.length === 0) return null;
  return (
    <>
      <h2>{t.files}</h2>
      <ul className="plain-list">
        {files.map((file) => (
          <li key={file.id} className="row" data-testid="chat-file">
            <SaveLink path={`${path}/${file.id}`} name={file.filename}>{spelled(file.filename)}</SaveLink> <span className="faint grow">{t.bytes(file.size_bytes)}</span>
            {asked !== file.id ? (
              <button type="button" className="quiet square small" data-testid="remove-file" aria-label={`${t.remove}: ${file.filename}`} title={t.remove} onClick={() => setAsked(file.id)}><Icon name="close" size={14} /></button>
            ) : (
              <span className="row" role="alertdialog" aria-label={t.removeFile} onKeyDown={(e) => e.key === "Escape" && setAsked(null)}>
                <span className="bad">{t.removeFile}</span>
                <button type="button" className="danger" data-testid="remove-file-sure" onClick={() => void remove(file)}>{t.remove}</button>
                <button type="button" autoFocus data-testid="keep-file" onClick={() => setAsked(null)}>{t.cancel}</button>
              </span>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}
