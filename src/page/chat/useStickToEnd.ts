import { RefObject, useEffect, useRef, useState } from "react";

const NEAR = 80; // pixels

// A box that shows its end as long as its reader does not scroll away from it. Gives the box, whether it does, and a way
// back.
export function useStickToEnd(stamp: unknown): [RefObject<HTMLDivElement>, boolean, () => void] {
  const place = useRef<HTMLDivElement>(null);
  const [stuck, setStuck] = useState(true);
  const stays = useRef(true);
  useEffect(() => {
    const box = place.current;
    if (!box) return undefined;
    const onScroll = (): void => {
      stays.current = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
      setStuck(stays.current);
    };
    box.addEventListener("scroll", onScroll, { passive: true });
    return () => box.removeEventListener("scroll", onScroll);
  }, []);
  useEffect(() => {
    const box = place.current;
    if (box && stays.current) box.scrollTop = box.scrollHeight;
  }, [stamp]);
  const jump = (): void => {
    const box = place.current;
    if (box) box.scrollTop = box.scrollHeight;
  };
  return [place, stuck, jump];
}
