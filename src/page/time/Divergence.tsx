import { diffWords, Part } from "../chat/lines";
import { spelled } from "../chat/hidden";
import { t } from "../texts";
import type { ReplayReport } from "../wire";

// The first event that differs: as it was stored, and as it came this time.
export function Divergence({ report }: { report: ReplayReport }) {
  const { divergence } = report;
  if (!divergence) return <p className="bad" data-testid="verified">{t.differs}</p>;
  const show = (event: Record<string, unknown> | null): string => (event ? spelled(JSON.stringify(event, null, 2)) : "");
  const parts = diffWords(show(divergence.expected), show(divergence.actual));
  return (
    <div data-testid="verified">
      <p className="bad">{t.differs} {divergence.seq}: {divergence.reason}</p>
      <div className="divergence">
        <Side label={t.expected} testid="expected" parts={divergence.expected && parts.filter((part) => part.kind !== "added")} />
        <Side label={t.actual} testid="actual" parts={divergence.actual && parts.filter((part) => part.kind !== "removed")} />
      </div>
    </div>
  );
}

function Side({ label, testid, parts }: { label: string; testid: string; parts: Part[] | null }) {
  return (
    <section aria-label={label}>
      <h4>{label}</h4>
      {parts === null ? <p className="faint">{t.noEvent}</p> : (
        <pre tabIndex={0} data-testid={testid}>
          {parts.map((part, i) => (part.kind === "removed" ? <del key={i} className="removed">{part.text}</del> : part.kind === "added" ? <ins key={i} className="added">{part.text}</ins> : part.text))}
        </pre>
      )}
    </section>
  );
}
