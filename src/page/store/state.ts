// The parts of the page's state, and how components read them: each component selects the values that it draws.
import { useRef, useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
let waits = false;

// Draws everything whose selection has changed, at once.
export function draw(): void {
  waits = false;
  for (const listener of [...listeners]) listener();
}
// Draws with the next frame, however much changes before it. A window that nobody sees has no frames.
export function changed(): void {
  if (waits) return;
  waits = true;
  if (document.hidden) setTimeout(draw, 100);
  else requestAnimationFrame(draw);
}

export function state<T extends object>(initial: T): T & { set: (change: Partial<T>) => void } {
  const made = { ...initial, set: (change: Partial<T>): void => (Object.assign(made, change), changed()) };
  return made;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const isPlain = (value: unknown): value is object => Array.isArray(value) || (typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype);

function isSame(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (!isPlain(a) || !isPlain(b)) return false;
  const one = Object.entries(a), other = Object.entries(b);
  return one.length === other.length && one.every(([name, value], i) => name === other[i]![0] && Object.is(value, other[i]![1]));
}

// The value that `select` reads from the state. The component is drawn again when the value is another one; a list or an object is another one if a member of it is.
export function useSelect<T>(select: () => T): T {
  const last = useRef<T>();
  return useSyncExternalStore(subscribe, () => {
    const next = select();
    return isSame(last.current, next) ? last.current! : (last.current = next);
  });
}
