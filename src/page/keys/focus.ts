// Who works by keyboard is never left nowhere: when what has the focus goes away or can no longer be used, what stands
// nearest to it gets the focus.
const USABLE = "button:not(:disabled), a[href], input:not(:disabled), select:not(:disabled), textarea:not(:disabled), [tabindex='0']";

let path: HTMLElement[] = []; // what has the focus, and all around it

function pathOf(element: Element): HTMLElement[] {
  const found: HTMLElement[] = [];
  for (let at: Element | null = element; at instanceof HTMLElement; at = at.parentElement) found.push(at);
  return found;
}

function mend(): void {
  const [last] = path;
  if (!last || (document.activeElement !== document.body && document.activeElement !== last)) return;
  if (last.isConnected && !last.matches(":disabled")) return;
  for (const around of path.filter((each) => each.isConnected)) {
    const next = [...around.querySelectorAll<HTMLElement>(USABLE)].find((each) => each !== last && each.getClientRects().length > 0);
    if (next) return next.focus();
  }
}

export function keepFocus(): void {
  addEventListener("focusin", (e) => (path = e.target instanceof Element ? pathOf(e.target) : []));
  addEventListener("pointerdown", () => (path = [])); // whoever points chooses the place
  new MutationObserver(mend).observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["disabled"] });
}
