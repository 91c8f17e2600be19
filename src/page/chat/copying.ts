// A selection may span rows that are not in the document. Copying it includes their text as it was written.
import type { ClipboardEvent } from "react";
import { ChatRow, pieceOf } from "./rows";

function written(row: ChatRow): string {
  const { block } = row;
  if (row.kind === "head") return row.turn?.message ?? "";
  if (block?.kind === "text") {
    const piece = pieceOf(block, row.piece);
    return piece?.kind === "code" ? `\`\`\`${piece.language}\n${piece.text}\n\`\`\`` : (piece?.text.trim() ?? "");
  }
  if (block?.kind === "tool") return [block.name, block.input, block.output ?? block.live].join("\n");
  return block?.text ?? "";
}

const rowOf = (node: Node | null): HTMLElement | null | undefined => (node instanceof Element ? node : node?.parentElement)?.closest<HTMLElement>("[data-row]");

export function onCopy(e: ClipboardEvent, rows: readonly ChatRow[]): void {
  const chosen = getSelection();
  if (!chosen || chosen.isCollapsed) return;
  const range = chosen.getRangeAt(0);
  const first = rowOf(range.startContainer), last = rowOf(range.endContainer);
  const from = rows.findIndex((row) => row.key === first?.dataset.row), to = rows.findIndex((row) => row.key === last?.dataset.row);
  if (!first || !last || from < 0 || to <= from) return;
  const drawn = new Map(Array.from(e.currentTarget.querySelectorAll<HTMLElement>("[data-row]")).map((row) => [row.dataset.row, row]));
  const between = rows.slice(from + 1, to);
  if (between.every((row) => drawn.has(row.key))) return; // all in the document: the browser copies
  const begin = range.cloneRange(), end = range.cloneRange();
  begin.setEndAfter(first);
  end.setStartBefore(last);
  const text = [begin.toString(), ...between.map(written), end.toString()].filter((part) => part !== "").join("\n\n");
  e.clipboardData.setData("text/plain", text);
  e.preventDefault();
}
