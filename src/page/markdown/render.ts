// Turns a model's Markdown into harmless HTML: raw HTML is shown as text, links go only to the web or to mail, images
// become links, and the result goes through a sanitizer. A block that is nested too deeply is shown as plain text.
import DOMPurify from "dompurify";
import { marked } from "marked";
import { t } from "../texts";

const escape = (text: string): string => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
const isSafe = (href: string): boolean => /^(https?:|mailto:)/i.test(href.trim());
// Whether the text is nested so deeply that it would keep a parser busy for ever.
function tooDeep(text: string): boolean {
  let quotes = 0, marks = 0, before = "";
  for (const c of text.slice(0, 200_000)) {
    if (c === ">") quotes++;
    else if (c.trim() !== "") quotes = 0;
    marks = c === before && "[(*_~`!<".includes(c) ? marks + 1 : 0;
    if (quotes >= 24 || marks >= 40) return true;
    before = c;
  }
  return /^(?: {0,3}[-*+] ){12}/m.test(text);
}

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
renderer.listitem = (text: string, task: boolean) => `<li${task ? ' class="task-item"' : ""}>${text}</li>\n`;
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

const ALLOWED = {
  ALLOWED_TAGS: ["p", "a", "em", "strong", "del", "code", "pre", "ul", "ol", "li", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "table", "thead",
    "tbody", "tr", "th", "td", "hr", "br", "div", "span", "button"],
  ALLOWED_ATTR: ["href", "target", "rel", "class", "type", "start", "align", "tabindex"],
  ADD_ATTR: ["target"],
};

export function toNodes(text: string): DocumentFragment {
  try {
    if (!tooDeep(text)) return DOMPurify.sanitize(marked.parse(text), { ...ALLOWED, RETURN_DOM_FRAGMENT: true }) as unknown as DocumentFragment;
  } catch {
    // Shown as plain text.
  }
  const plain = document.createElement("p");
  plain.className = "plain";
  plain.textContent = text;
  const nodes = document.createDocumentFragment();
  nodes.append(plain);
  return nodes;
}
