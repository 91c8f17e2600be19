// Colours code beside the page: a grammar of a language may take for ever on what somebody has made for it.
import { highlight } from "./highlight";

addEventListener("message", ({ data }: MessageEvent<{ id: number; code: string; language: string }>) => postMessage({ id: data.id, html: highlight(data.code, data.language) }));
