import { spelled } from "../chat/hidden";
import type { FilesChoice } from "../store/turn";
import { t } from "../texts";
import { Hunks } from "./DiffBox";
import type { FilesPreview } from "../wire";

const MOST = 200; // files in the list

export type Restorable = Pick<FilesPreview, "files" | "omitted">;

// The files that can go back with a chat, and whether they shall.
export function FilesBack({ preview, choice, onChange }: { preview: Restorable; choice: FilesChoice; onChange: (choice: FilesChoice) => void }) {
  const { files, omitted = 0 } = preview;
  if (files.length === 0 && omitted === 0) return null;
  const restore = choice.files === "restore";
  return (
    <>
      <label className="setting"><input type="checkbox" data-testid="restore-files" checked={restore} onChange={(e) => onChange(e.target.checked ? { files: "restore" } : {})} /><span>{t.restoreFiles}</span></label>
      <ul className="preview-effects" data-testid="preview-files">
        {files.slice(0, MOST).map((each) => <li key={each.path}>{t.fileChange[each.change]} <code>{spelled(each.path)}</code>{each.conflict && ` (${t.fileConflict[each.reason ?? "changed"]})`}{each.diff !== undefined && <><Told text={each.diff} /><Hunks text={each.diff} /></>}</li>)}
        {files.length > MOST && <li>{t.moreFiles(files.length - MOST)}</li>}
        {omitted > 0 && <li className="warning" data-testid="files-stay">{t.filesStay(omitted)}</li>}
      </ul>
      {restore && files.some((each) => each.imported) && (
        <label className="setting warning"><input type="checkbox" data-testid="allow-imported" checked={choice.allow_imported === true} onChange={(e) => onChange({ ...choice, allow_imported: e.target.checked })} /><span>{t.allowImported}</span></label>
      )}
      {restore && (omitted > 0 || files.some((each) => each.conflict)) && (
        <label className="setting"><input type="checkbox" data-testid="force-files" checked={choice.force === true} onChange={(e) => onChange({ ...choice, force: e.target.checked })} /><span>{t.forceFiles}</span></label>
      )}
    </>
  );
}

// Who runs the file by itself, and that it can be run or is a link: what stands before the lines of a diff.
function Told({ text }: { text: string }) {
  const head = text.slice(0, Math.max(0, text.indexOf("\n@@ ")) || undefined).split("\n");
  const told = head.filter((line) => line.startsWith("# ") || (/^new (?:file )?mode /.test(line) && !line.endsWith("100644")));
  return told.length === 0 ? null : <p className="warning">{told.map((line) => spelled(line)).join(" · ")}</p>;
}
