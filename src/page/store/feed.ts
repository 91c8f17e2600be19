// What the server tells: its frames come in here and change the cache, so that all windows show the same.
import { t } from "../texts";
import type { ChatChange, ChatEvent, ChatList, Interaction, Models } from "../wire";
import { get, turnPath, whenLoggedOut } from "../wire/api";
import type { Connection, Frame } from "../wire/stream";
import { cache, forget, isFollowed, known, learn, load, lose, readInstructions, readQueue, readTools, reset, stream, takeEvent, turnOf } from "./cache";
import { leave, openChat, startNavigation } from "./navigation";
import { attempt, changed, say, state, tell } from "./state";
import { Chat, isRunning, PendingApproval, PendingInput } from "./turn";
import { forgetWords, giveBackWords } from "./words";

const AGAIN = 3000; // ms until chats that could not be read are asked for again
const MOST_CLOSED = 20; // approvals that are listed as answered elsewhere

export const feed = state({ connection: "connecting" as Connection, loggedOut: false, whyLoggedOut: "" });

export const deletesHere = new Set<string>(); // chats that this window is deleting
let hasRead = false;
let meanwhile: [string, ChatChange][] | null = null; // changes that came while everything is read

export function start(): void {
  whenLoggedOut((whyLoggedOut) => feed.set({ loggedOut: true, whyLoggedOut }));
  stream.start(onFrames, (connection) => feed.set({ connection })); // its first frame makes the page read everything
  startNavigation();
}

// `show` is given the newest ones as soon as they are known.
export async function readChats(show?: (newest: Map<string, Chat>) => void): Promise<Map<string, Chat>> {
  const chats = new Map<string, Chat>();
  for (let cursor = ""; ;) {
    const page = await get<ChatList>(`/chats?limit=500${cursor}`);
    for (const chat of page.chats) if ("title" in chat) chats.set(chat.id, chat);
    if (!page.next) return chats;
    if (!cursor) show?.(new Map(chats));
    cursor = `&cursor=${encodeURIComponent(page.next)}`;
  }
}

// Runs after the feed has begun, so that no change is missed. Changes from the feed meanwhile are newer than those read.
async function readAll(): Promise<void> {
  const news: [string, ChatChange][] = [];
  meanwhile = news;
  await attempt(async () => {
    const chats = await readChats((newest) => {
      if (cache.chats.size === 0) cache.set({ chats: newest, version: cache.version + 1 });
    });
    cache.set({ chats, version: cache.version + 1 });
    const waiting = await get<{ approvals: PendingApproval[]; inputs: PendingInput[] }>("/approvals");
    cache.set({
      approvals: new Map(waiting.approvals.map((each) => [each.approval_id, each])),
      inputs: new Map(waiting.inputs.map((each) => [each.request_id, each])),
    });
    for (const id of cache.approvals.keys()) seenWaiting.add(id);
    for (const [event, data] of news) keep(event, data);
    forgetWords((each) => !cache.chats.has(each.chat));
    giveBackWords(isAsked);
    if (meanwhile === news) meanwhile = null;
    hasRead = true;
    await readTools();
    cache.set({ models: await get<Models>("/models") });
    await readInstructions();
  });
  if (meanwhile === news) meanwhile = null;
  if (!hasRead && !feed.loggedOut) setTimeout(onOpen, AGAIN);
}

function onFrames(frames: Frame[]): void {
  for (const { event, data } of frames) {
    if (event === "chat_event") onEvent(data as ChatEvent);
    else if (event === "reset") onReset();
    else if (event !== "open") onChange(event, data as ChatChange);
    else onOpen();
  }
  changed();
}

// The feed is connected (again): reads what could not be read before.
function onOpen(): void {
  if (!hasRead && !meanwhile) void readAll();
  const { open } = cache;
  if (!open) return;
  if (open.unread) void load(open);
  for (const turn of open.turns.values()) if (turn.message === null || turn.waiting) void learn(open, turn);
}

function onReset(): void {
  hasRead = false;
  void readAll();
  reset();
}

function onEvent(data: ChatEvent): void {
  const turn = takeEvent(data);
  if (turn && data.event.type === "INTERACTION_COMPLETE" && data.chat_id === cache.open?.id) say(t.answerComplete(turn.status));
}

function onChange(event: string, data: ChatChange): void {
  meanwhile?.push([event, data]);
  const title = cache.chats.get(data.chat_id)?.title;
  keep(event, data);
  if (event === "approval_opened" && data.approval) say(t.approvalFor(data.approval.tool_name));
  if (event === "input_opened") say(t.questionWaits);
  if (event === "chat_deleted") {
    const isOpen = cache.open?.id === data.chat_id, isMine = deletesHere.delete(data.chat_id);
    if (isOpen && !isMine) lose(data.chat_id), tell(t.wasDeleted(title || t.untitled));
    else if (isOpen) leave(); // which keeps it for a while
    if (cache.open?.id !== data.chat_id) forget(data.chat_id);
    forgetWords((each) => each.chat === data.chat_id);
  }
  for (const approval of unlearned) {
    if (approval.chat_id === data.chat_id && unlearned.delete(approval)) void learnHow(approval);
  }
  if (event === "interaction_ended") void readInstructions(); // the agent may have written some
  const chat = known(data.chat_id);
  if (chat?.missing && data.chat) void load(chat); // it is back
  if (event === "jobs_changed") cache.set({ jobChanges: cache.jobChanges + 1 });
  if (event === "queue_changed" && chat && chat === cache.open) void readQueue(chat);
  // A turn may begin and end while the feed is on its way to this chat.
  const ended = event === "interaction_ended" && data.interaction_id ? data.interaction_id : null;
  if (chat && ended && !isFollowed(chat.id)) chat.unread = true;
  else if (chat?.loaded && ended) {
    const turn = turnOf(chat, ended);
    if (isRunning(turn)) void learn(chat, turn);
  }
  if (event === "head_moved" && chat && data.chat?.head && !chat.turns.has(data.chat.head)) {
    if (chat === cache.open) void load(chat);
    else chat.unread = true;
  }
  notify(event, data);
}

function keep(event: string, data: ChatChange): void {
  if (data.chat) cache.chats.set(data.chat_id, data.chat);
  else cache.chats.delete(data.chat_id);
  cache.set({ version: cache.version + 1 });
  if (event === "approval_opened" && data.approval) {
    cache.set({ approvals: new Map(cache.approvals).set(data.approval.approval_id, data.approval) });
    seenWaiting.add(data.approval.approval_id);
  }
  if (event === "approval_closed" && data.approval_id) closeApproval(data.approval_id);
  if (event === "input_opened" && data.request) cache.set({ inputs: new Map(cache.inputs).set(data.request.request_id, data.request) });
  if (event === "input_closed" && data.request_id) cache.set({ inputs: without(cache.inputs, data.request_id) });
  const closed = data.approval_id ?? data.request_id;
  if (event.endsWith("_closed") && closed) giveBack(closed);
}
const without = <T>(map: Map<string, T>, key: string): Map<string, T> => new Map([...map].filter(([each]) => each !== key));

// --- approvals that are answered here or elsewhere
const seenWaiting = new Set<string>();
const answeredHere = new Set<string>();
const unlearned = new Set<PendingApproval>(); // closed, and it is not known yet how

const isAsked = (id: string): boolean => cache.approvals.has(id) || cache.inputs.has(id) || answeredHere.has(id);
// Notes that this window answers an approval or a question, and takes that back if the answer was refused. Then what was written for it is given back if it waits no more.
export function answersHere(id: string, does: boolean): void {
  if (does) return void answeredHere.add(id);
  answeredHere.delete(id);
  giveBack(id);
}
const giveBack = (id: string): void => giveBackWords((row) => row !== id || isAsked(row));
export const wasAnsweredElsewhere = (approval: string): boolean => seenWaiting.has(approval) && !answeredHere.has(approval);

function closeApproval(id: string): void {
  const approval = cache.approvals.get(id);
  cache.set({ approvals: without(cache.approvals, id) });
  if (approval && !answeredHere.has(id)) void learnHow(approval);
}
// Finds out how an approval was answered: the feed does not say, but the interaction does.
async function learnHow(approval: PendingApproval): Promise<void> {
  await attempt(async () => {
    const { agent_events, completed_at } = await get<Interaction>(turnPath(approval.chat_id, approval.interaction_id));
    const ends = agent_events.find((each) => (each.type === "APPROVED" || each.type === "REJECTED") && each.approval_id === approval.approval_id);
    // The feed is faster than the record: the next change of this chat brings the answer.
    if (!ends && !completed_at) return void unlearned.add(approval);
    const how = !ends ? t.notAnswered : ends.type === "APPROVED" ? t.approved(t.scopes[ends.scope] ?? "", ends.scope) : "expired" in ends && ends.expired ? t.expired : t.rejected;
    cache.set({ closed: [{ approval, how }, ...cache.closed].slice(0, MOST_CLOSED) });
  });
}

// --- notifications of the desktop: if people asked for them and the window is hidden. The text says nothing of the conversation.
function notify(event: string, data: ChatChange): void {
  if (!document.hidden || localStorage.getItem("notify") !== "on" || typeof Notification === "undefined") return;
  const text = event === "approval_opened" ? t.approvalNeeded : event === "input_opened" ? t.questionWaits : event === "interaction_ended" ? t.answerReady : "";
  if (!text || Notification.permission !== "granted") return;
  try {
    new Notification("Reprise", { body: text, tag: data.chat_id }).onclick = () => {
      window.focus();
      openChat(data.chat_id);
    };
  } catch {
    // Some phones show only the notices of service workers.
  }
}
