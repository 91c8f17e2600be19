import { Icon } from "../parts/Icon";
import { cache } from "../store/cache";
import { textOf, Turn } from "../store/turn";
import { t } from "../texts";
import { useSound } from "./useSound";

// Reads a turn's answer aloud, where the server can speak.
export function ReadAloud({ turn }: { turn: Turn }) {
  const { models } = cache.use("models");
  const [playing, play, stop] = useSound();
  const text = textOf(turn);
  if (!models.audio?.speech || text.trim() === "") return null;
  return playing
    ? <button type="button" className="quiet tiny" data-testid="stop-reading" onClick={stop}><Icon name="stop" size={14} /><span>{t.stopReading}</span></button>
    : <button type="button" className="quiet tiny" data-testid="read-aloud" onClick={() => play(text)}><Icon name="speaker" size={14} /><span>{t.readAloud}</span></button>;
}
