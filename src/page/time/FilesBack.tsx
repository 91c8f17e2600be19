import { useState } from "react";
import { spelled } from "../chat/hidden";
import { AskedFiles, isAsked, navigation } from "../store/navigation";
import * as requests from "../store/requests";
import { useSelect } from "../store/state";
import type { FilesChoice } from "../store/turn";
import { t } from "../texts";
import { v } from "../texts_of_views";
import type { FilesPreview } from "../wire";
import { Hunks } from "./DiffBox";

const MOST = 200; // files in the list

type Restorable = Pick<FilesPreview, "files" | "omitted" | "unseen">;

// The files that can be restored with a chat, and the choice whether to do so.
export function FilesBack({ preview, choice, onChange }: { preview: Restorable; choice: FilesChoice; onChange: (choice: FilesChoice) => void }) {
  const { files, omitted = 0, unseen } = preview;
  if (files.length === 0 && omitted === 0 && !unseen) return null;
  const restore = choice.files === "restore";
  return (
    <>
      <label className="setting"><input type="checkbox" data-testid="restore-files" checked={restore} onChange={(e) => onChange(e.target.checked ? { files: "restore" } : {})} /><span>{v.restoreFiles}</span></label>
      <ul className="preview-effects" data-testid="preview-files">
        {files.slice(0, MOST).map((each) => <li key={each.path}>{v.fileChange[each.change]} <code>{spelled(each.path)}</code>{each.conflict && ` (${v.fileConflict[each.reason ?? "changed"]})`}{each.loses && ` (${v.fileLoses(each.loses.map((lost) => v.fileExtra[lost]).join(", "))})`}{each.diff !== undefined && <><Told text={each.diff} /><Hunks text={each.diff} /></>}</li>)}
        {files.length > MOST && <li>{v.moreFiles(files.length - MOST)}</li>}
        {omitted > 0 && <li className="warning" data-testid="files-stay">{v.filesStay(omitted)}</li>}
        {unseen && <li className="warning">{v.unseen}</li>}
      </ul>
      {restore && files.some((each) => each.imported) && (
        <label className="setting warning"><input type="checkbox" data-testid="allow-imported" checked={choice.allow_imported === true} onChange={(e) => onChange({ ...choice, allow_imported: e.target.checked })} /><span>{v.allowImported}</span></label>
      )}
      {restore && (omitted > 0 || unseen || files.some((each) => each.conflict)) && (
        <label className="setting"><input type="checkbox" data-testid="force-files" checked={choice.force === true} onChange={(e) => onChange({ ...choice, force: e.target.checked })} /><span>{v.forceFiles}</span></label>
      )}
    </>
  );
}

// Warnings from the header of a diff: what runs the file by itself, and that it is executable or a link.
function Told({ text }: { text: string }) {
  const head = text.slice(0, Math.max(0, text.indexOf("\n@@ ")) || undefined).split("\n");
  const told = head.filter((line) => line.startsWith("# ") || (/^new (?:file )?mode /.test(line) && !line.endsWith("100644")));
  return told.length === 0 ? null : <p className="warning">{told.map((line) => spelled(line)).join(" · ")}</p>;
}

// Asks whether to restore the differing files when a turn is undone, another version is shown, or the chat is copied.
export function AskedFilesBox() {
  const asked = useSelect(() => (navigation.askedFiles && isAsked(navigation.askedFiles) ? navigation.askedFiles : null));
  return asked && <Question key={`${asked.what} ${asked.preview.files.map((each) => each.path).join(" ")}`} asked={asked} />;
}

function Question({ asked }: { asked: AskedFiles }) {
  const [choice, setChoice] = useState<FilesChoice>({});
  return (
    <form className="edit" aria-label={asked.what} data-testid="files-box" onSubmit={(e) => {
      e.preventDefault();
      void requests.answerFiles(asked, choice);
    }} onKeyDown={(e) => e.key === "Escape" && navigation.set({ askedFiles: null })}>
      <div className="hint"><FilesBack preview={asked.preview} choice={choice} onChange={setChoice} /></div>
      <div className="row">
        <button type="submit" className="primary" autoFocus data-testid="files-run">{asked.what}</button>
        <button type="button" data-testid="files-cancel" onClick={() => navigation.set({ askedFiles: null })}>{t.cancel}</button>
      </div>
    </form>
  );
}
