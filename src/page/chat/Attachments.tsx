import { MouseEvent, ReactNode, useEffect, useState } from "react";
import { Icon } from "../parts/Icon";
import { showBeside } from "../store/navigation";
import { attempt } from "../store/state";
import type { Attachment } from "../store/turn";
import { t } from "../texts";
import { chatPath, request, save } from "../wire/api";
import { spelled } from "./hidden";
import { detach, retry, Upload } from "./uploads";

// The files of the next message, with the progress of each upload.
export function Attachments({ chat, uploads }: { chat: string; uploads: Upload[] }) {
  if (uploads.length === 0) return null;
  return (
    <ul className="attachments" data-testid="attachments" aria-label={t.attachments}>
      {uploads.map((each) => (
        <li key={each.key} className={each.failure ? "failed" : ""} data-testid="attachment" data-state={each.failure ? "failed" : each.id ? "there" : "coming"}>
          <button type="button" className="quiet tiny title" data-testid="look-at" title={spelled(each.name)} disabled={!each.id} onClick={() => each.id && showBeside({ kind: "given", title: each.name, id: each.id, type: each.file?.type ?? "" })}>
            {each.picture ? <img src={each.picture} alt="" /> : <Icon name="file" size={16} />}<span className="title">{spelled(each.name)}</span>
          </button>
          {each.failure && <span className="bad" role="alert">{each.failure}</span>}
          {!each.failure && !each.id && <progress value={each.sent} aria-label={t.uploading(each.name)} />}
          {each.failure && !each.isFinal && (each.file || each.path) && <button type="button" className="quiet tiny" data-testid="retry-upload" onClick={() => retry(chat, each)}>{t.errorNext.retry}</button>}
          <button type="button" className="quiet tiny" aria-label={t.detach(each.name)} onClick={() => detach(chat, each)}><Icon name="close" size={14} /></button>
        </li>
      ))}
    </ul>
  );
}

// Files sent with a message or made by a tool. Pictures are shown, and every file can be saved.
export function GivenFiles({ chat, files, label, className }: { chat: string; files: Attachment[]; label: string; className: string }) {
  if (files.length === 0) return null;
  return <ul className={`attachments ${className}`} data-testid="given-files" aria-label={label}>{files.map((each) => <li key={each.id}><Given chat={chat} file={each} /></li>)}</ul>;
}

// A link that saves the server's file at this path under this name.
export function SaveLink({ path, name, title, children }: { path: string; name: string; title?: string; children: ReactNode }) {
  const onClick = (e: MouseEvent): void => {
    e.preventDefault();
    void attempt(() => save(path, name));
  };
  return <a href={path} download={name} title={title} dir="auto" onClick={onClick} onAuxClick={(e) => e.button === 1 && onClick(e)}>{children}</a>;
}

function Picture({ path, alt }: { path: string; alt: string }) {
  const [address, setAddress] = useState<string>();
  useEffect(() => {
    const stop = new AbortController();
    let made = "";
    request("GET", path, undefined, stop.signal).then((answer) => answer.blob())
      .then((picture) => setAddress((made = URL.createObjectURL(picture))), () => undefined); // its name is shown anyway
    return () => {
      stop.abort();
      URL.revokeObjectURL(made);
    };
  }, [path]);
  return <img src={address} alt={alt} />;
}

function Given({ chat, file }: { chat: string; file: Attachment }) {
  const path = `${chatPath(chat)}/files/${encodeURIComponent(file.id)}`;
  const isPicture = /^image\/(png|jpeg|gif|webp|avif)$/.test(file.mime_type);
  return (
    <>
      <SaveLink path={path} name={file.filename} title={file.filename}>{isPicture ? <Picture path={path} alt={file.filename} /> : <Icon name="file" size={16} />}<span className="title">{spelled(file.filename)}</span></SaveLink>
      <button type="button" className="quiet square small" data-testid="look-at-given" aria-label={t.lookAt(file.filename)} title={t.lookAt(file.filename)} onClick={() => showBeside({ kind: "given", title: file.filename, id: file.id, type: file.mime_type })}><Icon name="panel" size={15} /></button>
      {file.note && <span className="hint" data-testid="file-note">{file.note}</span>}
    </>
  );
}
