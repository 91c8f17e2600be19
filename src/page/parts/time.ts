import { useEffect, useState } from "react";

// A duration in few characters.
export function duration(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  const units = ms < 1000 ? `${Math.max(1, Math.round(ms))} ms` : ms < 60_000 ? `${(ms / 1000).toFixed(1)} s`
    : minutes < 60 ? `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return document.dir === "rtl" ? `\u2066${units}\u2069` : units; // runs from left to right within what does not
}

export function ago(since: string, now: number): string {
  return duration(Math.max(1000, now - Date.parse(since))).replace(/\.\d s/, " s").replace(/ \d+ s\b/, "");
}

// The present time, updated at intervals while `running`.
export function useNow(running: boolean, every = 1000): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!running) return undefined;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [running, every]);
  return now;
}
