import { Words } from "../chat/Diff";
import { diffWords, Part } from "../chat/lines";
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
        <Side label={t.expected} testid="expected" drops="added" parts={divergence.expected && parts} />
        <Side label={t.actual} testid="actual" drops="removed" parts={divergence.actual && parts} />
      </div>
    </div>
  );
}

function Side({ label, testid, drops, parts }: { label: string; testid: string; drops: Part["kind"]; parts: Part[] | null }) {
  return (
    <section aria-label={label}>
      <h4>{label}</h4>
      {parts === null ? <p className="faint">{t.noEvent}</p> : <pre tabIndex={0} data-testid={testid}><Words parts={parts} drops={drops} /></pre>}
    </section>
  );
}
