import { createContext, useContext } from "react";
import { Markdown } from "../markdown/Markdown";
import type { ToolBlock, Turn } from "../store/turn";
import { t } from "../texts";

// Draws the blocks of a turn. A card is one of these blocks, so it gets the way to draw them from outside.
export const BlocksOf = createContext<(props: { turn: Turn; running: boolean }) => JSX.Element>(() => <></>);

// An agent that works for a call: its own thinking, calls and words, while they come and afterwards.
export function NestedSteps({ block, question, open }: { block: ToolBlock; question: string; open: boolean }) {
  const Blocks = useContext(BlocksOf);
  const { nested } = block;
  const running = open && block.output === null;
  // Its answer is what the call gives back.
  const answered = nested?.blocks.some((each) => each.kind === "text" && each.final) ?? false;
  return (
    <section className="nested" data-testid="nested" aria-label={t.nested}>
      <p className="nested-question" dir="auto">{question}</p>
      {nested && <Blocks turn={nested} running={running} />}
      {running && <p className="faint busy">…</p>}
      {block.output !== null && !answered && (block.failed ? <p className="bad">{block.output}</p> : <Markdown text={block.output} open={false} />)}
      {nested && nested.input + nested.output > 0 && <p className="hint">{t.tokens(nested.input + nested.output)}</p>}
    </section>
  );
}
