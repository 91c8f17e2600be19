import { spelled } from "../chat/hidden";
import { v } from "../texts_of_views";

// What a person agrees to: its exact words, and the digest that the agreement names.
export function Shown({ testid, label, words, more, digest }: { testid: string; label: string; words: string; more: string; digest: string }) {
  return (
    <div className="shown" data-testid={testid} role="status">
      <p>{label}</p>
      <pre dir="ltr">{spelled(words)}</pre>
      {more && <p className="hint">{spelled(more)}</p>}
      <p className="hint">{v.digestIs} <code dir="ltr" data-testid="shown-digest">{digest}</code></p>
    </div>
  );
}
