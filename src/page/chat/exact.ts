// JSON whose numbers stay as written. JavaScript would round 9007199254740993, but the tool that gets the number may not.
const MARK = `\u0000${[...crypto.getRandomValues(new Uint32Array(4))].join("-")}:`; // random, so no text contains it
const TOKENS = /"(?:[^"\\]|\\.)*(?:"|$)|-?\d[\d.eE+-]*/gs;

// A number that JavaScript cannot hold or would write differently.
export class Exact {
  constructor(readonly text: string) {}
  toString(): string {
    return this.text;
  }
  toJSON(): string {
    return MARK + this.text;
  }
}

export const isNumber = (value: unknown): value is number | Exact => typeof value === "number" || value instanceof Exact;
// A number as typed.
export const numberOf = (text: string): number | Exact => (String(Number(text)) === text || !/^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text) ? Number(text) : new Exact(text));

export function parseExact(text: string): unknown {
  JSON.parse(text); // throws for invalid JSON
  const marked = text.replace(TOKENS, (token) => (token.startsWith('"') || String(Number(token)) === token ? token : JSON.stringify(MARK + token)));
  return JSON.parse(marked, (_, value: unknown) => (typeof value === "string" && value.startsWith(MARK) ? new Exact(value.slice(MARK.length)) : value));
}

export function writeExact(value: unknown, indent = 0): string {
  const quoted = JSON.stringify(MARK).slice(0, -1);
  return JSON.stringify(value, null, indent).split(quoted).map((part, i) => (i === 0 ? part : part.replace('"', ""))).join("");
}
