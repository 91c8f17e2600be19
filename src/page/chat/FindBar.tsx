import { RefObject, useEffect, useState } from "react";
import type { ListWindow } from "../list/window";
import { allTurns, need } from "../store/cache";
import { navigation } from "../store/navigation";
import type { OpenChat } from "../store/open";
import { attempt } from "../store/state";
import type { Turn } from "../store/turn";
import { t } from "../texts";
import { v } from "../texts_of_views";
import { pieces } from "./rows";

const BELOW = 120; // pixels from the upper edge to a hit

interface Props {
  chat: OpenChat;
  window: ListWindow;
  root: RefObject<HTMLElement>;
  stamp: string; // changes when other rows are drawn
}

// The browser searches only the document; this searches the whole chat.
export function FindBar({ chat, window, root, stamp }: Props) {
  const [query, setQuery] = useState("");
  const [hits, setHits] = useState<Hit[]>([]);
  const [at, setAt] = useState(-1);
  const [searching, setSearching] = useState(false);
  const words = query.toLowerCase();
  useEffect(() => {
    setHits([]);
    setAt(-1);
    if (words.trim() === "") return undefined;
    let stopped = false;
    const search = async (): Promise<void> => {
      setSearching(true);
      const found: Hit[] = [];
      await attempt(async () => {
        for await (const turns of allTurns(chat)) {
          if (stopped) return;
          for (const turn of turns) found.push(...hitsIn(turn, words));
        }
      });
      if (stopped) return;
      setSearching(false);
      setHits(found);
      if (found.length > 0) void go(found, 0);
    };
    const timer = setTimeout(() => void search(), 200);
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [words, chat]);

  const go = async (among: Hit[], to: number): Promise<void> => {
    const index = (to + among.length) % among.length;
    const hit = among[index];
    if (!hit) return;
    setAt(index);
    const turn = chat.turns.get(hit.turn);
    if (turn && !turn.held) await need(turn);
    // The row is drawn in the next frame.
    requestAnimationFrame(() => {
      window.reveal(hit.key, BELOW);
      const row = rowOf(root.current, hit.key);
      const fold = row?.querySelector<HTMLElement>("button[aria-expanded=false]");
      if (row && rangesIn(row, words).length === 0) fold?.click();
      requestAnimationFrame(() => show(root.current, hit, words));
    });
  };
  useEffect(() => {
    const hit = hits[at];
    mark(root.current, words, hit);
    return () => mark(null, "", undefined);
  }, [stamp, words, hits, at, root]);
  const close = (): void => {
    navigation.set({ finding: false });
    document.querySelector<HTMLElement>(".turns")?.focus();
  };
  return (
    <form role="search" className="find row" data-testid="find" aria-label={t.find} onSubmit={(e) => e.preventDefault()}>
      <input autoFocus aria-label={t.find} placeholder={t.find} data-testid="find-words" value={query} onChange={(e) => setQuery(e.target.value)} onKeyDown={(e) => {
        if (e.key === "Escape") close();
        if (e.key === "Enter") {
          e.preventDefault();
          void go(hits, at + (e.shiftKey ? -1 : 1));
        }
      }} />
      <span className="faint" role="status" data-testid="find-count">{words.trim() === "" ? "" : searching ? v.findingOn : hits.length === 0 ? v.foundNothing : v.found(at + 1, hits.length)}</span>
      <button type="button" className="quiet" data-testid="find-previous" aria-label={v.findPrevious} disabled={hits.length === 0} onClick={() => void go(hits, at - 1)}>↑</button>
      <button type="button" className="quiet" data-testid="find-next" aria-label={v.findNext} disabled={hits.length === 0} onClick={() => void go(hits, at + 1)}>↓</button>
      <button type="button" className="quiet" data-testid="find-close" aria-label={t.close} onClick={close}>×</button>
    </form>
  );
}

const rowOf = (root: HTMLElement | null, key: string): HTMLElement | undefined =>
  Array.from(root?.querySelectorAll<HTMLElement>("[data-row]") ?? []).find((each) => each.dataset.row === key);

function show(root: HTMLElement | null, hit: Hit, words: string): void {
  const row = rowOf(root, hit.key);
  const ranges = row ? rangesIn(row, words) : [];
  const range = ranges[Math.min(hit.nth, ranges.length - 1)];
  if (range) (range.startContainer.parentElement ?? row)?.scrollIntoView({ block: "nearest" });
  mark(root, words, hit);
}

// Colours the hits without changing the document, if the browser can do that.
function mark(root: HTMLElement | null, words: string, hit: Hit | undefined): void {
  const { highlights } = CSS as unknown as { highlights?: Map<string, unknown> };
  const { Highlight } = globalThis as unknown as { Highlight?: new (...ranges: Range[]) => unknown };
  if (!highlights || !Highlight) return;
  highlights.delete("found");
  highlights.delete("found-now");
  if (!root || words.trim() === "") return;
  highlights.set("found", new Highlight(...Array.from(root.querySelectorAll<HTMLElement>("[data-row]")).flatMap((row) => rangesIn(row, words))));
  const row = hit && rowOf(root, hit.key);
  const ranges = row ? rangesIn(row, words) : [];
  const now = ranges[Math.min(hit?.nth ?? 0, ranges.length - 1)];
  if (now) highlights.set("found-now", new Highlight(now));
}

// Finds words in a chat, also in turns that are not in the document.
interface Hit {
  turn: string;
  key: string; // of the row
  nth: number; // in the row
}

function hitsIn(turn: Turn, words: string): Hit[] {
  const hits: Hit[] = [];
  const look = (text: string, key: string): void => {
    const lower = text.toLowerCase();
    let nth = 0;
    for (let at = lower.indexOf(words); at >= 0; at = lower.indexOf(words, at + words.length)) hits.push({ turn: turn.id, key, nth: nth++ });
  };
  look(turn.message ?? "", `${turn.id}/head`);
  for (const block of turn.blocks) {
    const key = `${turn.id}/${block.key}`;
    if (block.kind === "text") {
      const { done, growing } = pieces(block);
      [...done, ...(growing ? [growing] : [])].forEach((piece, i) => look(piece.text, `${key}/${i}`));
    } else if (block.kind === "thinking") {
      look(block.text, key);
    } else if (block.kind === "tool") {
      look([block.name, block.input, block.output ?? block.live].join("\n"), key);
    } else {
      look(block.text, key);
    }
  }
  return hits;
}

// The ranges of the words in an element.
function rangesIn(element: Element, words: string): Range[] {
  const nodes: { node: Text; from: number }[] = [];
  let text = "";
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    nodes.push({ node: node as Text, from: text.length });
    text += (node as Text).data;
  }
  const lower = text.toLowerCase();
  const ranges: Range[] = [];
  let i = 0;
  const place = (at: number): [Text, number] => {
    while (i + 1 < nodes.length && nodes[i + 1]!.from <= at) i++;
    return [nodes[i]!.node, Math.min(at - nodes[i]!.from, nodes[i]!.node.length)];
  };
  for (let at = lower.indexOf(words); at >= 0; at = lower.indexOf(words, at + words.length)) {
    const range = document.createRange();
    range.setStart(...place(at));
    range.setEnd(...place(at + words.length));
    ranges.push(range);
  }
  return ranges;
}
