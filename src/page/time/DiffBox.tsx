import { useEffect, useRef, useState } from "react";
import { spelled } from "../chat/hidden";
import { attempt } from "../store/state";
import type { Turn } from "../store/turn";
import { t } from "../texts";
import { v } from "../texts_of_views";
import type { InteractionDiff } from "../wire";
import { get, turnPath } from "../wire/api";

const MOST = 2_000; // lines of one file

// A turn's changes of workspace files.
export function DiffBox({ turn }: { turn: Turn }) {
  const [found, setFound] = useState<InteractionDiff | null>(null);
  useEffect(() => {
    let current = true;
    void attempt(async () => {
      const diff = await get<InteractionDiff>(`${turnPath(turn.chat, turn.id)}/diff`);
      if (current) setFound(diff);
    });
    return () => {
      current = false;
    };
  }, [turn]);
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => void place.current?.scrollIntoView({ block: "nearest" }), [found]);
  if (!found) return <p className="faint">…</p>;
  return (
    <div ref={place} className="diff-box" data-testid="turn-diff">
      {found.files.length === 0 && !found.omitted && !found.unseen && <p className="faint">{v.noFilesChanged}</p>}
      {found.files.map((file) => (
        <section key={file.path_base64 ?? file.path} data-path={file.path}>
          <h4><code>{spelled(file.path)}</code> <span className="faint">{v.fileDone[file.change]}</span></h4>
          <Hunks text={file.diff} />
        </section>
      ))}
      {found.omitted !== undefined && <p className="warning" data-testid="diff-omitted">{v.filesOmitted(found.omitted)}</p>}
      {found.unseen && <p className="warning">{v.unseen}</p>}
    </div>
  );
}

// The lines of a unified diff, without its header, which repeats the file's name or says that there are no lines.
export function Hunks({ text }: { text: string }) {
  const from = text.indexOf("\n@@ ");
  if (from < 0) return /^Binary files .*/m.test(text) ? <p className="faint">{v.noLines}</p> : null;
  const lines = text.slice(from + 1).replace(/\n$/, "").split("\n");
  return (
    <pre className="lines" tabIndex={0} aria-label={t.change}>
      {lines.slice(0, MOST).map((line, i) => <span key={i} className={KINDS[line[0] ?? ""] ?? "same"}>{`${spelled(line)}\n`}</span>)}
      {lines.length > MOST && <span className="gap">{v.moreLines(lines.length - MOST)}</span>}
    </pre>
  );
}
const KINDS: Record<string, string> = { "+": "added", "-": "removed", "@": "gap", "\\": "gap" };
