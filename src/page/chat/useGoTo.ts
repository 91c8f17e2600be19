import { RefObject, useEffect } from "react";
import { useStore, store } from "../store/store";

// Brings the turn that somebody looks for into sight, once it is there.
export function useGoTo(place: RefObject<HTMLElement>): void {
  const { target, open } = useStore();
  useEffect(() => {
    if (!target || target.chat !== open?.id) return;
    const turn = place.current?.querySelector<HTMLElement>(`[data-interaction="${CSS.escape(target.turn)}"]`);
    if (!turn) return;
    store.set({ target: null });
    turn.scrollIntoView({ block: "start" });
    turn.classList.add("found");
    turn.addEventListener("animationend", () => turn.classList.remove("found"), { once: true });
    turn.querySelector<HTMLElement>(".user-message")?.focus({ preventScroll: true });
  });
}
