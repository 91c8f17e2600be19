import { useEffect, useState } from "react";
import { spelled } from "../chat/hidden";
import { argumentsOf } from "../chat/ApprovalCard";
import { summary, titleOf } from "../chat/ToolCard";
import { useKept } from "../list/kept";
import { Icon } from "../parts/Icon";
import { store } from "../store/store";
import type { Turn } from "../store/turn";
import type { FilesChoice } from "../store/types";
import { t } from "../texts";
import type { EditPreview } from "../wire";
import { call, turnPath } from "../wire/api";
import { FilesBack } from "./FilesBack";

// A message is changed where it stands, with what that supersedes and what stays in the world.
export function EditPreviewBox({ turn, onDone }: { turn: Turn; onDone: () => void }) {
  const [text, setText] = useKept("text", turn.message ?? "");
  const [preview, setPreview] = useState<EditPreview | null>(null);
  const [files, setFiles] = useState<FilesChoice>({});
  useEffect(() => {
    void store.attempt(async () => {
      setPreview(await call<EditPreview>("POST", `${turnPath(turn.chat, turn.id)}/edit`, { new_user_message: turn.message || "x", dry_run: true }));
    });
  }, [turn]);
  const done = (): void => {
    setText(turn.message ?? "");
    onDone();
  };
  const run = async (): Promise<void> => {
    if (await store.edit(turn, text, files)) done();
  };
  return (
    <form className="edit" onSubmit={(e) => {
      e.preventDefault();
      void run();
    }}>
      <textarea autoFocus aria-label={t.edit} data-testid="edit-text" rows={Math.min(12, text.split("\n").length + 1)} value={text} onChange={(e) => setText(e.target.value)}
        dir="auto" onKeyDown={(e) => {
          if (e.key === "Escape") done();
          if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) void run();
        }} />
      {preview && (
        <div className="hint" data-testid="edit-preview">
          <p><Icon name="branch" size={15} /> {t.supersedes(preview.superseded.length)}</p>
          {preview.superseded.length > 1 && <ul className="preview-effects">{preview.superseded.slice(0, 6).map((id) => <li key={id} dir="auto">{store.open?.turns.get(id)?.message?.slice(0, 100) ?? id}</li>)}</ul>}
          <FilesBack files={preview.files} choice={files} onChange={setFiles} />
          {preview.side_effects.length === 0 ? <p><Icon name="check" size={15} /> {t.noSideEffects}</p> : (
            <>
              <p className="warning"><Icon name="alert" size={15} /> {t.sideEffects}</p>
              <ul className="preview-effects" data-testid="side-effects">
                {preview.side_effects.map((each, i) => <li key={i}>{titleOf(each.tool_name)} <code>{spelled(each.path ?? summary(each.tool_name, argumentsOf(each.tool_input)))}</code>{each.failed && ` (${t.failed})`}</li>)}
              </ul>
            </>
          )}
        </div>
      )}
      <div className="row">
        <button type="submit" className="primary" data-testid="edit-run" disabled={text.trim() === ""}>{t.save}</button>
        <button type="button" onClick={done}>{t.cancel}</button>
      </div>
    </form>
  );
}
