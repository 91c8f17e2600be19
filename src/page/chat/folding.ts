// Which parts are folded and which are open. A reader's choice outlives the card, because cards out of sight are not
// drawn.
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

// Opening or closing all affects cards, but not the folds within them.
export function useFold(key: string, byItself: boolean, isCard = false): [boolean, () => void] {
  const chosen = useSyncExternalStore(subscribe, () => choices.get(key) ?? (isCard ? all : null));
  const open = chosen ?? byItself;
  return [open, () => {
    choices.set(key, !open);
    changed();
  }];
}

// Opens or closes all cards, including later ones.
export function foldAll(open: boolean): void {
  choices.clear();
  all = open;
  changed();
}
export const allOpen = (): boolean => all === true;
