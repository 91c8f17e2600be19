// Finds words in a chat, also in turns that are not in the document.
import type { Turn } from "../store/turn";
import { pieces } from "./rows";

export interface Hit {
  turn: string;
  key: string; // of the row
  nth: number; // in the row
}

export function hitsIn(turn: Turn, words: string): Hit[] {
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
export function rangesIn(element: Element, words: string): Range[] {
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
