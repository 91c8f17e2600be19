import { RefObject, useEffect } from "react";
import { useOpen } from "../store/cache";
import { navigation } from "../store/navigation";

const articleOf = (place: RefObject<HTMLElement>, turn: string): HTMLElement | null | undefined => place.current?.querySelector<HTMLElement>(`[data-interaction="${CSS.escape(turn)}"]`);

// Brings the turn that somebody looks for, or whose message is being changed, into sight, once it is there.
export function useGoTo(place: RefObject<HTMLElement>, heads: Map<string, number>, reveal: (turn: string, below: number) => void): void {
  const { target, editing } = navigation.use("target", "editing");
  const open = useOpen();
  useEffect(() => {
    if (editing && heads.has(editing) && !articleOf(place, editing)) reveal(editing, 0);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once, when it begins
  }, [editing]);
  useEffect(() => {
    if (!target || target.chat !== open?.id || !heads.has(target.turn)) return;
    navigation.set({ target: null });
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
