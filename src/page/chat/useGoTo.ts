import { RefObject, useEffect } from "react";
import { useStore, store } from "../store/store";

const articleOf = (place: RefObject<HTMLElement>, turn: string): HTMLElement | null | undefined => place.current?.querySelector<HTMLElement>(`[data-interaction="${CSS.escape(turn)}"]`);

// Scrolls to the wanted turn, or to the one being edited, once it is there.
export function useGoTo(place: RefObject<HTMLElement>, heads: Map<string, number>, reveal: (turn: string, below: number) => void): void {
  const { target, editing, open } = useStore();
  useEffect(() => {
    if (editing && heads.has(editing) && !articleOf(place, editing)) reveal(editing, 0);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- only when editing begins
  }, [editing]);
  useEffect(() => {
    if (!target || target.chat !== open?.id || !heads.has(target.turn)) return;
    store.set({ target: null });
    reveal(target.turn, target.below ?? 0);
    requestAnimationFrame(() => {
      const turn = articleOf(place, target.turn);
      if (!turn) return;
      if (target.focus) {
        const wanted = [target.focus, "branch-prev", "branch-next"].map((name) => turn.querySelector<HTMLElement>(`[data-testid=${name}]:not(:disabled)`));
        return wanted.find((each) => each)?.focus({ preventScroll: true });
      }
      turn.classList.add("found");
      turn.addEventListener("animationend", () => turn.classList.remove("found"), { once: true });
      turn.querySelector<HTMLElement>(".user-message")?.focus({ preventScroll: true });
    });
  });
}
