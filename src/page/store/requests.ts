// What people ask of the server. What comes of it is told by the feed, to this window as to all others.
import { t } from "../texts";
import type { BranchRemoved, ChangeChatRequest, ExpandedCommand, FilesPreview, Tools, Trash } from "../wire";
import { ApiError, begin, call, chatPath, get, isNotFound, turnPath } from "../wire/api";
import { branch, cache, earlier, hold, isGone, known, lastTurn, leafOf, openEntry, show } from "./cache";
import { answersHere, deletesHere } from "./feed";
import { AskedFiles, navigation, openChat } from "./navigation";
import { changeUnsent, offerDraft, OpenChat, Unsent } from "./open";
import { attempt, changed, state, store, stored, tell, wordsOf } from "./state";
import type { Chat, FilesChoice, PendingInput, Turn } from "./turn";
import { forgetWords } from "./words";

// --- settings of the chat that is shown, and of it alone
// What a new chat of this browser begins with.
export function newChats(): ChangeChatRequest {
  try {
    return JSON.parse(stored("newChats") || "{}") as ChangeChatRequest;
  } catch {
    return {};
  }
}
export function beginWith(change: ChangeChatRequest): void {
  const all = Object.fromEntries(Object.entries({ ...newChats(), ...change }).filter(([, value]) => value));
  store("newChats", JSON.stringify(all));
  begun.set({ fresh: all });
}
const begun = state({ fresh: newChats() }); // what was set for a chat that is not there yet

export function settings(): ChangeChatRequest {
  const chat = openEntry();
  return chat ? { approval_mode: chat.approval_mode, model: chat.chosen_model } : cache.open ? {} : begun.fresh;
}
// The folder that the chat works in, or a new one would.
export function workspace(): string | undefined {
  return openEntry()?.workspace ?? (cache.open ? undefined : begun.fresh.workspace) ?? cache.tools?.workspace;
}
// Lets the chat work in a folder, if the server allows it. Returns why it does not; null: it does.
export async function workIn(folder: string): Promise<string | null> {
  const chat = cache.open;
  try {
    if (chat && openEntry()) await call("PATCH", chatPath(chat.id), { workspace: folder });
    else begun.set({ fresh: { ...begun.fresh, workspace: (await get<Tools>(`/tools?workspace=${encodeURIComponent(folder)}`)).workspace } });
    if (chat) await findFolder(chat.id);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
// Whether the folder of the chat is still there.
export const folders = state({ gone: null as string | null }); // the chat whose folder is not
export async function findFolder(chat: string): Promise<void> {
  try {
    await get<Tools>(`/tools?chat_id=${encodeURIComponent(chat)}`);
    if (folders.gone === chat) folders.set({ gone: null });
  } catch (error) {
    if (error instanceof ApiError && error.code === "no_such_workspace") folders.set({ gone: chat });
  }
}
// The folders of the chats, those of the newest chats first, and the server's.
let found = { version: -1, own: undefined as string | undefined, folders: [] as string[] };
export function knownFolders(): string[] {
  const { version, tools } = cache;
  const own = tools?.workspace;
  if (found.version === version && found.own === own) return found.folders;
  const newest = new Map<string, string>(); // the time of each folder's newest chat
  for (const chat of cache.chats.values()) {
    const folder = chat.workspace ?? own;
    if (folder && chat.updated_at > (newest.get(folder) ?? "")) newest.set(folder, chat.updated_at);
  }
  if (own && !newest.has(own)) newest.set(own, "");
  const folders = [...newest].sort(([, a], [, b]) => (a < b ? 1 : a > b ? -1 : 0)).map(([folder]) => folder);
  found = { version, own, folders };
  return folders;
}
// Its last part, or all of it if another folder ends in the same.
export function folderName(folder: string, all: string[]): string {
  const last = (path: string): string => path.slice(path.lastIndexOf("/") + 1) || path;
  return all.some((other) => other !== folder && last(other) === last(folder)) ? folder : last(folder);
}
export async function configure(change: ChangeChatRequest, chat = cache.open?.id): Promise<boolean> {
  if (chat) return attempt(() => call("PATCH", chatPath(chat), change), t.offline);
  begun.set({ fresh: { ...begun.fresh, ...change } });
  return true;
}

// --- chats
// Shows a chat that was made, unless people look at another one by now than when they wished for it: what they type is for that one.
function showMade(id: string, box: number, isNew: boolean): void {
  if (cache.box !== box) hold(id), tell(t.newChat, { label: t.goToChat, run: () => openChat(id) });
  else if (isNew) show(id, true);
  else openChat(id);
}
// Makes a chat without a message, for files and settings.
export async function createChat(): Promise<string | null> {
  let id: string | null = null;
  const { box } = cache;
  await attempt(async () => {
    const { workspace: folder, ...others } = begun.fresh;
    const made = (await call<{ id: string }>("POST", "/chats", folder ? { workspace: folder } : {})).id;
    const set = Object.entries(others).filter(([, value]) => value);
    if (set.length > 0) await call("PATCH", chatPath(made), Object.fromEntries(set));
    begun.set({ fresh: newChats() });
    showMade((id = made), box, true);
  });
  return id;
}
// The chat that is open, or a new one.
export async function chatToFill(): Promise<string | null> {
  // Settings must be stored before its first message.
  if (!cache.open && Object.values(begun.fresh).some((each) => each)) return createChat();
  if (isGone()) return tell(t.noSuchChat(cache.open!.id)), null;
  if (!cache.open) openChat(`chat_${crypto.getRandomValues(new Uint32Array(3)).join("").slice(0, 20)}`, true);
  return cache.open?.id ?? null;
}
export const rename = (chat: string, title: string): Promise<boolean> => attempt(() => call("PATCH", chatPath(chat), { title }), t.offline);
export async function remove(chats: string[]): Promise<void> {
  const deleted: string[] = [];
  await attempt(async () => {
    for (const chat of chats) {
      try {
        deletesHere.add(chat);
        await call("DELETE", chatPath(chat));
        deleted.push(chat);
      } catch (error) {
        deletesHere.delete(chat);
        if (!isNotFound(error)) throw error; // else somebody else has deleted it
      }
    }
  });
  const putBack = async (): Promise<void> => {
    const trash = await get<Trash>("/trash");
    for (const chat of deleted) {
      const entry = trash.entries.filter((each) => each.chat_id === chat).pop();
      if (entry) await restore(entry.id);
    }
  };
  const title = cache.chats.get(deleted[0] ?? "")?.title || t.untitled;
  if (deleted.length > 0) tell(deleted.length === 1 ? t.wasDeleted(title) : t.wereDeleted(deleted.length), { label: t.undo, run: () => void attempt(putBack) });
}
// Puts chats on another shelf, and into another folder if one is given. What was before can be had back.
export async function put(ids: string[], to: { shelf: Chat["shelf"] | null; folder?: string }): Promise<void> {
  const own = cache.tools?.workspace;
  const back: [string, ChangeChatRequest][] = [];
  await attempt(async () => {
    for (const id of ids) {
      const chat = cache.chats.get(id);
      if (!chat) continue;
      const moves = to.folder !== undefined && to.folder !== (chat.workspace ?? own);
      if (!moves && (chat.shelf ?? null) === to.shelf) continue;
      const before: ChangeChatRequest = { shelf: chat.shelf ?? null, ...(moves && { workspace: chat.workspace ?? null }) };
      await call("PATCH", chatPath(id), { shelf: to.shelf, ...(moves && { workspace: to.folder }) });
      back.push([id, before]);
    }
  });
  const [first] = back; // what was done before a failure counts too
  if (!first) return;
  const what = back.length === 1 ? `“${cache.chats.get(first[0])?.title || t.untitled}”` : t.selected(back.length);
  const undo = async (): Promise<void> => {
    for (const [id, before] of back) await call("PATCH", chatPath(id), before);
  };
  tell(t.wasPut["workspace" in first[1] ? "folder" : (to.shelf ?? "list")](what), { label: t.undo, run: () => void attempt(undo) });
}
export async function restore(entry: string): Promise<void> {
  try {
    await call("POST", `/trash/${encodeURIComponent(entry)}/restore`);
  } catch (error) {
    throw error instanceof ApiError && error.code === "chat_exists" ? new Error(t.nameTaken) : error;
  }
}

// --- messages
// "/NAME ARGUMENTS" as the message that it stands for, if the chat's folder has a command or a skill of this name.
async function expand(chat: string, typed: string): Promise<ExpandedCommand> {
  const [, command, args = ""] = /^\/([a-z0-9-]+)(?:\s+([\s\S]*))?$/.exec(typed) ?? [];
  const plain = { user_message: typed };
  if (!command) return plain;
  try {
    return await call<ExpandedCommand>("POST", `/instructions/expand?chat_id=${encodeURIComponent(chat)}`, { command, arguments: args });
  } catch (error) {
    const isMissing = isNotFound(error) || (error instanceof ApiError && error.code === "operator_only");
    if (isMissing || error instanceof TypeError) return plain; // without a server the text is kept as it is
    throw error;
  }
}
// Sends a message to this chat, whichever is shown by then. Returns why it could not: the server's words, or nothing if it cannot be reached. null: it was sent.
async function post(chat: OpenChat, typed: string, attachments: string[]): Promise<string | null> {
  try {
    const expanded = await expand(chat.id, typed);
    const running = (cache.chats.get(chat.id)?.status ?? "idle") !== "idle";
    if (!running) chat.sent = expanded.user_message;
    changed();
    const body: Record<string, unknown> = { ...expanded };
    if (attachments.length > 0) body.attachments = attachments;
    else if (running) body.if_running = "queue";
    await begin(`${chatPath(chat.id)}/interactions`, body);
    return null;
  } catch (error) {
    chat.sent = null;
    changed();
    if (error instanceof TypeError) return "";
    void findFolder(chat.id);
    const why = wordsOf(error);
    tell(why);
    return why;
  }
}
// False: it has become the chat's draft again, with its files.
export async function send(chat: OpenChat, typed: string, attachments: string[]): Promise<boolean> {
  const why = await post(chat, typed, attachments);
  return why === null || giveBack(chat, typed, attachments, why);
}
// A message that was refused becomes the chat's draft again, unless another one has been begun. Then, or if the server could not be reached, it is kept until
// somebody sends it again. Returns whether it is kept.
export function giveBack(chat: OpenChat, text: string, attachments: string[], why: string): boolean {
  if (why !== "" && offerDraft(chat.id, text)) return false;
  keepUnsent(chat, (all) => [...all, { id: crypto.getRandomValues(new Uint32Array(2)).join("-"), text, attachments, ...(why && { why }) }]);
  return true;
}
function keepUnsent(chat: OpenChat | null, how: (all: Unsent[]) => Unsent[]): void {
  if (chat) changeUnsent(chat, how);
  changed();
}
export const drop = (unsent: Unsent): void => keepUnsent(cache.open, (all) => all.filter((each) => each.id !== unsent.id));
const leaving = new Set<string>(); // kept messages that are being sent again
export async function sendAgain(unsent: Unsent): Promise<void> {
  const chat = cache.open;
  if (!chat || leaving.has(unsent.id)) return;
  leaving.add(unsent.id);
  const why = await post(chat, unsent.text, unsent.attachments);
  leaving.delete(unsent.id);
  keepUnsent(chat, (all) => all.flatMap((each) => (each.id !== unsent.id ? [each] : why === null ? [] : [{ ...each, why: why || undefined }])));
}
export const edit = (turn: Turn, text: string, files: FilesChoice & { attachments?: string[] } = {}): Promise<boolean> => beginFrom(turn, "edit", { new_user_message: text, ...files });
export const again = (turn: Turn, how: "regenerate" | "resume", model = ""): Promise<boolean> => beginFrom(turn, how, model ? { model } : {});
// Begins a turn from another one. The new turn is the chat's last, and the view moves to it.
const beginFrom = (turn: Turn, how: string, body: Record<string, unknown>): Promise<boolean> => attempt(async () => {
  await begin(`${turnPath(turn.chat, turn.id)}/${how}`, body);
  if (cache.open?.id === turn.chat) navigation.set({ began: navigation.began + 1 });
});
export const stop = (turn: Turn): Promise<boolean> => attempt(() => call("POST", `${turnPath(turn.chat, turn.id)}/cancel`));
export async function compact(): Promise<void> {
  const chat = cache.open;
  if (chat) await attempt(() => begin(`${chatPath(chat.id)}/compact`, {}));
}

// --- approvals and questions
export const answer = (approval: string, body: Record<string, unknown>): Promise<boolean> => give(approval, `/approvals/${approval}`, body, t.offline);
export function respond(input: PendingInput, response: string | null): Promise<boolean> {
  const body = response === null ? { request_id: input.request_id, declined: true } : { request_id: input.request_id, response };
  return give(input.request_id, `${turnPath(input.chat_id, input.interaction_id)}/respond`, body);
}
async function give(id: string, path: string, body: Record<string, unknown>, offline = ""): Promise<boolean> {
  answersHere(id, true);
  const given = await attempt(() => call("POST", path, body), offline);
  if (given) forgetWords((each) => each.row === id);
  else answersHere(id, false);
  return given;
}

// --- steps through a chat
// Without a choice the page asks what becomes of files, if there are any.
export async function moveHead(turn: Turn, chosen?: FilesChoice, moved?: (files: FilesChoice) => void): Promise<void> {
  const path = `${chatPath(turn.chat)}/head`;
  const move = async (files: FilesChoice): Promise<void> => {
    await call("POST", path, { interaction_id: turn.id, ...files });
    moved?.(files);
  };
  await attempt(() => (chosen ? move(chosen) : withFiles(t.otherBranch, turn.chat, path, { interaction_id: turn.id }, move)));
}
// With `dry_run` a request to `path` answers what would become of files.
async function withFiles(what: string, chat: string, path: string, body: Record<string, unknown>, run: AskedFiles["run"]): Promise<void> {
  const preview = await call<FilesPreview>("POST", path, { ...body, dry_run: true });
  const ask = preview.files.length > 0 || preview.omitted !== undefined || preview.unseen === true;
  navigation.set({ askedFiles: ask ? { chat, from: lastTurn()?.id ?? null, what, preview, run } : null });
  if (!ask) await run({});
}
// If something stands in the way of the files, people are told and asked again.
export async function answerFiles(asked: AskedFiles, choice: FilesChoice): Promise<void> {
  if ((await attempt(() => asked.run(choice))) && navigation.askedFiles === asked) navigation.set({ askedFiles: null });
}
export async function undo(): Promise<void> {
  const last = lastTurn();
  if (!last) return;
  const path = `${chatPath(last.chat)}/undo`;
  await attempt(() => withFiles(t.undoTurn, last.chat, path, {}, async (files) => {
    await call("POST", path, files);
    tell(t.undone(last.message ?? ""), { label: t.redo, run: () => void moveHead(last, files.files ? { files: "restore" } : {}) });
  }));
}
export async function redo(): Promise<void> {
  const last = lastTurn();
  const next = last && leafOf(last);
  if (!next || next === last) return tell(t.nothingToRedo);
  await moveHead(next, undefined, () => tell(t.redone(next.message ?? ""), { label: t.undo, run: () => void undo() }));
}
// Shows a turn. If it is on another branch, moves the chat's head there.
export async function goTo(chat: string, turn: string): Promise<void> {
  openChat(chat);
  navigation.set({ target: { chat, turn } });
  const open = cache.open!;
  while (!open.loaded || (!open.turns.has(turn) && open.previous)) {
    const { previous } = open;
    if (open.loaded) await earlier(open);
    else await new Promise((resume) => requestAnimationFrame(resume));
    if (cache.open !== open || (open.loaded && previous !== null && open.previous === previous)) return;
  }
  const found = open.turns.get(turn);
  if (found && !branch().includes(found)) {
    const before = lastTurn();
    await moveHead(leafOf(found), {});
    tell(t.otherVersion, before && { label: t.undo, run: () => void moveHead(before, {}) });
  }
}
export async function fork(turn: Turn): Promise<void> {
  const path = `${chatPath(turn.chat)}/fork`;
  const { box } = cache;
  await attempt(() => withFiles(t.fork, turn.chat, path, { interaction_id: turn.id }, async (files) => {
    showMade((await call<Chat>("POST", path, { interaction_id: turn.id, ...files })).id, box, false);
  }));
}
export async function removeBranch(turn: Turn): Promise<void> {
  await attempt(async () => {
    const { interactions } = await call<BranchRemoved>("DELETE", turnPath(turn.chat, turn.id));
    const chat = known(turn.chat);
    for (const id of interactions) chat?.turns.delete(id);
    if (chat) chat.shape++;
    tell(t.removedBranch(interactions.length));
  });
}
