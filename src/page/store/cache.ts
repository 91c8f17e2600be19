// What the server has told: chats, what waits for people, what the server runs with, and the turns of the chats that were looked at. It reads what is missing.
import type { ChatEvent, ChatHistory, Instructions, Interaction, Models, QueuedEntry, Tools } from "../wire";
import { ApiError, call, chatPath, get, isNotFound, noneIfNew, turnPath } from "../wire/api";
import { byNumber, listed, newChat, nextId, OpenChat, sizeOf, treeOf, trim, UNSENT, unsentOf } from "./open";
import { Feed } from "../wire/stream";
import { attempt, changed, state, useSelect } from "./state";
import { AgentEvent, blank, Chat, isRunning, newTurn, NONE, PendingApproval, PendingInput, take, Turn } from "./turn";

const PAGE = 60; // turns
const AGAIN = 20; // turns that are read once more at a time
const MOST_FOLLOWED = 4; // chats whose events all come, the last that were looked at
const MOST_HELD = 6_000_000; // characters of one chat
const MOST_KEPT = 16_000_000; // characters of chats opened before

// An approval that is no longer open, and the way that it was closed.
interface ClosedApproval {
  approval: PendingApproval;
  how: string;
}

export const cache = state({
  chats: new Map<string, Chat>(),
  version: 0, // of `chats`
  jobChanges: 0, // that the server told of: a job has begun or ended, or a port of one was opened or closed
  approvals: new Map<string, PendingApproval>(), // the maps of what waits are replaced, not changed
  inputs: new Map<string, PendingInput>(),
  closed: [] as ClosedApproval[], // answered elsewhere while this window was open, newest first
  models: { models: [], default: "", audio: { transcription: null, speech: null, talk: null } } as Models,
  tools: null as Tools | null,
  instructions: [] as Instructions["files"], // the files of instructions for agents here
  open: null as OpenChat | null, // the chat that is shown
  box: 0, // of what is written: another one when another chat is shown, but not when the chat on the screen begins
});

const kept = new Map<string, OpenChat>(); // those that were looked at before, the last one last
let followed: readonly string[] = [];
export const stream = new Feed();

export const useOpen = (): OpenChat | null => useSelect(() => cache.open);
export const useChat = (): Chat | null => useSelect(openEntry);
export const useBranch = (): readonly Turn[] => useSelect(branch);
// Any chat has changed.
export const useChats = (): Map<string, Chat> => (useSelect(() => cache.version), cache.chats);

export const known = (chat: string): OpenChat | undefined => (cache.open?.id === chat ? cache.open : kept.get(chat));
// A chat that was never shown, to be known like those that were.
export const hold = (id: string): void => void kept.set(id, newChat(id));
// Another window has kept a message, or sent one that was kept.
addEventListener("storage", (e) => {
  const chat = e.key?.startsWith(UNSENT) && known(e.key.slice(UNSENT.length));
  if (chat) chat.unsent = unsentOf(chat.id), changed();
});
// The entry of the chat that is shown, in the list of chats.
export const openEntry = (): Chat | null => (cache.open && cache.chats.get(cache.open.id)) ?? null;
// Whether the server has no such chat as the one that is shown: nothing may be sent to it, which would begin another one of its name.
export const isGone = (): boolean => (cache.open?.missing ?? false) && !openEntry();
// As the server orders them.
const byAge = (a: Chat, b: Chat): number => (a.updated_at < b.updated_at ? 1 : a.updated_at > b.updated_at || a.id < b.id ? -1 : 1);

const rank = (chat: Chat): number => (chat.status !== "idle" ? 0 : chat.shelf === "pinned" ? 1 : chat.shelf === "archived" ? 3 : 2);

// Chats in the order of the list: busy and waiting ones first, then pinned ones, then the newest, archived ones last.
export const inOrder = (chats: Iterable<Chat>): Chat[] => [...chats].sort((a, b) => rank(a) - rank(b) || byAge(a, b));

// --- the server itself
const instructed = { may: true, reads: false, again: false, folder: undefined as string | undefined };
const ofFolder = (): string => (instructed.folder === undefined || instructed.folder === cache.tools?.workspace ? "" : `?workspace=${encodeURIComponent(instructed.folder)}`);

// The instructions of another folder are shown from now on.
export function instructBy(folder: string | undefined): void {
  const before = ofFolder();
  instructed.folder = folder;
  if (ofFolder() === before) return;
  cache.set({ instructions: [] });
  void readInstructions();
}
// Some users may not see them.
export async function readInstructions(): Promise<void> {
  if (!instructed.may) return;
  if (instructed.reads) return void (instructed.again = true);
  instructed.reads = true;
  do {
    instructed.again = false;
    try {
      const folder = ofFolder();
      const { files } = await get<Instructions>(`/instructions${folder}`);
      if (folder === ofFolder()) cache.set({ instructions: files });
    } catch (error) {
      instructed.may = !(error instanceof ApiError && error.code === "operator_only");
    }
  } while (instructed.again && instructed.may);
  instructed.reads = false;
}
// As it was shown. False: it has changed since, or could not be allowed.
export async function trust(path: string, digest: string): Promise<boolean> {
  const done = await attempt(async () => cache.set({ instructions: (await call<Instructions>("POST", `/instructions/trust${ofFolder()}`, { path, digest })).files }));
  if (!done) await readInstructions();
  return done;
}
export const readTools = async (): Promise<void> => cache.set({ tools: await get<Tools>("/tools") });

// --- which chat is shown, and which are kept
// A chat that begins now (`isNew`) has nothing to be read, and keeps what is written on the screen.
export function show(id: string | null, isNew = false): void {
  if (cache.open?.id === id) return;
  putAway();
  const box = isNew && !cache.open ? cache.box : cache.box + 1;
  if (id === null) return cache.set({ open: null, box });
  const chat = kept.get(id) ?? newChat(id);
  kept.delete(id);
  cache.set({ open: chat, box });
  follow(id);
  // What has been followed all along is there already.
  if (isNew) chat.loaded = !(chat.unread = false);
  else if (chat.unread) void load(chat);
  else void readQueue(chat);
}
// A chat that is no longer shown is kept for a while, the largest part of the last ones.
function putAway(): void {
  const { open } = cache;
  if (!open) return;
  kept.set(open.id, open);
  trim(open, new Set(), MOST_HELD);
  let size = 0;
  for (const chat of [...kept.values()].reverse()) {
    size += sizeOf(chat);
    if (size > MOST_KEPT && chat !== open) forget(chat.id);
  }
}
// The chat was deleted elsewhere while it is shown: only what is being written for it stays.
export const lose = (chat: string): void => cache.set({ open: { ...newChat(chat), loaded: true, unread: false, missing: true } });
export function forget(chat: string): void {
  kept.delete(chat);
  followed = followed.filter((each) => each !== chat);
}
function follow(id: string): void {
  if (followed.includes(id)) return;
  const chats = [...followed, id];
  for (const gone of chats.slice(0, -MOST_FOLLOWED)) {
    const chat = kept.get(gone);
    if (chat) chat.unread = true;
  }
  stream.follow((followed = chats.slice(-MOST_FOLLOWED)));
}
export const isFollowed = (chat: string): boolean => followed.includes(chat);
// Lets go of turns that are far from what is read, if there are too many.
export function tend(near: Set<string>): void {
  if (cache.open) trim(cache.open, near, MOST_HELD);
}

// --- the turns of a chat
// The turn with this id: a new one if nothing of it has been told yet.
export function turnOf(chat: OpenChat, id: string): Turn {
  let turn = chat.turns.get(id);
  if (!turn) chat.turns.set(id, (turn = newTurn(chat.id, id)));
  return turn;
}

export function takeEvent(data: ChatEvent): Turn | null {
  const chat = known(data.chat_id);
  if (!chat) return null;
  const isKnown = chat.turns.has(data.interaction_id);
  const turn = turnOf(chat, data.interaction_id);
  if (!isKnown) void learn(chat, turn);
  const event = data.event as unknown as AgentEvent;
  if (turn.stale && event.seq === 1) blank(turn);
  if (event.type === "INTERACTION_STARTED") chat.shape++;
  if (turn.waiting) {
    turn.waiting.push(event);
  } else if (turn.stale || (turn.lastSeq === NONE && event.seq > 1)) {
    turn.waiting = [event]; // the events before it are read first
    void learn(chat, turn);
  } else if (turn.held) {
    take(turn, event, true);
  }
  return turn;
}

// The feed does not repeat the message.
export async function learn(chat: OpenChat, turn: Turn): Promise<void> {
  await attempt(async () => {
    fill(chat, turn, await get<Interaction>(turnPath(chat.id, turn.id)));
    changed();
  });
}

function fill(chat: OpenChat, turn: Turn, from: Interaction): void {
  const { parent_id, edited_from, model, attachments } = from;
  Object.assign(turn, { parent: parent_id, editedFrom: edited_from, whatIf: from.record?.what_if ?? null, message: from.user_message, attachments: attachments ?? [], model, createdAt: from.created_at });
  if (turn.stale || !turn.held || turn.waiting) blank(turn);
  // The first and last event arrive during the run but are not stored, so they are made again here. An imported chat has stored its first event.
  const about = { round_index: 0, interaction_id: from.id };
  take(turn, { ...about, type: "INTERACTION_STARTED", seq: from.agent_events[0]?.seq === 1 ? 0 : 1, at: from.created_at, chat_id: chat.id, parent_id, edited_from, model, ...(attachments && { attachments }) });
  for (const event of from.agent_events) take(turn, event as AgentEvent);
  if (from.completed_at && (from.status === "COMPLETED" || from.status === "FAILED" || from.status === "CANCELLED")) {
    take(turn, { ...about, type: "INTERACTION_COMPLETE", seq: turn.lastSeq + 1, at: from.completed_at, status: from.status });
  }
  for (const event of turn.waiting ?? []) take(turn, event, true);
  turn.waiting = null;
  // The answer to a request may be older than the events that have come by the feed.
  if (isRunning(turn)) turn.status = from.status;
  turn.version++;
  chat.shape++;
  if (chat.sent !== null && chat.sent === from.user_message) chat.sent = null;
}

const readPage = (chat: OpenChat, limit: number, before?: string): Promise<ChatHistory> =>
  get<ChatHistory>(`${chatPath(chat.id)}?branches=all&state=none&limit=${limit}${before ? `&before=${before}` : ""}`);

function takeIn(chat: OpenChat, page: ChatHistory): void {
  for (const interaction of page.interactions) fill(chat, turnOf(chat, interaction.id), interaction);
  changed();
}

export function load(chat: OpenChat, before?: string): Promise<void> {
  return once(chat, before ?? "newest", async (isAsked) => {
    try {
      const page = await readPage(chat, PAGE, before);
      if (!isAsked()) return;
      takeIn(chat, page);
      chat.missing = false;
      // A chat that was read before knows how far that went.
      if (before || !chat.loaded) chat.previous = page.previous ?? null;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      chat.missing = true;
    }
    if (!before) {
      for (const turn of chat.turns.values()) if (turn.stale && !isRunning(turn)) blank(turn, false);
      chat.unread = false;
    }
    chat.loaded = true;
    changed();
    if (!before) await readQueue(chat);
  });
}
// A second request for the same waits for the first. After a reset the answers to earlier requests do not count.
function once(chat: OpenChat, name: string, read: (isAsked: () => boolean) => Promise<void>): Promise<void> {
  const { reading } = chat;
  const before = reading.get(name);
  if (before) return before;
  const work = attempt(() => read(() => chat.reading === reading)).then(() => void reading.delete(name));
  reading.set(name, work);
  return work;
}
export const earlier = (chat: OpenChat): Promise<void> => (chat.previous ? load(chat, chat.previous) : Promise.resolve());
// Reads turns again that were let go: this one and some before it.
export async function need(turn: Turn): Promise<void> {
  const chat = known(turn.chat);
  if (!chat || turn.held) return;
  await once(chat, turn.id, async (isAsked) => {
    const page = await readPage(chat, AGAIN, nextId(chat, turn.id));
    if (isAsked()) takeIn(chat, page);
  });
}
// All turns of the chat that is shown, to look for something in it. Turns that are not held are read, and not kept.
export async function* allTurns(chat: OpenChat): AsyncGenerator<readonly Turn[]> {
  for (let before = chat.previous; before; before = chat.previous) {
    await earlier(chat);
    if (chat.previous === before) return; // the server cannot be reached
    trim(chat, new Set(), MOST_HELD);
  }
  const turns = branch();
  for (let i = 0; i < turns.length;) {
    const turn = turns[i]!;
    if (turn.held) {
      i++;
      yield [turn];
      continue;
    }
    // Reads the page that ends with the last of these turns.
    const part = turns.slice(i, i + AGAIN);
    const page = await readPage(chat, AGAIN, nextId(chat, part[part.length - 1]!.id));
    yield page.interactions.filter((each) => part.some((one) => one.id === each.id)).map((each) => {
      const one = newTurn(chat.id, each.id);
      one.message = each.user_message;
      for (const event of each.agent_events) take(one, event as AgentEvent);
      return one;
    });
    i += part.length;
  }
}

// What could not be read is read when the chat is shown again.
export async function readQueue(chat: OpenChat): Promise<void> {
  const is = await attempt(async () => (chat.queue = (await get<{ queue: QueuedEntry[] }>(`${chatPath(chat.id)}/queue`).catch(noneIfNew({ queue: [] }))).queue));
  if (!is) chat.unread = true;
  changed();
}

// What the server told before a reset does not hold any more. What people have begun to write in a chat stays.
export function reset(): void {
  const { open } = cache;
  for (const chat of open ? [...kept.values(), open] : kept.values()) {
    chat.unread = true;
    chat.reading = new Map(); // drops the requests under way
    for (const turn of chat.turns.values()) turn.stale = true;
  }
  if (open) void load(open);
}

// --- the branch that is shown
const NOTHING: readonly Turn[] = [];

// Its turns, oldest first: the same list as long as it has the same turns.
export function branch(): readonly Turn[] {
  const { open } = cache;
  if (!open) return NOTHING;
  let running: Turn | null = null;
  for (const turn of open.turns.values()) if (isRunning(turn) && !turn.stale && (!running || byNumber(running.id, turn.id) < 0)) running = turn;
  const head = openEntry()?.head ?? null;
  return listed(open, running?.id ?? (head && open.turns.has(head) ? head : null));
}
export function lastTurn(): Turn | undefined {
  const turns = branch();
  return turns[turns.length - 1];
}
// All versions of the turn, in their order.
export function siblings(turn: Turn): Turn[] {
  const all = cache.open && treeOf(cache.open).get(turn.parent)?.filter((each) => each.message !== "");
  return all && all.length > 0 ? all : [turn];
}
export function leafOf(turn: Turn): Turn {
  const tree = cache.open && treeOf(cache.open);
  for (let at = turn; ;) {
    const children: Turn[] | undefined = tree?.get(at.id);
    if (!children) return at;
    at = children[children.length - 1]!;
  }
}
