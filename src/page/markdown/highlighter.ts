// Colours code in a worker, because hostile text can keep a language's grammar busy for ever.
import { highlight } from "./highlight";

addEventListener("message", ({ data }: MessageEvent<{ id: number; code: string; language: string }>) => postMessage({ id: data.id, html: highlight(data.code, data.language) }));
