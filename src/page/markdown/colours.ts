// Colours code in a worker with a time limit. Code that takes longer stays plain, and the page does not wait.
declare const HIGHLIGHTER: string; // the worker's address, set by the build

const LIMIT = 2000; // ms for one text
const MOST = 200; // texts whose colours are kept

interface Wish {
  id: number;
  code: string;
  language: string;
  done: (html: string | null) => void;
}

const known = new Map<string, string | null>();
const waiting: Wish[] = [];
let worker: Worker | null = null;
let current: Wish | null = null;
let timer = 0;
let number = 0;

// HTML in which the text is escaped; null if it stays plain.
export function coloured(code: string, language: string): Promise<string | null> {
  const key = `${language}\n${code}`;
  const before = known.get(key);
  if (before !== undefined) return Promise.resolve(before);
  return new Promise((resolve) => {
    waiting.push({ id: ++number, code, language, done: (html) => {
      known.set(key, html);
      for (const old of [...known.keys()].slice(0, -MOST)) known.delete(old);
      resolve(html);
    } });
    next();
  });
}

function next(): void {
  if (current) return;
  current = waiting.shift() ?? null;
  if (!current) return;
  worker ??= started();
  timer = setTimeout(() => {
    worker?.terminate();
    worker = null;
    end(null);
  }, LIMIT);
  worker.postMessage({ id: current.id, code: current.code, language: current.language });
}
function started(): Worker {
  const made = new Worker(HIGHLIGHTER);
  made.onmessage = ({ data }: MessageEvent<{ id: number; html: string | null }>) => data.id === current?.id && end(data.html);
  made.onerror = () => {
    worker = null;
    end(null);
  };
  return made;
}
function end(html: string | null): void {
  clearTimeout(timer);
  const wish = current;
  current = null;
  wish?.done(html);
  next();
}
