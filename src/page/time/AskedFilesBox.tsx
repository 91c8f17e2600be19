import { useState } from "react";
import { AskedFiles, store, useStore } from "../store/store";
import type { FilesChoice } from "../store/types";
import { t } from "../texts";
import { FilesBack } from "./FilesBack";

// Asks whether to restore the differing files when a turn is undone, another version is shown, or the chat is copied.
export function AskedFilesBox() {
  const { askedFiles, open } = useStore();
  // Drops a question about an earlier state of the chat.
  if (!askedFiles || askedFiles.chat !== open?.id || askedFiles.from !== (store.branch().pop()?.id ?? null)) return null;
  return <Question key={`${askedFiles.what} ${askedFiles.preview.files.map((each) => each.path).join(" ")}`} asked={askedFiles} />;
}

function Question({ asked }: { asked: AskedFiles }) {
  const [choice, setChoice] = useState<FilesChoice>({});
  return (
    <form className="edit" aria-label={asked.what} data-testid="files-box" onSubmit={(e) => {
      e.preventDefault();
      void store.answerFiles(asked, choice);
    }} onKeyDown={(e) => e.key === "Escape" && store.set({ askedFiles: null })}>
      <div className="hint"><FilesBack preview={asked.preview} choice={choice} onChange={setChoice} /></div>
      <div className="row">
        <button type="submit" className="primary" autoFocus data-testid="files-run">{asked.what}</button>
        <button type="button" data-testid="files-cancel" onClick={() => store.set({ askedFiles: null })}>{t.cancel}</button>
      </div>
    </form>
  );
}
