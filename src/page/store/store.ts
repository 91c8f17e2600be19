// The whole state of the page. The server's changes arrive by the feed. People's actions go out as requests, and their
// effects also come back by the feed, so that all windows show the same.
import { useSyncExternalStore } from "react";
import { isNarrow } from "../parts/useNarrow";
import { t } from "../texts";
import type { BranchRemoved, ChangeChatRequest, ChatChange, ChatEvent, ChatHistory, ChatList, FilesPreview, Instructions, Interaction, Models, QueuedEntry, Tools, Trash } from "../wire";
import { ApiError, begin, call, chatPath, get, turnPath, whenLoggedOut } from "../wire/api";
import { Connection, Feed, Frame } from "../wire/stream";
import { byNumber, listed, newChat, nextId, OpenChat, sizeOf, Tree, trim, treeOf } from "./open";
import { blank, isRunning, newTurn, NONE, take, Turn } from "./turn";
import { keepUnsent, Unsent } from "./unsent";
import type { AgentEvent, Chat, FilesChoice, PendingApproval, PendingInput } from "./types";

export type { OpenChat } from "./open";

const PAGE = 60; // turns
const AGAIN = 20; // turns per request when reading them again
const MOST_FOLLOWED = 4; // the chats opened last, whose every event arrives
const MOST_HELD = 6_000_000; // characters of one chat
const MOST_KEPT = 16_000_000; // characters of chats opened before

export interface Toast {
  id: number;
  text: string;
  action?: { label: string; run: () => void };
}

export type View = "chat" | "inbox" | "board" | "trace" | "branches" | "settings" | "trash";

// An approval that is no longer open, and the reason.
export interface ClosedApproval {
  approval: PendingApproval;
  how: string;
}

// A turn to scroll to, with its place in the window and the element to focus. Without these it is shown at the top and marked.
export interface Target {
  chat: string;
  turn: string;
  below?: number; // pixels from the upper edge
  focus?: string; // test id of a button in its head
}

// A pending move of the chat to another state, while the person is asked whether to restore files too.
export interface AskedFiles {
  chat: string;
  from: string | null; // the chat's last turn at that time
  what: string;
  preview: FilesPreview;
  run: (files: FilesChoice) => Promise<void>;
}

// A typed address may not be encoded; then it is the name itself.
function nameIn(hash: string): string {
  try {
    return decodeURIComponent(hash.slice(1));
  } catch {
    return hash.slice(1);
  }
}

class Store {
  chats = new Map<string, Chat>();
  approvals = new Map<string, PendingApproval>();
  inputs = new Map<string, PendingInput>();
  open: OpenChat | null = null;
  private readonly kept = new Map<string, OpenChat>(); // chats opened before, the latest last
  private followed: string[] = [];
  chatsVersion = 0; // changes with `chats`
  view: View = "chat";
  connection: Connection = "connecting";
  loggedOut = false;
  whyLoggedOut = "";
  models: Models = { models: [], default: "", audio: { transcription: null, speech: null } };
  tools: Tools | null = null;
  instructions: Instructions["files"] = []; // files of instructions for agents
  private readonly instructed = { may: true, reads: false, again: false };
  toasts: Toast[] = [];
  private spoken = "";
  // The text for screen readers. Setting the same text again reads it again.
  get said(): string {
    return this.spoken;
  }
  set said(text: string) {
    this.spoken = text === this.spoken ? `${text}\u00a0` : text;
  }
  hideTools = false;
  finding = false; // whether the find bar is open
  dialog: "palette" | "help" | null = null;
  menu: boolean | null = null; // the list of chats: true: shown over a narrow window; false: hidden in a wide one; null: as the width decides
  wish: string | null = null; // a text for the composer
  dropping = false; // whether files are dragged over the page
  dropped: File[] = []; // dropped files, for the composer
  editing: string | null = null; // the turn whose message is being edited
  askedFiles: AskedFiles | null = null; // whether to restore files with a move of the chat
  target: Target | null = null; // the turn to scroll to
  began = 0; // number of turns begun here, each of which is shown as it arrives
  closed: ClosedApproval[] = []; // answered elsewhere while this window was open, newest first
  readonly answeredHere = new Set<string>();
  private readonly seenWaiting = new Set<string>();
  private readonly unlearned = new Set<PendingApproval>(); // closed for a reason not known yet
  fresh: ChangeChatRequest = {}; // settings for a chat that does not exist yet
  private hasRead = false;
  private meanwhile: [string, ChatChange][] | null = null; // changes that arrive while everything is read

  private version = 0;
  private frame = 0;
  private readonly listeners = new Set<() => void>();
  private toastNumber = 0;
  readonly feed = new Feed((frames) => this.onFrames(frames), (state) => this.set({ connection: state }));

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
  snapshot = (): number => this.version;

  // Draws once per frame, however much has changed. A hidden window has no frames.
  changed(): void {
    if (this.frame !== 0) return;
    this.frame = 1;
    const draw = (): void => {
      this.frame = 0;
      this.version++;
      for (const listener of [...this.listeners]) listener();
    };
    if (document.hidden) setTimeout(draw, 100);
    else requestAnimationFrame(draw);
  }
  set(change: Partial<Store>): void {
    Object.assign(this, change);
    this.changed();
  }

  // --- beginning
  start(): void {
    whenLoggedOut((whyLoggedOut) => this.set({ loggedOut: true, whyLoggedOut }));
    this.feed.start(); // its first event reads everything
    addEventListener("popstate", () => this.showAddress());
    this.showAddress();
  }

  // Runs after the feed has begun, so that no change is missed. Changes from the feed meanwhile are newer than those read.
  async readAll(): Promise<void> {
    const news: [string, ChatChange][] = [];
    this.meanwhile = news;
    await this.attempt(async () => {
      const chats = new Map<string, Chat>();
      for (let cursor = ""; ;) {
        const page = await get<ChatList>(`/chats?limit=500${cursor}`);
        for (const chat of page.chats) if ("title" in chat) chats.set(chat.id, chat);
        if (!page.next) break;
        cursor = `&cursor=${encodeURIComponent(page.next)}`;
      }
      this.chats = chats;
      this.chatsVersion++;
      const waiting = await get<{ approvals: PendingApproval[]; inputs: PendingInput[] }>("/approvals");
      this.approvals = new Map(waiting.approvals.map((each) => [each.approval_id, each]));
      for (const id of this.approvals.keys()) this.seenWaiting.add(id);
      this.inputs = new Map(waiting.inputs.map((each) => [each.request_id, each]));
      for (const [event, data] of news) this.keep(event, data);
      if (this.meanwhile === news) this.meanwhile = null;
      this.hasRead = true;
      this.changed();
      await this.readTools();
      this.models = await get<Models>("/models");
      this.changed();
      await this.readInstructions();
    });
    if (this.meanwhile === news) this.meanwhile = null; // failed: tried again when the feed is back
  }

  // Some users may not see them.
  async readInstructions(): Promise<void> {
    const { instructed } = this;
    if (!instructed.may) return;
    if (instructed.reads) return void (instructed.again = true);
    instructed.reads = true;
    do {
      instructed.again = false;
      try {
        this.set({ instructions: (await get<Instructions>("/instructions")).files });
      } catch (error) {
        instructed.may = !(error instanceof ApiError && error.status === 403);
      }
    } while (instructed.again && instructed.may);
    instructed.reads = false;
  }
  // Allows a file of instructions as shown. False if it has changed or could not be allowed.
  async trust(path: string, digest: string): Promise<boolean> {
    const done = await this.attempt(async () => {
      this.set({ instructions: (await call<Instructions>("POST", "/instructions/trust", { path, digest })).files });
    });
    if (!done) await this.readInstructions();
    return done;
  }
  async readTools(): Promise<void> {
    this.tools = await get<Tools>("/tools");
    this.changed();
  }

  // --- events from the server
  private onFrames(frames: Frame[]): void {
    for (const { event, data } of frames) {
      if (event === "chat_event") this.onChatEvent(data as ChatEvent);
      else if (event === "reset") this.onReset();
      else if (event !== "open") this.onChange(event, data as ChatChange);
      else this.onOpen();
    }
    this.changed();
  }

  // The feed is connected (again): reads what could not be read before.
  private onOpen(): void {
    if (!this.hasRead && !this.meanwhile) void this.readAll();
    const { open } = this;
    if (!open) return;
    if (open.unread) void this.load(open);
    for (const turn of open.turns.values()) if (turn.message === null || turn.waiting) void this.learn(open, turn);
  }

  // Earlier events are no longer valid.
  private onReset(): void {
    this.hasRead = false;
    void this.readAll();
    this.kept.clear();
    const { open } = this;
    if (!open) return;
    open.unread = true;
    open.reading = new Map(); // drops the requests under way
    for (const turn of open.turns.values()) turn.stale = true;
    void this.load(open);
  }

  private known(chat: string): OpenChat | undefined {
    return this.open?.id === chat ? this.open : this.kept.get(chat);
  }

  private onChatEvent(data: ChatEvent): void {
    const chat = this.known(data.chat_id);
    if (!chat) return;
    let turn = chat.turns.get(data.interaction_id);
    if (!turn) {
      turn = newTurn(data.chat_id, data.interaction_id);
      chat.turns.set(turn.id, turn);
      void this.learn(chat, turn);
    }
    const event = data.event as unknown as AgentEvent;
    if (turn.stale && event.seq === 1) blank(turn);
    if (event.type === "INTERACTION_STARTED") chat.shape++;
    if (turn.waiting) {
      turn.waiting.push(event);
    } else if (turn.stale || (turn.lastSeq === NONE && event.seq > 1)) {
      turn.waiting = [event]; // earlier events are read first
      void this.learn(chat, turn);
    } else if (turn.held) {
      take(turn, event, true);
    }
    if (event.type === "INTERACTION_COMPLETE" && chat === this.open) this.said = t.answerComplete(turn.status.toLowerCase());
  }

  // Reads the interaction, because the feed does not repeat its message.
  private async learn(chat: OpenChat, turn: Turn): Promise<void> {
    await this.attempt(async () => {
      const interaction = await get<Interaction>(turnPath(chat.id, turn.id));
      this.fill(chat, turn, interaction);
      this.changed();
    });
  }

  private keep(event: string, data: ChatChange): void {
    this.chatsVersion++;
    if (data.chat) this.chats.set(data.chat_id, data.chat);
    else this.chats.delete(data.chat_id);
    if (event === "approval_opened" && data.approval) this.approvals.set(data.approval.approval_id, data.approval);
    if (event === "approval_opened" && data.approval) this.seenWaiting.add(data.approval.approval_id);
    if (event === "approval_closed" && data.approval_id) this.closeApproval(data.approval_id);
    if (event === "input_opened" && data.request) this.inputs.set(data.request.request_id, data.request);
    if (event === "input_closed" && data.request_id) this.inputs.delete(data.request_id);
  }

  wasSeenWaiting(approval: string): boolean {
    return this.seenWaiting.has(approval);
  }
  private closeApproval(id: string): void {
    const approval = this.approvals.get(id);
    this.approvals.delete(id);
    if (approval && !this.answeredHere.has(id)) void this.learnHow(approval);
  }
  // Finds out how an approval was answered: the feed does not say, but the interaction does.
  private async learnHow(approval: PendingApproval): Promise<void> {
    await this.attempt(async () => {
      const { agent_events, completed_at } = await get<Interaction>(turnPath(approval.chat_id, approval.interaction_id));
      const ends = agent_events.find((each) => (each.type === "APPROVED" || each.type === "REJECTED") && each.approval_id === approval.approval_id);
      // The feed reports it before it is recorded, so look again at the chat's next event.
      if (!ends && !completed_at) return void this.unlearned.add(approval);
      const how = !ends ? t.notAnswered : ends.type === "APPROVED" ? t.approved(t.scopes[ends.scope] ?? "", ends.scope) : "expired" in ends && ends.expired ? t.expired : t.rejected;
      this.set({ closed: [{ approval, how }, ...this.closed].slice(0, 20) });
    });
  }

  private onChange(event: string, data: ChatChange): void {
    this.meanwhile?.push([event, data]);
    this.keep(event, data);
    if (event === "approval_opened" && data.approval) this.said = t.approvalFor(data.approval.tool_name);
    if (event === "input_opened") this.said = t.questionWaits;
    if (event === "chat_deleted") {
      this.forget(data.chat_id);
      if (this.open?.id === data.chat_id) this.leave();
    }
    for (const approval of this.unlearned) {
      if (approval.chat_id === data.chat_id && this.unlearned.delete(approval)) void this.learnHow(approval);
    }
    if (event === "interaction_ended") void this.readInstructions(); // the agent may have written some
    const chat = this.known(data.chat_id);
    if (event === "queue_changed" && chat && chat === this.open) void this.readQueue(chat);
    // An interaction that began and ended before the feed followed this chat.
    const ended = event === "interaction_ended" && data.interaction_id ? data.interaction_id : null;
    if (chat && ended && !this.followed.includes(chat.id)) chat.unread = true;
    else if (chat?.loaded && ended) {
      const turn = chat.turns.get(ended) ?? newTurn(chat.id, ended);
      chat.turns.set(ended, turn);
      if (isRunning(turn)) void this.learn(chat, turn);
    }
    if (event === "head_moved" && chat && data.chat?.head && !chat.turns.has(data.chat.head)) {
      if (chat === this.open) void this.load(chat);
      else chat.unread = true;
    }
    notify(event, data);
  }

  // --- the open chat
  private showAddress(): void {
    const name = nameIn(location.hash);
    if (name && name !== this.open?.id) this.openChat(name, false);
    else if (!name && this.open) this.leave(false);
  }

  openChat(id: string, remember = true, isNew = false): void {
    if (remember && nameIn(location.hash) !== id) history.pushState(null, "", `#${encodeURIComponent(id)}`);
    this.view = "chat";
    if (this.open?.id !== id) {
      this.putAway();
      const chat = this.kept.get(id) ?? newChat(id);
      this.kept.delete(id);
      this.open = chat;
      this.follow(id);
      // A chat that was followed all the time is up to date, and a new chat has nothing to read.
      if (isNew) chat.loaded = !(chat.unread = false);
      else if (chat.unread) void this.load(chat);
      else void this.readQueue(chat);
    }
    this.changed();
  }
  leave(remember = true): void {
    if (remember) history.pushState(null, "", location.pathname);
    this.putAway();
    this.open = null;
    this.view = "chat";
    this.changed();
  }

  // Keeps the chat that is left, and forgets the oldest kept ones if they take too much memory.
  private putAway(): void {
    if (!this.open) return;
    const { open } = this;
    this.kept.set(open.id, open);
    trim(open, new Set(), MOST_HELD);
    let size = 0;
    for (const chat of [...this.kept.values()].reverse()) {
      size += sizeOf(chat);
      if (size > MOST_KEPT && chat !== open) this.forget(chat.id);
    }
  }
  private forget(chat: string): void {
    this.kept.delete(chat);
    this.followed = this.followed.filter((each) => each !== chat);
  }
  private follow(id: string): void {
    if (!this.followed.includes(id)) {
      const chats = [...this.followed, id];
      for (const gone of chats.slice(0, -MOST_FOLLOWED)) {
        const chat = this.kept.get(gone);
        if (chat) chat.unread = true;
      }
      this.followed = chats.slice(-MOST_FOLLOWED);
    }
    this.feed.follow(this.followed);
  }
  // Lets go of turns far from the reader when there are too many.
  tend(near: Set<string>): void {
    if (this.open) trim(this.open, near, MOST_HELD);
  }

  private fill(chat: OpenChat, turn: Turn, from: Interaction): void {
    turn.parent = from.parent_id;
    turn.editedFrom = from.edited_from;
    turn.message = from.user_message;
    turn.attachments = from.attachments ?? [];
    turn.model = from.model;
    turn.createdAt = from.created_at;
    if (turn.stale || !turn.held || turn.waiting) blank(turn);
    // The first and last event arrive during the run but are not stored, so they are made again here. An imported chat has stored its first event.
    const { parent_id, edited_from, model, attachments } = from;
    const about = { round_index: 0, interaction_id: from.id };
    take(turn, { ...about, type: "INTERACTION_STARTED", seq: from.agent_events[0]?.seq === 1 ? 0 : 1, at: from.created_at, chat_id: chat.id, parent_id, edited_from, model, ...(attachments && { attachments }) });
    for (const event of from.agent_events) take(turn, event as AgentEvent);
    if (from.completed_at && (from.status === "COMPLETED" || from.status === "FAILED" || from.status === "CANCELLED")) {
      take(turn, { ...about, type: "INTERACTION_COMPLETE", seq: turn.lastSeq + 1, at: from.completed_at, status: from.status });
    }
    for (const event of turn.waiting ?? []) take(turn, event, true);
    turn.waiting = null;
    // The answer may be older than events from the feed.
    if (isRunning(turn)) turn.status = from.status;
    turn.version++;
    chat.shape++;
    if (chat.sent !== null && chat.sent === from.user_message) chat.sent = null;
  }

  private async page(chat: OpenChat, limit: number, before?: string): Promise<ChatHistory> {
    return get<ChatHistory>(`${chatPath(chat.id)}?branches=all&state=none&limit=${limit}${before ? `&before=${before}` : ""}`);
  }
  private takeIn(chat: OpenChat, page: ChatHistory): void {
    for (const interaction of page.interactions) {
      let turn = chat.turns.get(interaction.id);
      if (!turn) chat.turns.set(interaction.id, (turn = newTurn(chat.id, interaction.id)));
      this.fill(chat, turn, interaction);
    }
    this.changed();
  }

  load(chat: OpenChat, before?: string): Promise<void> {
    return this.once(chat, before ?? "newest", async (isAsked) => {
      try {
        const page = await this.page(chat, PAGE, before);
        if (!isAsked()) return;
        this.takeIn(chat, page);
        // Only the first page, or one before the known turns, says where earlier ones begin.
        if (before || !chat.loaded) chat.previous = page.previous ?? null;
      } catch (error) {
        if (!(error instanceof ApiError && error.status === 404)) throw error;
      }
      if (!before) {
        for (const turn of chat.turns.values()) if (turn.stale && !isRunning(turn)) blank(turn, false);
        chat.unread = false;
      }
      chat.loaded = true;
      this.changed();
      if (!before) await this.readQueue(chat);
    });
  }
  // A second request for the same thing waits for the first. After a reset, answers to earlier requests are dropped.
  private once(chat: OpenChat, name: string, read: (isAsked: () => boolean) => Promise<void>): Promise<void> {
    const { reading } = chat;
    const known = reading.get(name);
    if (known) return known;
    const work = this.attempt(() => read(() => chat.reading === reading)).then(() => void reading.delete(name));
    reading.set(name, work);
    return work;
  }
  earlier(chat: OpenChat): Promise<void> {
    return chat.previous ? this.load(chat, chat.previous) : Promise.resolve();
  }
  // Reads turns again that were let go: this one and some before it.
  async need(turn: Turn): Promise<void> {
    const chat = this.known(turn.chat);
    if (!chat || turn.held) return;
    await this.once(chat, turn.id, async (isAsked) => {
      const page = await this.page(chat, AGAIN, nextId(chat, turn.id));
      if (isAsked()) this.takeIn(chat, page);
    });
  }
  // All turns of the chat, for a search. Turns that are not held are read but not kept.
  async *allTurns(chat: OpenChat): AsyncGenerator<Turn[]> {
    for (let before = chat.previous; before; before = chat.previous) {
      await this.earlier(chat);
      if (chat.previous === before) return; // the server cannot be reached
      trim(chat, new Set(), MOST_HELD);
    }
    const turns = this.branch();
    for (let i = 0; i < turns.length;) {
      const turn = turns[i]!;
      if (turn.held) {
        i++;
        yield [turn];
        continue;
      }
      // Reads the page that ends with the last of these turns.
      const part = turns.slice(i, i + AGAIN);
      const page = await this.page(chat, AGAIN, nextId(chat, part[part.length - 1]!.id));
      const read = page.interactions.filter((each) => part.some((one) => one.id === each.id)).map((each) => {
        const one = newTurn(chat.id, each.id);
        one.message = each.user_message;
        for (const event of each.agent_events) take(one, event as AgentEvent);
        return one;
      });
      yield read;
      i += part.length;
    }
  }

  private async readQueue(chat: OpenChat): Promise<void> {
    try {
      chat.queue = (await get<{ queue: QueuedEntry[] }>(`${chatPath(chat.id)}/queue`)).queue;
    } catch {
      chat.queue = [];
    }
    this.changed();
  }

  // The turns of the shown branch, oldest first.
  branch(): Turn[] {
    const chat = this.open;
    if (!chat) return [];
    let running: Turn | null = null;
    for (const turn of chat.turns.values()) if (isRunning(turn) && !turn.stale && (!running || byNumber(running.id, turn.id) < 0)) running = turn;
    const head = this.chats.get(chat.id)?.head ?? null;
    return [...listed(chat, running?.id ?? (head && chat.turns.has(head) ? head : null))];
  }
  private tree(): Tree | null {
    return this.open && treeOf(this.open);
  }
  siblings(turn: Turn): Turn[] {
    const all = this.tree()?.get(turn.parent)?.filter((each) => each.message !== "") ?? [];
    return all.length > 0 ? all : [turn];
  }
  leafOf(turn: Turn): Turn {
    const tree = this.tree();
    for (let at = turn; ;) {
      const children: Turn[] | undefined = tree?.get(at.id);
      if (!children) return at;
      at = children[children.length - 1]!;
    }
  }

  // --- people's actions
  async attempt(work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") return true;
      if (!(error instanceof TypeError)) this.tell(error instanceof Error ? error.message : String(error));
      return false;
    }
  }
  // The action of a toast runs once.
  act(toast: Toast): void {
    this.set({ toasts: this.toasts.filter((each) => each !== toast) });
    toast.action?.run();
  }
  toggleMenu(): void {
    const narrow = isNarrow();
    this.set({ menu: narrow ? (this.menu === true ? null : true) : this.menu === false ? null : false });
  }
  tell(text: string, action?: Toast["action"]): void {
    const toast = { id: ++this.toastNumber, text, action };
    this.set({ toasts: [...this.toasts.slice(-3), toast] });
    setTimeout(() => this.set({ toasts: this.toasts.filter((each) => each !== toast) }), action ? 10_000 : 6_000);
  }

  // The settings of the open chat alone.
  settings(): ChangeChatRequest {
    const chat = this.open && this.chats.get(this.open.id);
    return chat ? { approval_mode: chat.approval_mode, model: chat.chosen_model } : this.open ? {} : this.fresh;
  }
  async configure(settings: ChangeChatRequest): Promise<void> {
    const chat = this.open;
    if (!chat) return this.set({ fresh: { ...this.fresh, ...settings } });
    await this.attempt(() => call("PATCH", chatPath(chat.id), settings));
  }

  // The open chat, or a new one, to put something into.
  async chatToFill(): Promise<string | null> {
    // Settings must be stored before its first message.
    if (!this.open && Object.values(this.fresh).some((each) => each)) await this.newChat();
    else if (!this.open) this.openChat(`chat_${crypto.getRandomValues(new Uint32Array(3)).join("").slice(0, 20)}`, true, true);
    return this.open?.id ?? null;
  }
  async send(text: string, attachments: string[]): Promise<boolean> {
    await this.chatToFill();
    const chat = this.open;
    if (!chat) return false;
    const running = this.chats.get(chat.id)?.status !== "idle" && this.chats.has(chat.id);
    if (!running) chat.sent = text;
    this.changed();
    const body: Record<string, unknown> = { user_message: text };
    if (attachments.length > 0) body.attachments = attachments;
    if (running && attachments.length === 0) body.if_running = "queue";
    try {
      await begin(`${chatPath(chat.id)}/interactions`, body);
      return true;
    } catch (error) {
      chat.sent = null;
      this.changed();
      if (error instanceof TypeError) {
        // The server cannot be reached: keeps the message in the chat until somebody sends it again.
        chat.unsent = [...chat.unsent, { id: crypto.getRandomValues(new Uint32Array(2)).join("-"), text, attachments }];
        keepUnsent(chat.id, chat.unsent);
        return true;
      }
      this.tell(error instanceof Error ? error.message : String(error));
      return false;
    }
  }
  drop(unsent: Unsent): void {
    const chat = this.open;
    if (!chat) return;
    chat.unsent = chat.unsent.filter((each) => each.id !== unsent.id);
    keepUnsent(chat.id, chat.unsent);
    this.changed();
  }
  async sendAgain(unsent: Unsent): Promise<void> {
    this.drop(unsent);
    if (!(await this.send(unsent.text, unsent.attachments)) && this.open) {
      this.open.unsent = [...this.open.unsent, unsent];
      keepUnsent(this.open.id, this.open.unsent);
      this.changed();
    }
  }
  edit(turn: Turn, text: string, files: FilesChoice = {}): Promise<boolean> {
    return this.beginFrom(turn, "edit", { new_user_message: text, ...files });
  }
  again(turn: Turn, how: "regenerate" | "resume", model = ""): Promise<boolean> {
    return this.beginFrom(turn, how, model ? { model } : {});
  }
  // Begins a turn from another one. The new turn is the chat's last, and the view moves to it.
  private beginFrom(turn: Turn, how: string, body: Record<string, unknown>): Promise<boolean> {
    return this.attempt(async () => {
      await begin(`${turnPath(turn.chat, turn.id)}/${how}`, body);
      this.set({ began: this.began + 1 });
    });
  }
  stop(turn: Turn): Promise<boolean> {
    return this.attempt(() => call("POST", `${turnPath(turn.chat, turn.id)}/cancel`));
  }
  // Moves the chat's head. Without `chosen`, asks about the files if there are any.
  async moveHead(turn: Turn, chosen?: FilesChoice, moved?: (files: FilesChoice) => void): Promise<void> {
    const path = `${chatPath(turn.chat)}/head`;
    const move = async (files: FilesChoice): Promise<void> => {
      await call("POST", path, { interaction_id: turn.id, ...files });
      moved?.(files);
    };
    await this.attempt(() => (chosen ? move(chosen) : this.withFiles(t.otherBranch, turn.chat, path, { interaction_id: turn.id }, move)));
  }
  // Asks about the files if a `dry_run` of `path` lists any; otherwise runs at once.
  private async withFiles(what: string, chat: string, path: string, body: Record<string, unknown>, run: AskedFiles["run"]): Promise<void> {
    const preview = await call<FilesPreview>("POST", path, { ...body, dry_run: true });
    const ask = preview.files.length > 0 || preview.omitted !== undefined;
    this.set({ askedFiles: ask ? { chat, from: this.branch().pop()?.id ?? null, what, preview, run } : null });
    if (!ask) await run({});
  }
  // Runs the move with this choice. If it fails, the person is told and asked again.
  async answerFiles(asked: AskedFiles, choice: FilesChoice): Promise<void> {
    if ((await this.attempt(() => asked.run(choice))) && this.askedFiles === asked) this.set({ askedFiles: null });
  }
  compact(): Promise<boolean> {
    const chat = this.open;
    return chat ? this.attempt(() => begin(`${chatPath(chat.id)}/compact`, {})) : Promise.resolve(false);
  }
  async removeBranch(turn: Turn): Promise<void> {
    await this.attempt(async () => {
      const gone = await call<BranchRemoved>("DELETE", turnPath(turn.chat, turn.id));
      for (const id of gone.interactions) this.open?.turns.delete(id);
      if (this.open) this.open.shape++;
      this.tell(t.removedBranch(gone.interactions.length));
    });
  }
  async undo(): Promise<void> {
    const last = this.branch().pop();
    if (!last) return;
    const path = `${chatPath(last.chat)}/undo`;
    await this.attempt(() => this.withFiles(t.undoTurn, last.chat, path, {}, async (files) => {
      await call("POST", path, files);
      this.tell(t.undone(last.message ?? ""), { label: t.redo, run: () => void this.moveHead(last, files.files ? { files: "restore" } : {}) });
    }));
  }
  async redo(): Promise<void> {
    const last = this.branch().pop();
    const next = last && this.leafOf(last);
    if (!next || next === last) return this.tell(t.nothingToRedo);
    await this.moveHead(next, undefined, () => this.tell(t.redone(next.message ?? ""), { label: t.undo, run: () => void this.undo() }));
  }
  // Shows a turn. If it is on another branch, moves the chat's head there.
  async goTo(chat: string, turn: string): Promise<void> {
    this.openChat(chat);
    this.set({ target: { chat, turn } });
    const open = this.open!;
    while (!open.loaded || (!open.turns.has(turn) && open.previous)) {
      const { previous } = open;
      if (open.loaded) await this.earlier(open);
      else await new Promise((resume) => requestAnimationFrame(resume));
      if (this.open !== open || (open.loaded && previous !== null && open.previous === previous)) return;
    }
    const found = open.turns.get(turn);
    if (found && !this.branch().includes(found)) {
      const before = this.branch().pop();
      await this.moveHead(this.leafOf(found), {});
      this.tell(t.otherVersion, before && { label: t.undo, run: () => void this.moveHead(before, {}) });
    }
  }
  async fork(turn: Turn): Promise<void> {
    const path = `${chatPath(turn.chat)}/fork`;
    await this.attempt(() => this.withFiles(t.fork, turn.chat, path, { interaction_id: turn.id }, async (files) => {
      const copy = await call<Chat>("POST", path, { interaction_id: turn.id, ...files });
      this.openChat(copy.id);
    }));
  }
  answer(approval: string, body: Record<string, unknown>): Promise<boolean> {
    this.answeredHere.add(approval);
    return this.attempt(() => call("POST", `/approvals/${approval}`, body));
  }
  respond(input: PendingInput, response: string | null): Promise<boolean> {
    const body = response === null ? { request_id: input.request_id, declined: true } : { request_id: input.request_id, response };
    return this.attempt(() => call("POST", `${turnPath(input.chat_id, input.interaction_id)}/respond`, body));
  }
  rename(chat: string, title: string): Promise<boolean> {
    return this.attempt(() => call("PATCH", chatPath(chat), { title }));
  }
  async remove(chats: string[]): Promise<void> {
    const title = this.chats.get(chats[0]!)?.title || t.untitled;
    await this.attempt(async () => {
      for (const chat of chats) await call("DELETE", chatPath(chat));
      const restore = async (): Promise<void> => {
        const trash = await get<Trash>("/trash");
        for (const chat of chats) {
          const entry = trash.entries.filter((each) => each.chat_id === chat).pop();
          if (entry) await this.restore(entry.id);
        }
      };
      this.tell(chats.length === 1 ? t.wasDeleted(title) : t.wereDeleted(chats.length), { label: t.undo, run: () => void this.attempt(restore) });
    });
  }
  async restore(entry: string): Promise<void> {
    await call("POST", `/trash/${encodeURIComponent(entry)}/restore`);
  }
  // Makes a chat without a message, for files and settings.
  async newChat(): Promise<string | null> {
    let id: string | null = null;
    await this.attempt(async () => {
      const made = (await call<{ id: string }>("POST", "/chats", {})).id;
      const settings = Object.entries(this.fresh).filter(([, value]) => value);
      if (settings.length > 0) await call("PATCH", chatPath(made), Object.fromEntries(settings));
      this.fresh = {};
      this.openChat((id = made));
    });
    return id;
  }
}

export { byNumber } from "./open";

export const store = new Store();

// Draws the component again whenever anything in the store has changed.
export function useStore(): Store {
  useSyncExternalStore(store.subscribe, store.snapshot);
  return store;
}

// --- notifications: only if switched on and the window is hidden, and without any content of the chat
function notify(event: string, data: ChatChange): void {
  if (!document.hidden || localStorage.getItem("notify") !== "on" || typeof Notification === "undefined") return;
  const text = event === "approval_opened" ? t.approvalNeeded : event === "input_opened" ? t.questionWaits : event === "interaction_ended" ? t.answerReady : "";
  if (!text || Notification.permission !== "granted") return;
  const shown = new Notification("Reprise", { body: text, tag: data.chat_id });
  shown.onclick = () => {
    window.focus();
    store.openChat(data.chat_id);
  };
}
