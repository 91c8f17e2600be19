import { useEffect, useState } from "react";
import { store } from "../store/store";
import { t } from "../texts";
import type { ChatFiles, FileInfo } from "../wire";
import { call, chatPath, get } from "../wire/api";

// The files of a chat: what people attached, and what the agent saved.
export function Files({ chat, stamp }: { chat: string; stamp: string }) {
  const [files, setFiles] = useState<FileInfo[]>([]);
  const path = `${chatPath(chat)}/files`;
  const read = (): Promise<void> => get<ChatFiles>(path).then((found) => setFiles(found.files), () => setFiles([]));
  useEffect(() => void read(), [path, stamp]);
  const remove = async (file: FileInfo): Promise<void> => {
    await store.attempt(() => call("DELETE", `${path}/${file.id}`));
    await read();
  };
  if (files.length === 0) return null;
  return (
    <>
      <h2>{t.files}</h2>
      <ul className="plain-list">
        {files.map((file) => (
          <li key={file.id} className="row" data-testid="chat-file">
            <a href={`${path}/${file.id}`} download={file.filename} dir="auto">{file.filename}</a> <span className="faint grow">{t.bytes(file.size_bytes)}</span>
            <button type="button" className="quiet" aria-label={`${t.remove}: ${file.filename}`} onClick={() => void remove(file)}>×</button>
          </li>
        ))}
      </ul>
    </>
  );
}
