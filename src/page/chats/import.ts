import { t } from "../texts";
import { v } from "../texts_of_views";
import type { Imported } from "../wire";
import { ApiError, call } from "../wire/api";

const PART = 8 << 20;
const PIECE = 1 << 20; // that is looked at together
const QUOTE = 34, COMMA = 44, OPEN_LIST = 91, BACKSLASH = 92, CLOSE_LIST = 93, OPEN_OBJECT = 123, CLOSE_OBJECT = 125;

// Where the elements of the list in a file end, and where they begin first. Each is the place of a comma, and the last that of the bracket.
async function* endsOfElements(file: Blob): AsyncGenerator<number> {
  let depth = 0, inString = false, escaped = false;
  for (let from = 0; from < file.size; from += PIECE) {
    const bytes = new Uint8Array(await file.slice(from, from + PIECE).arrayBuffer());
    for (let i = 0; i < bytes.length; i += 1) {
      const byte = bytes[i]!;
      if (inString) {
        if (escaped) escaped = false;
        else if (byte === BACKSLASH) escaped = true;
        else inString = byte !== QUOTE;
      } else if (byte === QUOTE) inString = true;
      else if (byte === OPEN_LIST || byte === OPEN_OBJECT) depth += 1;
      else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth -= 1;
      if (!inString && ((byte === COMMA && depth === 1) || (byte === CLOSE_LIST && depth === 0))) yield from + i;
    }
  }
}

// The parts of a list of sessions, each a list of some of them. null: the file is something else, such as one session that is a list of messages.
async function partsOf(file: File): Promise<Blob[] | null> {
  const begin = (await file.slice(0, PIECE).text()).trimStart();
  if (!begin.startsWith("[")) return null;
  const first = new TextEncoder().encode((await file.slice(0, PIECE).text()).slice(0, -begin.length)).length + 1;
  const parts: Blob[] = [];
  let from = first, last = first;
  const cut = (to: number): void => {
    parts.push(new Blob(["[", file.slice(from, to), "]"]));
    from = to + 1;
  };
  for await (const end of endsOfElements(file)) {
    if (last === first) {
      const element = JSON.parse(await file.slice(first, end).text()) as Record<string, unknown>;
      if ("role" in element) return null;
    }
    if (end - from > PART && last > from) cut(last);
    last = end;
  }
  if (last > from) cut(last);
  return parts;
}

// A failure behind parts that are in. To import the file again takes only the others.
const cutOff = (error: unknown, taken: number, parts: number): ApiError =>
  new ApiError(error instanceof ApiError ? error.status : 0, error instanceof ApiError ? error.code : "", `${error instanceof ApiError ? error.message : t.offline} ${v.importCutOff(taken, parts)}`);

// Imports a file. A large list of sessions goes in parts, so that neither the page nor the server holds the whole of it. If a part fails, those before it stay.
export async function importFile(file: File): Promise<Imported> {
  const parts = file.size > PART ? await partsOf(file).catch(() => null) : null;
  if (parts === null) return call<Imported>("POST", "/import", file);
  let imported: Imported | null = null, known: ApiError | null = null;
  const notes: string[] = [];
  for (const [taken, part] of parts.entries()) {
    try {
      imported = await call<Imported>("POST", "/import", part);
      notes.push(...imported.notes);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "chat_exists") throw taken === 0 ? error : cutOff(error, taken, parts.length);
      known = error; // all of this part was imported earlier
    }
  }
  if (imported === null) throw known!;
  return { ...imported, notes: notes.slice(0, 20) };
}
