import { createContext, useContext, useState } from "react";

// The state of a row that outlives its element: whether it is open, and the text typed into it.
export interface Memory {
  key: string;
  values: Map<string, unknown>;
}
export const MemoryOfRow = createContext<Memory | null>(null);

// Like useState, but in a list the value survives when the row is scrolled away.
export function useKept<T>(name: string, initial: T | (() => T)): [T, (value: T) => void] {
  const memory = useContext(MemoryOfRow);
  const at = memory && `${memory.key}:${name}`;
  const [value, set] = useState<T>(() => (at && memory.values.has(at) ? (memory.values.get(at) as T) : typeof initial === "function" ? (initial as () => T)() : initial));
  return [value, (next: T) => {
    if (at) memory.values.set(at, next);
    set(next);
  }];
}
