// The groups of the list of chats. Those that work or wait come first, then the pinned ones. The others are grouped by folder, or by age if there is one folder.
import { folderName } from "../store/requests";
import type { Chat } from "../store/turn";
import { t } from "../texts";

export interface Group {
  name: string;
  chats: Chat[];
  takes?: Place; // what a chat becomes that is dropped there; none: nothing is dropped there
}
export interface Place {
  shelf: "pinned" | "archived" | null;
  folder?: string;
}

// While a chat is dragged, the groups it can be dropped on are there even if they are empty.
export function groupsOf(chats: Chat[], folders: string[], own: string, archive: boolean, dragging: boolean): Group[] {
  const idle = chats.filter((chat) => chat.status === "idle");
  const others = idle.filter((chat) => !chat.shelf);
  const groups: Group[] = [
    { name: t.activeNow, chats: chats.filter((chat) => chat.status !== "idle") },
    { name: t.pinned, chats: idle.filter((chat) => chat.shelf === "pinned"), takes: { shelf: "pinned" } },
    ...(folders.length > 1 ? byFolder(others, folders, own) : byAge(others)),
    { name: t.archived, chats: archive ? idle.filter((chat) => chat.shelf === "archived") : [], takes: { shelf: "archived" } },
  ];
  return groups.filter((group) => group.chats.length > 0 || (dragging && group.takes));
}

const byFolder = (chats: Chat[], folders: string[], own: string): Group[] =>
  folders.map((folder) => ({ name: folderName(folder, folders), chats: chats.filter((chat) => (chat.workspace ?? own) === folder), takes: { shelf: null, folder } }));

function byAge(chats: Chat[]): Group[] {
  const midnight = new Date();
  midnight.setHours(0, 0, 0, 0);
  const day = 86_400_000;
  const today = midnight.getTime();
  const ages: [string, number][] = [[t.today, today], [t.yesterday, today - day], [t.thisWeek, today - 6 * day], [t.older, -Infinity]];
  const groups = ages.map(([name], i): Group => ({ name, chats: [], ...(i === 0 && { takes: { shelf: null } }) }));
  for (const chat of chats) groups[ages.findIndex(([, from]) => Date.parse(chat.updated_at) >= from)]!.chats.push(chat);
  return groups;
}
