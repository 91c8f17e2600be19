import { RefObject, useEffect, useSyncExternalStore } from "react";

// Closes a popover on a click or focus elsewhere, or on Escape.
export function useAway(place: RefObject<HTMLElement>, open: boolean, close: () => void): void {
  useEffect(() => {
    if (!open) return undefined;
    const onPointer = (e: PointerEvent): void => {
      if (place.current && !place.current.contains(e.target as Node)) close();
    };
    const onKey = (e: KeyboardEvent): void => {
      if (e.key !== "Escape") return;
      e.stopPropagation();
      close();
      place.current?.querySelector<HTMLElement>("button[aria-expanded]")?.focus();
    };
    const onFocus = (e: FocusEvent): void => {
      if (e.target instanceof Node && e.target !== document.body && !place.current?.contains(e.target)) close();
    };
    const stop = new AbortController();
    document.addEventListener("focusin", onFocus, { signal: stop.signal });
    document.addEventListener("pointerdown", onPointer, { signal: stop.signal });
    document.addEventListener("keydown", onKey, { capture: true, signal: stop.signal });
    return () => stop.abort();
  }, [place, open, close]);
}

// Makes a text area as high as its text.
export function fit(area: HTMLTextAreaElement | null, most = 200): void {
  if (!area) return;
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight + 2, most)}px`;
}

const query = matchMedia("(max-width: 52rem)");
export const isNarrow = (): boolean => query.matches;

// Whether the window has no room for the chats beside the conversation.
export const useNarrow = (): boolean => useSyncExternalStore((listener) => {
  query.addEventListener("change", listener);
  return () => query.removeEventListener("change", listener);
}, isNarrow);
