// The parts of the page's state, and how components read them: each component selects the values that it draws. One part is what the page tells people.
import { useRef, useSyncExternalStore } from "react";
import { t } from "../texts";
import { ApiError } from "../wire/api";

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

// A part of the state. Components `use` the members that they draw.
type State<T> = T & { set: (change: Partial<T>) => void; use: <K extends keyof T>(...names: K[]) => Pick<T, K> };

export function state<T extends object>(initial: T): State<T> {
  const made: State<T> = {
    ...initial,
    set: (change) => (Object.assign(made, change), changed()),
    use: (...names) => useSelect(() => Object.fromEntries(names.map((name) => [name, made[name]])) as Pick<T, (typeof names)[number]>),
  };
  return made;
}

export function subscribe(listener: () => void): () => void {
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

// --- what the page tells people: toasts, and words for a screen reader
interface Toast {
  id: number;
  text: string;
  action?: { label: string; run: () => void };
}

export const notices = state({ toasts: [] as Toast[], said: "" });
let number = 0;

export function tell(text: string, action?: Toast["action"]): void {
  const toast = { id: ++number, text, action };
  notices.set({ toasts: [...notices.toasts.slice(-3), toast] });
  setTimeout(() => dismiss(toast), action ? 10_000 : 6_000);
}
const dismiss = (toast: Toast): void => notices.set({ toasts: notices.toasts.filter((each) => each !== toast) });
// The action of a toast can be run once.
export function act(toast: Toast): void {
  dismiss(toast);
  toast.action?.run();
}

// --- what this browser keeps
const unstored = new Map<string, string>(); // what it had no room for, which lasts as long as the page

export const stored = (name: string): string => unstored.get(name) ?? localStorage.getItem(name) ?? "";
// An empty value removes it. If there is no room, people are told once, and go on.
export function store(name: string, value: string): void {
  try {
    if (value) localStorage.setItem(name, value);
    else localStorage.removeItem(name);
    unstored.delete(name);
  } catch {
    if (unstored.size === 0) tell(t.noRoom);
    unstored.set(name, value);
  }
}

// A screen reader says the same words a second time only if they differ.
export const say = (text: string): void => notices.set({ said: text === notices.said ? `${text}\u00a0` : text });

// Why the server refused something: its words, or ours if they name what to do next.
export function wordsOf(error: unknown): string {
  if (error instanceof ApiError && error.code === "busy") return t.busy;
  return error instanceof Error ? error.message : String(error);
}

// Tells why the work failed. That the server cannot be reached the page shows by itself, unless there are words for it.
export async function attempt(work: () => Promise<unknown>, offline = ""): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") return true;
    const text = error instanceof TypeError ? offline : wordsOf(error);
    if (text) tell(text);
    return false;
  }
}
