import { useEffect, useState } from "react";

const query = matchMedia("(max-width: 52rem)");
export const isNarrow = (): boolean => query.matches;

// Whether the window has no room for the chats beside the conversation.
export function useNarrow(): boolean {
  const [narrow, setNarrow] = useState(query.matches);
  useEffect(() => {
    const onChange = (): void => setNarrow(query.matches);
    query.addEventListener("change", onChange);
    return () => query.removeEventListener("change", onChange);
  }, []);
  return narrow;
}
