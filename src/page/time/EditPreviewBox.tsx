import { useEffect, useState } from "react";
import { spelled } from "../chat/hidden";
import { filesOf, mentionsIn } from "../chat/uploads";
import { argumentsOf, patchedPaths, summary, titleOf } from "../chat/values";
import { Icon } from "../parts/Icon";
import { cache, lastTurn } from "../store/cache";
import { attempt, tell, useSelect } from "../store/state";
import * as requests from "../store/requests";
import type { FilesChoice, Turn } from "../store/turn";
import { useWords } from "../store/words";
import { t } from "../texts";
import { v } from "../texts_of_views";
import type { EditPreview, FileInfo } from "../wire";
import { ApiError, call, chatPath, turnPath } from "../wire/api";
import { FilesBack } from "./FilesBack";

// Edits a message in place, and shows the turns that this supersedes and the effects that stay.
export function EditPreviewBox({ turn, onDone }: { turn: Turn; onDone: () => void }) {
  const [text, setText] = useWords(turn.chat, `${turn.chat}/${turn.id}`, "text", turn.message ?? "");
  const [preview, setPreview] = useState<EditPreview | null>(null);
  const [files, setFiles] = useState<FilesChoice>({});
  const end = useSelect(() => `${lastTurn()?.id} ${lastTurn()?.status}`); // it goes on, or moves, while people write
  const look = (): Promise<EditPreview> => call<EditPreview>("POST", `${turnPath(turn.chat, turn.id)}/edit`, { new_user_message: turn.message || "x", dry_run: true });
  useEffect(() => void attempt(async () => setPreview(await look())), [turn, end]);
  const stays = preview ? effectsThatStay(preview, files) : [];
  const done = (): void => {
    setText(turn.message ?? "");
    onDone();
  };
  const run = async (): Promise<void> => {
    await attempt(async () => {
      const now = await look();
      if (preview && whatGoes(now) !== whatGoes(preview)) return setPreview(now), tell(v.previewMoved);
      if (await requests.edit(turn, text, { ...files, ...(await attachmentsOf(turn, text)) })) done();
    });
  };
  return (
    <form className="edit" onSubmit={(e) => {
      e.preventDefault();
      void run();
    }}>
      <textarea autoFocus aria-label={t.edit} data-testid="edit-text" onFocus={(e) => e.target.setSelectionRange(e.target.value.length, e.target.value.length)} rows={Math.min(12, text.split("\n").length + 1)} value={text} onChange={(e) => setText(e.target.value)}
        dir="auto" onKeyDown={(e) => {
          if (e.key === "Escape") done();
          if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) void run();
        }} />
      {preview && (
        <div className="hint" data-testid="edit-preview">
          <p><Icon name="branch" size={15} /> {v.supersedes(preview.superseded.length)}</p>
          {preview.superseded.length > 1 && <ul className="preview-effects">{preview.superseded.slice(0, 6).map((id) => <li key={id} dir="auto">{cache.open?.turns.get(id)?.message?.slice(0, 100) ?? id}</li>)}</ul>}
          <FilesBack preview={preview} choice={files} onChange={setFiles} />
          {stays.length === 0 ? <p><Icon name="check" size={15} /> {v.noSideEffects}</p> : (
            <>
              <p className="warning"><Icon name="alert" size={15} /> {v.sideEffects}</p>
              <ul className="preview-effects" data-testid="side-effects">
                {stays.map((each, i) => <li key={i}>{each.what} <code>{spelled(each.on)}</code>{each.failed && ` (${t.failed})`}</li>)}
              </ul>
            </>
          )}
        </div>
      )}
      <div className="row">
        <button type="submit" className="primary" data-testid="edit-run" disabled={text.trim() === ""}>{v.save}</button>
        <button type="button" onClick={done}>{t.cancel}</button>
      </div>
    </form>
  );
}

// What an edit supersedes and leaves behind. If that is no longer what is shown, nothing runs before people have seen it.
const whatGoes = ({ superseded, side_effects }: EditPreview): string => JSON.stringify([superseded, side_effects]);

// The files that the new message names, as they are now, and those that the old one had without naming them. Nothing if neither names any.
async function attachmentsOf(turn: Turn, text: string): Promise<{ attachments?: string[] }> {
  const before = mentionsIn(turn.message ?? ""), now = mentionsIn(text);
  if (before.length + now.length === 0) return {};
  const has = (paths: string[], name: string): boolean => paths.some((path) => path === name || path.endsWith(`/${name}`));
  const ids: string[] = [], gone: string[] = [];
  for (const path of now) {
    try {
      ids.push((await call<FileInfo>("POST", `${chatPath(turn.chat)}/workspace/files`, { path })).id);
    } catch (error) {
      if (!(error instanceof ApiError && (error.status === 404 || error.status === 400))) throw error;
      gone.push(path);
    }
  }
  const kept = turn.attachments.filter((each) => !has(before, each.filename) || has(gone, each.filename));
  for (const path of gone.filter((each) => !kept.some((one) => has([each], one.filename)))) {
    const named = (await filesOf(turn.chat)).filter((each) => each.filename === path).pop();
    if (named) ids.push(named.id);
    else if (/[./]/.test(path)) tell(t.noSuchFile(path));
  }
  return { attachments: [...new Set([...kept.map((each) => each.id), ...ids])] };
}

const OF_FILES = ["write_file", "edit_file", "apply_patch", "delete_file"];

interface Effect {
  what: string; // the calls
  on: string;
  failed: boolean;
}

// The turns' effects outside of the chat that stay, a line for each file. Leaves out restored files and files that are gone again.
function effectsThatStay(preview: EditPreview, choice: FilesChoice): Effect[] {
  const plain = (path: string): string => path.replace(/^(?:\.\/)+/, "");
  const known = new Map(preview.files.map((each) => [plain(each.path), each]));
  const ofFile = new Map<string, { effect: Effect; last: string }>();
  const effects: Effect[] = [];
  const byFile = preview.side_effects.flatMap((each) =>
    each.tool_name === "apply_patch" ? patchedPaths(argumentsOf(each.tool_input)).map((path) => ({ ...each, path })) : [each]);
  for (const each of byFile) {
    const path = each.path !== null && OF_FILES.includes(each.tool_name) && !each.failed ? plain(each.path) : null;
    const before = path !== null && ofFile.get(path);
    const title = titleOf(each.tool_name);
    if (before) {
      if (!before.effect.what.split(", ").includes(title)) before.effect.what += `, ${title}`;
      before.last = each.tool_name;
      continue;
    }
    const effect = { what: title, on: each.path ?? summary(each.tool_name, argumentsOf(each.tool_input)), failed: each.failed };
    effects.push(effect);
    if (path !== null) ofFile.set(path, { effect, last: each.tool_name });
  }
  for (const [path, { effect, last }] of ofFile) {
    const file = known.get(path);
    const goesBack = file ? choice.files === "restore" && (!file.conflict || choice.force === true) && (!file.imported || choice.allow_imported === true) : last === "delete_file";
    if (goesBack) effects.splice(effects.indexOf(effect), 1);
  }
  return effects;
}
