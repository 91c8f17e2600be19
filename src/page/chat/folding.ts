// What is folded and what is open. A reader's choice outlives the drawing of a card: cards that are scrolled out of sight
// are not drawn.
import { draw, useSelect } from "../store/state";

const choices = new Map<string, boolean>();
let all: boolean | null = null;

// A card follows when all are opened or closed; what is within it does not.
export function useFold(key: string, byItself: boolean, isCard = false): [boolean, () => void] {
  const chosen = useSelect(() => choices.get(key) ?? (isCard ? all : null));
  const open = chosen ?? byItself;
  return [open, () => {
    choices.set(key, !open);
    draw();
  }];
}

// Every card, also those that are yet to come.
export function foldAll(open: boolean): void {
  choices.clear();
  all = open;
  draw();
}
export const allOpen = (): boolean => all === true;
