import { Icon } from "../parts/Icon";
import { t } from "../texts";
import { detach, retry, Upload } from "./uploads";

// What the next message takes with it, and how far each file has come.
export function Attachments({ chat, uploads }: { chat: string; uploads: Upload[] }) {
  if (uploads.length === 0) return null;
  return (
    <ul className="attachments" data-testid="attachments" aria-label={t.attachments}>
      {uploads.map((each) => (
        <li key={each.key} className={each.failure ? "failed" : ""} data-testid="attachment" data-state={each.failure ? "failed" : each.id ? "there" : "coming"}>
          {each.picture ? <img src={each.picture} alt="" /> : <Icon name="file" size={16} />}
          <span className="title" title={each.name}>{each.name}</span>
          {each.failure && <span className="bad" role="alert">{each.failure}</span>}
          {!each.failure && !each.id && <progress value={each.sent} aria-label={t.uploading(each.name)} />}
          {each.failure && each.file && <button type="button" className="quiet tiny" data-testid="retry-upload" onClick={() => retry(chat, each)}>{t.errorNext.retry}</button>}
          <button type="button" className="quiet tiny" aria-label={t.detach(each.name)} onClick={() => detach(chat, each)}><Icon name="close" size={14} /></button>
        </li>
      ))}
    </ul>
  );
}
