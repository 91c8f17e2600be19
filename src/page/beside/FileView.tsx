import { useEffect, useMemo, useState } from "react";
import { titleOf } from "../chat/values";
import { Markdown } from "../markdown/Markdown";
import { Code, languageOf } from "../parts/Code";
import { CopyButton, Icon } from "../parts/Icon";
import { cache } from "../store/cache";
import { navigation } from "../store/navigation";
import * as requests from "../store/requests";
import { t } from "../texts";
import { v } from "../texts_of_views";
import type { BlamedFile, BlamedLines } from "../wire";
import { chatPath, get } from "../wire/api";
import { Frame } from "./Frame";

const MOST = 300; // ranges of lines that are drawn at first
const PREVIEWED = /\.(html?|svg|md|markdown)$/i;

// A file of the workspace as it is now, and who wrote its lines.
export function FileView({ chat, path }: { chat: string; path: string }) {
  const [file, setFile] = useState<BlamedFile | null>(null);
  const [why, setWhy] = useState("");
  const [preview, setPreview] = useState(false);
  const [again, setAgain] = useState(0);
  useEffect(() => {
    let current = true;
    setWhy("");
    get<BlamedFile>(`${chatPath(chat)}/blame?path=${encodeURIComponent(path)}`)
      .then((found) => current && setFile(found), (error) => current && setWhy(error instanceof Error ? error.message : String(error)));
    return () => {
      current = false;
    };
  }, [chat, path, again]);
  if (why) return <p className="warning" role="alert" data-testid="file-problem">{why}</p>;
  if (!file) return <p className="faint">…</p>;
  return (
    <>
      <div className="row">
        {PREVIEWED.test(path) && <button type="button" className="tiny" data-testid="preview-file" aria-pressed={preview} onClick={() => setPreview(!preview)}><Icon name="eye" size={15} />{t.preview}</button>}
        <button type="button" className="quiet tiny" data-testid="reread-file" onClick={() => setAgain(again + 1)}><Icon name="refresh" size={15} />{v.readAgain}</button>
        <CopyButton text={file.text} />
      </div>
      {(file.lost > 0 || file.unreadable > 0) && <p className="hint" data-testid="blame-gaps">{v.blameGaps(file.lost, file.unreadable)}</p>}
      {preview ? <Preview path={path} text={file.text} /> : <Lines file={file} />}
    </>
  );
}

function Preview({ path, text }: { path: string; text: string }) {
  return /\.(md|markdown)$/i.test(path) ? <Markdown text={text} open={false} /> : <Frame html={text} title={path} />;
}

function Lines({ file }: { file: BlamedFile }) {
  const [all, setAll] = useState(false);
  const lines = useMemo(() => file.text.replace(/\n$/, "").split("\n"), [file]);
  const shown = all ? file.lines : file.lines.slice(0, MOST);
  if (file.lines.length === 0) return <p className="empty">{v.emptyFile}</p>;
  return (
    <div className="blamed" data-testid="blamed">
      {shown.map((range) => (
        <section key={range.from} className={range.by} data-testid="blamed-lines" data-from={range.from} data-to={range.to} data-by={range.by}>
          <Who range={range} />
          <Code text={lines.slice(range.from - 1, range.to).join("\n")} language={languageOf(file.path)} from={range.from} label={v.linesOf(range.from, range.to)} />
        </section>
      ))}
      {shown.length < file.lines.length && <button type="button" className="quiet" onClick={() => setAll(true)}>{v.allParts(file.lines.length)}</button>}
    </div>
  );
}

// The turn and the call that wrote the lines, and who allowed it.
function Who({ range }: { range: BlamedLines }) {
  if (range.by === "others") return <p className="who faint">{v.byOthers}</p>;
  const { approval } = range;
  const title = cache.chats.get(range.chat_id)?.title || range.chat_id;
  return (
    <p className="who">
      <button type="button" className="quiet tiny" data-testid="blamed-turn" title={`${title}, ${range.interaction_id}`} onClick={() => void requests.goTo(range.chat_id, range.interaction_id)}>
        <Icon name="chat" size={14} />{titleOf(range.tool)} · {new Date(range.at).toLocaleString([], { dateStyle: "short", timeStyle: "short" })}
      </button>
      <span className="faint">{range.model} · {v.allowedBy(approval.by)}</span>
      <button type="button" className="quiet tiny" data-testid="blamed-request" onClick={() => void requests.goTo(range.chat_id, range.interaction_id).then(() => navigation.set({ view: "trace", traced: range.interaction_id }))}>{v.whatItSaw}</button>
      {"approval_id" in approval && <span className="faint">{t.scopes[approval.scope]}</span>}
    </p>
  );
}
