// What is folded and what is open. A reader's choice outlives the drawing of a card: cards that are scrolled out of sight
// are not drawn.
import { useSyncExternalStore } from "react";

const choices = new Map<string, boolean>();
const listeners = new Set<() => void>();
let all: boolean | null = null;

function changed(): void {
  for (const listener of [...listeners]) listener();
}
const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

// A card follows when all are opened or closed; what is within it does not.
export function useFold(key: string, byItself: boolean, isCard = false): [boolean, () => void] {
  const chosen = useSyncExternalStore(subscribe, () => choices.get(key) ?? (isCard ? all : null));
  const open = chosen ?? byItself;
  return [open, () => {
    choices.set(key, !open);
    changed();
  }];
}

// Every card, also those that are yet to come.
export function foldAll(open: boolean): void {
  choices.clear();
  all = open;
  changed();
}
export const allOpen = (): boolean => all === true;
