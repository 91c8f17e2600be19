import { memo } from "react";
import { duration } from "../parts/duration";
import { Icon } from "../parts/Icon";
import { useNow } from "../parts/hooks";
import type { TextBlock } from "../store/turn";
import { t } from "../texts";
import { useFold } from "./folding";

// What the model thought, folded; how long it has thought so far, or did.
export const Thinking = memo(function Thinking({ block, id, open }: { block: TextBlock; id: string; version: number; open: boolean }) {
  const [shown, toggle] = useFold(`thinking/${id}`, false, true);
  const still = open && block.to === 0;
  const now = useNow(still, 200);
  const taken = block.from > 0 ? (still ? now : block.to || now) - block.from : 0;
  return (
    <div className="thinking" data-testid="thinking">
      <button type="button" className={`quiet ${still ? "glow" : ""}`} aria-expanded={shown} onClick={toggle}>
        <Icon name="thinking" size={15} />
        <span>{still ? t.thinking : taken > 0 ? t.thoughtFor(duration(taken)) : t.thought}</span>
        {still && taken > 0 && <span className="number" data-testid="thinking-time" aria-hidden="true">{duration(Math.max(1000, taken))}</span>}
        <Icon name={shown ? "down" : "forward"} size={13} />
      </button>
      {shown && <div className="thinking-text" dir="auto">{block.text}</div>}
    </div>
  );
});
