import { diff } from "./lines";
import { spelled } from "./hidden";

const SIGN = { same: " ", added: "+", removed: "−", gap: " " };

export function Diff({ before, after }: { before: string; after: string }) {
  return (
    <pre className="lines" tabIndex={0}>
      {diff(before, after).map((line, i) => (
        <span key={i} className={line.kind}>{`${SIGN[line.kind]} ${spelled(line.text)}\n`}</span>
      ))}
    </pre>
  );
}
