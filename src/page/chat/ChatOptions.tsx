import { useState } from "react";
import { Dialog } from "../keys/Palette";
import { Icon } from "../parts/Icon";
import { cache, openEntry } from "../store/cache";
import { navigation } from "../store/navigation";
import { addPrompt, prompts, removePrompt } from "../store/prompts";
import * as requests from "../store/requests";
import { t } from "../texts";
import { v } from "../texts_of_views";
import type { ChangeChatRequest } from "../wire";

const EFFORTS = ["", "none", "low", "medium", "high"] as const;
const LONGEST = 4000; // characters of the instructions

// What holds for this chat alone, or for the new one: instructions and effort. And the prompts that this browser keeps.
export function ChatOptions({ onClose }: { onClose: () => void }) {
  const [chat] = useState(cache.open?.id); // another may be shown when this is saved
  const now = openEntry() ?? (requests.settings() as { instructions?: string; effort?: ChangeChatRequest["effort"] });
  const [instructions, setInstructions] = useState(now.instructions ?? "");
  const [effort, setEffort] = useState<string>(now.effort ?? "");
  const save = async (): Promise<void> => {
    if (await requests.configure({ instructions, effort: (effort || null) as ChangeChatRequest["effort"] }, chat)) onClose();
  };
  return (
    <Dialog label={t.chatOptions} onClose={onClose} testid="chat-options">
      <form onSubmit={(e) => {
        e.preventDefault();
        void save();
      }}>
        <div className="row"><h2 className="grow">{t.chatOptions}</h2><button type="button" className="quiet square" aria-label={t.close} onClick={onClose}><Icon name="close" /></button></div>
        <label className="field"><span>{v.chatInstructions}</span><textarea autoFocus rows={5} maxLength={LONGEST} dir="auto" data-testid="chat-instructions" value={instructions} onChange={(e) => setInstructions(e.target.value)} /></label>
        <p className="hint">{v.chatInstructionsHint}</p>
        <label className="field"><span>{v.effort}</span><select data-testid="chat-effort" value={effort} onChange={(e) => setEffort(e.target.value)}>{EFFORTS.map((each) => <option key={each} value={each}>{v.efforts[each]}</option>)}</select></label>
        <div className="row"><button type="submit" className="primary" data-testid="save-options">{v.saveOptions}</button><button type="button" onClick={onClose}>{t.cancel}</button></div>
      </form>
      <Prompts onClose={onClose} />
    </Dialog>
  );
}

let begun = { name: "", text: "" }; // a prompt that is not saved yet, which outlives the dialog

function Prompts({ onClose }: { onClose: () => void }) {
  const { all } = prompts.use("all");
  const [{ name, text }, set] = useState(begun);
  const write = (how: Partial<typeof begun>): void => set((begun = { ...begun, ...how }));
  return (
    <section data-testid="prompts">
      <h3>{v.prompts}</h3>
      <ul className="plain-list">
        {all.map((each) => (
          <li key={each.name} className="row">
            <button type="button" className="quiet grow" data-testid="use-prompt" title={each.text} onClick={() => {
              navigation.set({ wish: each.text, view: "chat" });
              onClose();
            }}><span className="title" dir="auto">{each.name}</span></button>
            <button type="button" className="quiet square small" data-testid="remove-prompt" aria-label={v.removePrompt(each.name)} onClick={() => removePrompt(each.name)}><Icon name="trash" size={15} /></button>
          </li>
        ))}
      </ul>
      <form className="field" onSubmit={(e) => {
        e.preventDefault();
        addPrompt(name.trim(), text);
        write({ name: "", text: "" });
      }}>
        <input aria-label={v.promptName} placeholder={v.promptName} data-testid="prompt-name" value={name} dir="auto" onChange={(e) => write({ name: e.target.value })} />
        <textarea rows={2} aria-label={v.promptText} placeholder={v.promptText} data-testid="prompt-text" value={text} dir="auto" onChange={(e) => write({ text: e.target.value })} />
        <button type="submit" data-testid="save-prompt" disabled={name.trim() === "" || text.trim() === ""}>{v.savePrompt}</button>
      </form>
      <p className="hint">{v.promptsHint}</p>
    </section>
  );
}
