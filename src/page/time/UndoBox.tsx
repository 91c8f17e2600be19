import { useState } from "react";
import { store } from "../store/store";
import type { FilesChoice } from "../store/types";
import { t } from "../texts";
import type { FilePreview } from "../wire";
import { FilesBack } from "./FilesBack";

// The last turn is taken back: with the files that it changed, or without.
export function UndoBox({ files }: { files: FilePreview[] }) {
  const [choice, setChoice] = useState<FilesChoice>({});
  return (
    <form className="edit" aria-label={t.undoTurn} data-testid="undo-box" onSubmit={(e) => {
      e.preventDefault();
      void store.undo(choice);
    }} onKeyDown={(e) => e.key === "Escape" && store.set({ undoing: null })}>
      <div className="hint"><FilesBack files={files} choice={choice} onChange={setChoice} /></div>
      <div className="row">
        <button type="submit" className="primary" autoFocus data-testid="undo-run">{t.undoTurn}</button>
        <button type="button" onClick={() => store.set({ undoing: null })}>{t.cancel}</button>
      </div>
    </form>
  );
}
