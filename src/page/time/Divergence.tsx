import { diffWords } from "../chat/lines";
import { spelled } from "../chat/hidden";
import { t } from "../texts";
import type { ReplayReport } from "../wire";

// The first event that came out differently: as it was stored, and as it came this time.
export function Divergence({ report }: { report: ReplayReport }) {
  const { divergence } = report;
  if (!divergence) return <p className="bad" data-testid="verified">{t.differs}</p>;
  const show = (event: Record<string, unknown> | null): string => (event ? spelled(JSON.stringify(event, null, 2)) : "");
  const parts = diffWords(show(divergence.expected), show(divergence.actual));
  return (
    <div data-testid="verified">
      <p className="bad">{t.differs} {divergence.seq}: {divergence.reason}</p>
      <div className="divergence">
        <section aria-label={t.expected}><h4>{t.expected}</h4>
          {divergence.expected ? <pre tabIndex={0} data-testid="expected">{parts.map((part, i) => part.kind !== "added" && (part.kind === "removed" ? <del key={i} className="removed">{part.text}</del> : part.text))}</pre> : <p className="faint">{t.noEvent}</p>}
        </section>
        <section aria-label={t.actual}><h4>{t.actual}</h4>
          {divergence.actual ? <pre tabIndex={0} data-testid="actual">{parts.map((part, i) => part.kind !== "removed" && (part.kind === "added" ? <ins key={i} className="added">{part.text}</ins> : part.text))}</pre> : <p className="faint">{t.noEvent}</p>}
        </section>
      </div>
    </div>
  );
}
