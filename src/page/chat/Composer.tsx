import { ClipboardEvent, DragEvent, useEffect, useRef, useState } from "react";
import { store, useStore } from "../store/store";
import type { Turn } from "../store/turn";
import { t } from "../texts";
import { call, chatPath } from "../wire/api";

const LONG = 20_000; // characters: a paste of more becomes a file

interface Attached {
  id: string;
  filename: string;
}

// Where people write. What is written is kept when they look at another chat, or load the page again.
export function Composer({ running }: { running: Turn | undefined }) {
  const { open, models } = useStore();
  const name = `draft:${open?.id ?? ""}`;
  const [text, setText] = useState(() => localStorage.getItem(name) ?? "");
  const [model, setModel] = useState("");
  const [files, setFiles] = useState<Attached[]>([]);
  const box = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (text) localStorage.setItem(name, text);
    else localStorage.removeItem(name);
    const area = box.current;
    if (area) {
      area.style.height = "auto";
      area.style.height = `${Math.min(area.scrollHeight, window.innerHeight / 3)}px`;
    }
  }, [text, name]);
  useEffect(() => box.current?.focus(), []);

  const send = async (): Promise<void> => {
    const message = text.trim() === "" ? "" : text;
    if (!message) return;
    localStorage.removeItem(name);
    setText("");
    setFiles([]);
    if (!(await store.send(message, model, files.map((each) => each.id)))) setText(message);
  };
  const attach = async (file: File): Promise<void> => {
    const chat = store.open?.id;
    if (!chat) return store.tell(t.attachLater);
    await store.attempt(async () => {
      const form = new FormData();
      form.append("file", file, file.name || "pasted");
      const response = await fetch(`${chatPath(chat)}/files`, { method: "POST", body: form });
      const body = (await response.json()) as Attached & { error?: { message: string } };
      if (!response.ok) throw new Error(body.error?.message);
      setFiles((before) => [...before, body]);
    });
  };
  const onPaste = (e: ClipboardEvent): void => {
    const pasted = e.clipboardData.getData("text");
    const images = [...e.clipboardData.files];
    if (images.length > 0) {
      e.preventDefault();
      images.forEach((file) => void attach(file));
    } else if (pasted.length > LONG && store.open) {
      e.preventDefault();
      store.tell(t.pastedAs("pasted.txt"));
      void attach(new File([pasted], "pasted.txt", { type: "text/plain" }));
    }
  };
  const onDrop = (e: DragEvent): void => {
    e.preventDefault();
    [...e.dataTransfer.files].forEach((file) => void attach(file));
  };
  return (
    <form className="composer" onDrop={onDrop} onDragOver={(e) => e.preventDefault()} onSubmit={(e) => {
      e.preventDefault();
      void send();
    }}>
      {open && open.queue.length > 0 && (
        <ul className="queue" aria-label={t.queued} data-testid="queue">
          {open.queue.map((each) => <Queued key={each.id} chat={open.id} id={each.id} text={each.user_message} />)}
        </ul>
      )}
      {files.length > 0 && (
        <ul className="attachments" data-testid="attachments">
          {files.map((file) => <li key={file.id}>{file.filename} <button type="button" className="quiet" aria-label={t.detach(file.filename)} onClick={() => setFiles(files.filter((each) => each !== file))}>×</button></li>)}
        </ul>
      )}
      <textarea ref={box} rows={1} data-testid="composer" aria-label={t.write} placeholder={t.write} value={text} dir="auto" onPaste={onPaste}
        onChange={(e) => setText(e.target.value)} onKeyDown={(e) => {
          if (e.key === "Enter" && !e.shiftKey && !e.nativeEvent.isComposing) {
            e.preventDefault();
            void send();
          }
        }} />
      <div className="row">
        <button type="button" className="quiet" aria-label={t.attach} disabled={!open} onClick={() => picker.current?.click()}>+</button>
        <input ref={picker} type="file" multiple hidden data-testid="file" onChange={(e) => {
          [...(e.target.files ?? [])].forEach((file) => void attach(file));
          e.target.value = "";
        }} />
        <select aria-label={t.model} data-testid="model" value={model} onChange={(e) => setModel(e.target.value)}>
          <option value="">{t.theModel(models.default)}</option>
          {models.models.map((each) => <option key={each.name}>{each.name}</option>)}
        </select>
        <span className="grow" />
        {running && <button type="button" data-testid="stop" onClick={() => void store.stop(running)}>{t.stop}</button>}
        <button type="submit" className="primary" data-testid="send" disabled={text.trim() === ""}>{t.send}</button>
      </div>
    </form>
  );
}

function Queued({ chat, id, text }: { chat: string; id: string; text: string }) {
  const [value, setValue] = useState(text);
  const path = `${chatPath(chat)}/queue/${id}`;
  return (
    <li>
      <input aria-label={t.queued} value={value} onChange={(e) => setValue(e.target.value)}
        onBlur={() => value !== text && void store.attempt(() => call("PATCH", path, { user_message: value }))} />
      <button type="button" className="quiet" onClick={() => void store.attempt(() => call("DELETE", path))}>{t.removeQueued}</button>
    </li>
  );
}
