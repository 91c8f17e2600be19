import { useState } from "react";
import { byNumber, store, useStore } from "../store/store";
import type { TextBlock, Turn } from "../store/turn";
import { t } from "../texts";
import { Diff } from "../chat/Diff";

// All versions of the chat as a tree; two of them can be compared.
export function BranchMap() {
  const { open } = useStore();
  const [picked, setPicked] = useState<string[]>([]);
  if (!open) return null;
  const turns = [...open.turns.values()].sort((a, b) => byNumber(a.id, b.id));
  const shown = new Set(store.branch().map((turn) => turn.id));
  const pick = (id: string): void => setPicked(picked.includes(id) ? picked.filter((each) => each !== id) : [...picked.slice(-1), id]);
  const children = (parent: string | null): Turn[] => turns.filter((turn) => turn.parent === parent || (parent === null && turn.parent !== null && !open.turns.has(turn.parent)));
  const [first, second] = picked.map((id) => open.turns.get(id));
  return (
    <section className="panel" data-testid="branch-map" aria-label={t.branchMap}>
      <h2>{t.branchMap}</h2>
      <Level turns={children(null)} children={children} shown={shown} picked={picked} onPick={pick} />
      {first && second && (
        <div data-testid="comparison"><h3>{t.compare}: {first.id} ↔ {second.id}</h3><Diff before={pathText(open.turns, first)} after={pathText(open.turns, second)} /></div>
      )}
    </section>
  );
}

function Level({ turns, children, shown, picked, onPick }: { turns: Turn[]; children: (parent: string) => Turn[]; shown: Set<string>; picked: string[]; onPick: (id: string) => void }) {
  if (turns.length === 0) return null;
  return (
    <ul className="tree">
      {turns.map((turn) => {
        // A line of turns without a fork stays one level.
        const line = [turn];
        for (let next = children(turn.id); next.length === 1; next = children(line[line.length - 1]!.id)) line.push(next[0]!);
        return (
          <li key={turn.id}>
            {line.map((each) => (
              <div key={each.id} className={shown.has(each.id) ? "node shown" : "node"}>
                <label><input type="checkbox" checked={picked.includes(each.id)} aria-label={`${t.compare} ${each.id}`} onChange={() => onPick(each.id)} /></label>
                <button type="button" className="quiet" data-interaction={each.id} onClick={() => void store.moveHead(store.leafOf(each))}>{each.message || "–"}</button>
                {!shown.has(each.id) && <button type="button" className="quiet" data-testid="remove-branch" data-from={each.id} aria-label={t.removeBranch(each.id)} title={t.removeBranch(each.id)} onClick={() => void store.removeBranch(each)}>×</button>}
              </div>
            ))}
            <Level turns={children(line[line.length - 1]!.id)} children={children} shown={shown} picked={picked} onPick={onPick} />
          </li>
        );
      })}
    </ul>
  );
}

function pathText(turns: Map<string, Turn>, leaf: Turn): string {
  const parts: string[] = [];
  for (let at: Turn | undefined = leaf; at; at = at.parent ? turns.get(at.parent) : undefined) {
    const said = at.blocks.filter((block): block is TextBlock => block.kind === "text").map((block) => block.text).join("\n");
    parts.push(`> ${at.message ?? ""}\n${said}\n`);
  }
  return parts.reverse().join("\n");
}
