import { spelled } from "../chat/hidden";
import type { FilesChoice } from "../store/types";
import { t } from "../texts";
import type { FilePreview } from "../wire";

// The files that can go back with a chat, and whether they shall.
export function FilesBack({ files, choice, onChange }: { files: FilePreview[]; choice: FilesChoice; onChange: (choice: FilesChoice) => void }) {
  if (files.length === 0) return null;
  const restore = choice.files === "restore";
  return (
    <>
      <label className="setting"><input type="checkbox" data-testid="restore-files" checked={restore} onChange={(e) => onChange(e.target.checked ? { files: "restore" } : {})} /><span>{t.restoreFiles}</span></label>
      <ul className="preview-effects" data-testid="preview-files">
        {files.map((each) => <li key={each.path}>{t.fileChange[each.change]} <code>{spelled(each.path)}</code>{each.conflict && ` (${t.fileConflict[each.reason ?? "changed"]})`}</li>)}
      </ul>
      {restore && files.some((each) => each.conflict) && (
        <label className="setting"><input type="checkbox" data-testid="force-files" checked={choice.force === true} onChange={(e) => onChange(e.target.checked ? { files: "restore", force: true } : { files: "restore" })} /><span>{t.forceFiles}</span></label>
      )}
    </>
  );
}
