// Markdown of a model into HTML that can do nothing: raw HTML is shown as text, links go to the web or to mail, images
// are links, and what is left goes through a sanitizer. A block that is too deep to be Markdown is shown as it is.
import DOMPurify from "dompurify";
import { marked } from "marked";
import { t } from "../texts";

const escape = (text: string): string => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
const isSafe = (href: string): boolean => /^(https?:|mailto:)/i.test(href.trim());
// What an attacker writes to make parsers work for ever.
const tooDeep = (text: string): boolean => /(?:[>\s]*>){24}|([[(*_~`!<])\1{40}/.test(text.slice(0, 200_000)) || /^(\s{0,3}[-*+]\s){12}/m.test(text);

const renderer = new marked.Renderer();
renderer.html = (html: string) => escape(html);
renderer.link = (href: string | null, _title: string | null, text: string) =>
  href && isSafe(href) ? `<a href="${escape(href)}" target="_blank" rel="noreferrer noopener">${text}</a>` : text;
renderer.image = (href: string | null, _title: string | null, text: string) => renderer.link(href, null, escape(text || href || ""));
renderer.code = (code: string, language?: string) => {
  const name = (language ?? "").match(/^[\w+#-]*/)?.[0] ?? "";
  const body = name === "diff" ? diffLines(code) : escape(code);
  return `<div class="code"><div class="code-head"><span>${escape(name)}</span><button type="button" class="copy">${t.copy}</button></div>` +
    `<pre tabindex="0"><code class="${name && name !== "diff" ? `lang-${escape(name)}` : ""}">${body}</code></pre></div>`;
};
renderer.checkbox = (checked: boolean) => (checked ? "☑ " : "☐ ");

function diffLines(code: string): string {
  return code.split("\n").map((line) => {
    const kind = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "";
    return kind ? `<span class="${kind}">${escape(line)}</span>` : escape(line);
  }).join("\n");
}

marked.use({
  renderer, gfm: true, mangle: false, headerIds: false,
  extensions: [{
    name: "math", level: "inline",
    start: (text: string) => text.search(/\$|\\[([]/),
    tokenizer(text: string) {
      const found = /^\$\$([^$]+)\$\$|^\\\[([\s\S]+?)\\\]|^\\\(([\s\S]+?)\\\)|^\$([^$\s](?:[^$\n]*[^$\s])?)\$(?!\d)/.exec(text);
      if (!found) return undefined;
      const block = found[1] ?? found[2];
      return { type: "math", raw: found[0], tex: block ?? found[3] ?? found[4], block: block !== undefined };
    },
    renderer: (token: { tex?: string; block?: boolean }) => `<span class="math${token.block ? " block" : ""}">${escape(token.tex ?? "")}</span>`,
  } as never],
} as never);

export function toHtml(text: string): string {
  if (tooDeep(text)) return `<p class="plain">${escape(text)}</p>`;
  try {
    return DOMPurify.sanitize(marked.parse(text), {
      ALLOWED_TAGS: ["p", "a", "em", "strong", "del", "code", "pre", "ul", "ol", "li", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "table", "thead",
        "tbody", "tr", "th", "td", "hr", "br", "div", "span", "button"],
      ALLOWED_ATTR: ["href", "target", "rel", "class", "type", "start", "align", "tabindex"],
      ADD_ATTR: ["target"],
    });
  } catch {
    return `<p class="plain">${escape(text)}</p>`;
  }
}

// The text as blocks that stand for themselves: what is finished is never looked at again. A fence keeps its block
// together.
export class Blocks {
  readonly done: string[] = [];
  private at = 0;

  // The blocks that are finished are in `done`; the one that grows is returned.
  read(text: string): string {
    for (;;) {
      const rest = text.slice(this.at);
      const end = endOfBlock(rest);
      if (end < 0) return rest;
      this.done.push(rest.slice(0, end));
      this.at += end;
    }
  }
}

function endOfBlock(text: string): number {
  const fence = /^ {0,3}(`{3,}|~{3,})/.exec(text);
  if (fence) {
    const close = text.indexOf(`\n${fence[1]}`, fence[0].length);
    if (close < 0) return -1;
    const line = text.indexOf("\n", close + 1);
    return line < 0 ? -1 : line + 1;
  }
  let from = 0;
  for (;;) {
    const blank = text.indexOf("\n\n", from);
    const next = text.slice(0, blank < 0 ? text.length : blank).search(/\n {0,3}(`{3,}|~{3,})/);
    if (next >= 0) return next + 1;
    if (blank < 0) return -1;
    // A list, a quote or a table goes on behind an empty line if what follows is indented.
    if (text.length <= blank + 2) return -1;
    if (!/^( {2,}|\t)/.test(text.slice(blank + 2, blank + 6))) return blank + 2;
    from = blank + 2;
  }
}
