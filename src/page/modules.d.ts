declare module "highlight.js/lib/highlight" {
  const hljs: {
    registerLanguage(name: string, language: unknown): void;
    getLanguage(name: string): unknown;
    highlight(name: string, code: string, ignoreIllegals: boolean): { value: string };
  };
  export default hljs;
}
declare module "highlight.js/lib/languages/*" {
  const language: unknown;
  export default language;
}
declare module "katex" {
  const katex: { render(tex: string, place: HTMLElement, options: Record<string, unknown>): void };
  export default katex;
}
