// Keeps the focus for people who work by keyboard: if the focused element is removed or disabled, an element near it gets the focus, in the same turn if it was
// in one. This never scrolls, because only the reader moves the view.
const USABLE = "button:not(:disabled), a[href], input:not(:disabled), select:not(:disabled), textarea:not(:disabled), [tabindex='0']";

let path: HTMLElement[] = []; // the focused element and its ancestors

function pathOf(element: Element): HTMLElement[] {
  const found: HTMLElement[] = [];
  for (let at: Element | null = element; at instanceof HTMLElement; at = at.parentElement) found.push(at);
  return found;
}

function isInSight(element: HTMLElement): boolean {
  const box = element.getBoundingClientRect();
  return box.width > 0 && box.bottom > 0 && box.top < innerHeight;
}

function mend(): void {
  const [last] = path;
  if (!last || (document.activeElement !== document.body && document.activeElement !== last)) return;
  if (last.isConnected && !last.matches(":disabled")) return;
  const turn = path.findIndex((each) => each.matches(".turn"));
  for (const around of turn < 0 ? path : path.slice(0, turn + 1)) {
    if (!around.isConnected) continue;
    const usable = [...around.querySelectorAll<HTMLElement>(USABLE)].filter((each) => each !== last && each.getClientRects().length > 0);
    const next = usable.find(isInSight) ?? usable[0];
    if (next) return next.focus({ preventScroll: true });
  }
  focusConversation();
}

// Focuses the composer, or on a touch screen the conversation, because a keyboard would cover half of it.
function focusConversation(): void {
  const place = matchMedia("(pointer: coarse)").matches ? null : document.querySelector<HTMLElement>("[data-testid=composer]");
  (place ?? document.querySelector<HTMLElement>(".turns"))?.focus({ preventScroll: true });
}

export function keepFocus(): void {
  addEventListener("focusin", (e) => (path = e.target instanceof Element ? pathOf(e.target) : []));
  addEventListener("pointerdown", () => (path = [])); // a pointer chooses the place
  new MutationObserver(mend).observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["disabled"] });
}
