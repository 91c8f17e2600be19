// What was written into the rows of chats but not sent: a changed message, words beside an approval, an answer. It outlives the page, as drafts do.
import { parseExact, writeExact } from "../chat/exact";
import { useKept } from "../list/Rows";
import { t } from "../texts";
import { addToDraft } from "./open";
import { store, stored, tell } from "./state";

const KEPT = "words"; // the name of the list
const MOST = 20; // rows, the last ones that were written in

interface Written {
  row: string; // an id of an approval or a question, or "CHAT/TURN" of a message
  chat: string;
  values: Record<string, unknown>;
}

function all(): Written[] {
  try {
    return parseExact(stored(KEPT) || "[]") as Written[];
  } catch {
    return [];
  }
}
const keep = (list: Written[]): void => store(KEPT, list.length > 0 ? writeExact(list.slice(-MOST)) : "");

// Like useKept. The third value shows something without keeping it, since nobody wrote it.
export function useWords<T>(chat: string, row: string, name: string, initial: T): [T, (next: T) => void, (next: T) => void] {
  const [value, set] = useKept<T>(name, () => (all().find((each) => each.row === row)?.values[name] as T | undefined) ?? initial);
  const write = (next: T): void => {
    const list = all();
    const { [name]: _, ...others } = list.find((each) => each.row === row)?.values ?? {};
    const values = next === initial ? others : { ...others, [name]: next };
    keep([...list.filter((each) => each.row !== row), ...(Object.keys(values).length > 0 ? [{ row, chat, values }] : [])]);
    set(next);
  };
  return [value, write, set];
}

export function forgetWords(isGone: (written: Written) => boolean): void {
  const list = all(), rest = list.filter((each) => !isGone(each));
  if (rest.length < list.length) keep(rest);
}

// Adds what was written for calls and questions that do not wait any more to the drafts of their chats.
export function giveBackWords(waits: (row: string) => boolean): void {
  const late = all().filter(({ row }) => !row.includes("/") && !waits(row));
  forgetWords((each) => late.some(({ row }) => row === each.row));
  for (const { chat, values } of late) addToDraft(chat, Object.values(values).map((value) => (typeof value === "string" ? value : writeExact(value, 2))).join("\n"));
  if (late.length > 0) tell(t.waitsNoMore);
}
