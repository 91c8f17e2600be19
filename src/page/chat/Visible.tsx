import { t } from "../texts";
import { partsOf, spelled } from "./hidden";

// A text without hidden parts: hidden characters are spelled out, and long runs of empty lines or blanks are shortened.
export function Visible({ text }: { text: string }) {
  return <>{partsOf(text).map((part, i) => (part.lines + part.blanks === 0 ? spelled(part.text) : <Gap key={i} lines={part.lines} blanks={part.blanks} />))}</>;
}

export function Gap({ lines, blanks = 0 }: { lines: number; blanks?: number }) {
  return <span className="gap" data-testid="gap">{lines > 0 ? t.emptyLines(lines) : t.blanks(blanks)}</span>;
}
