import { Icon } from "../parts/Icon";
import { useStore } from "../store/store";
import type { TextBlock, Turn } from "../store/turn";
import { t } from "../texts";
import { useSound } from "./useSound";

// Reads a turn's answer aloud, if the server can make speech.
export function ReadAloud({ turn }: { turn: Turn }) {
  const { models } = useStore();
  const [playing, play, stop] = useSound();
  const text = turn.blocks.filter((block): block is TextBlock => block.kind === "text").map((block) => block.text).join("\n\n");
  if (!models.audio?.speech || text.trim() === "") return null;
  return playing
    ? <button type="button" className="quiet tiny" data-testid="stop-reading" onClick={stop}><Icon name="stop" size={14} /><span>{t.stopReading}</span></button>
    : <button type="button" className="quiet tiny" data-testid="read-aloud" onClick={() => play(text)}><Icon name="speaker" size={14} /><span>{t.readAloud}</span></button>;
}
