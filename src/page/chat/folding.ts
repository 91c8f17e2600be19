// Which parts are folded and which are open. A reader's choice outlives the card, because cards out of sight are not
// drawn.
import { draw, useSelect } from "../store/state";

const choices = new Map<string, boolean>();
let all: boolean | null = null;

// Opening or closing all affects cards, but not the folds within them.
export function useFold(key: string, byItself: boolean, isCard = false): [boolean, () => void] {
  const chosen = useSelect(() => choices.get(key) ?? (isCard ? all : null));
  const open = chosen ?? byItself;
  return [open, () => {
    choices.set(key, !open);
    draw();
  }];
}

// Opens or closes all cards, including later ones.
export function foldAll(open: boolean): void {
  choices.clear();
  all = open;
  draw();
}
export const allOpen = (): boolean => all === true;
