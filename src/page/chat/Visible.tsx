import { t } from "../texts";
import { partsOf, spelled } from "./hidden";

// A text of which nothing is hidden: neither a character, nor its end behind a long run of empty lines or blanks.
export function Visible({ text }: { text: string }) {
  return <>{partsOf(text).map((part, i) => (part.lines + part.blanks === 0 ? spelled(part.text) : <Gap key={i} lines={part.lines} blanks={part.blanks} />))}</>;
}

export function Gap({ lines, blanks = 0 }: { lines: number; blanks?: number }) {
  return <span className="gap" data-testid="gap">{lines > 0 ? t.emptyLines(lines) : t.blanks(blanks)}</span>;
}
