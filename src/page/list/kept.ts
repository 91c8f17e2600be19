import { createContext, useContext, useState } from "react";

// What a row remembers while it is not in the document: that it is open, what was typed into it.
export interface Memory {
  key: string;
  values: Map<string, unknown>;
}
export const MemoryOfRow = createContext<Memory | null>(null);

// As useState, and it survives being scrolled away. Outside of a list it is no more than useState.
export function useKept<T>(name: string, initial: T | (() => T)): [T, (value: T) => void] {
  const memory = useContext(MemoryOfRow);
  const at = memory && `${memory.key}:${name}`;
  const [value, set] = useState<T>(() => (at && memory.values.has(at) ? (memory.values.get(at) as T) : typeof initial === "function" ? (initial as () => T)() : initial));
  return [value, (next: T) => {
    if (at) memory.values.set(at, next);
    set(next);
  }];
}
