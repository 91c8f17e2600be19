// A text in which the searched words are marked.
export function Marked({ text, words }: { text: string; words: string }) {
  const looked = words.trim().split(/\s+/).filter(Boolean).map((word) => word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  if (looked.length === 0) return <>{text}</>;
  const parts = text.split(new RegExp(`(${[words.trim().replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), ...looked].join("|")})`, "gi"));
  return <>{parts.map((part, i) => (i % 2 === 1 ? <mark key={i}>{part}</mark> : part))}</>;
}
