import { useState } from "react";
import { AskedFiles, isAsked, navigation } from "../store/navigation";
import * as requests from "../store/requests";
import { useSelect } from "../store/state";
import type { FilesChoice } from "../store/turn";
import { t } from "../texts";
import { FilesBack } from "./FilesBack";

// A turn is taken back, another version shown, the chat copied: with the files that differ there, or without.
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
