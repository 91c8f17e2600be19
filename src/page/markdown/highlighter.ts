// Colours code in a worker, because hostile text can keep a language's grammar busy for ever.
import hljs from "highlight.js/lib/highlight";
import bash from "highlight.js/lib/languages/bash";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import go from "highlight.js/lib/languages/go";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const known = { bash, cpp, css, go, java, javascript, json, markdown, python, rust, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(known)) hljs.registerLanguage(name, language);

const LONGEST = 100_000;

// HTML in which the text is escaped; null if it stays plain.
function highlight(code: string, language: string): string | null {
  if (code.length > LONGEST || !hljs.getLanguage(language)) return null;
  return hljs.highlight(language, code, true).value;
}

addEventListener("message", ({ data }: MessageEvent<{ id: number; code: string; language: string }>) => postMessage({ id: data.id, html: highlight(data.code, data.language) }));
