import { Markdown } from "../markdown/Markdown";
import type { ToolBlock } from "../store/turn";
import { t } from "../texts";
import { Blocks } from "./TurnView";

// A sub-agent's thinking, calls and text, live and afterwards.
export function NestedSteps({ block, question, open }: { block: ToolBlock; question: string; open: boolean }) {
  const nested = block.nested;
  const running = open && block.output === null;
  // The sub-agent's answer is the output of the call.
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
