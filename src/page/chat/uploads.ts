// Uploads to a chat, and the files of the next message. Kept per chat while people look at others.
import { cache, readTools } from "../store/cache";
import * as requests from "../store/requests";
import { attempt, draw, store, stored, tell, useSelect } from "../store/state";
import { t } from "../texts";
import type { ChatFiles, FileInfo } from "../wire";
import { ApiError, authorization, call, chatPath, get, noneIfNew } from "../wire/api";

export interface Upload {
  key: number;
  name: string;
  file: File | null; // null: already at the server
  path: string; // of a file in the workspace; empty for others
  id: string; // empty during the upload
  picture: string; // an object URL to show it
  sent: number; // 0 to 1
  failure: string;
  isFinal: boolean; // trying again would fail too, such as if it is too large
}

const NONE: Upload[] = [];
const ofChat = new Map<string, Upload[]>();
const asText = new Map<string, Set<string>>(); // paths that the message names but a person has detached
let number = 0;

// The files that have arrived outlive the page, as the draft does.
const KEPT = "attached:"; // begins the name of a chat's list
type Kept = Pick<Upload, "id" | "name" | "path">;

function keptOf(chat: string): Kept[] {
  try {
    return JSON.parse(stored(KEPT + chat) || "[]") as Kept[];
  } catch {
    return [];
  }
}
const made = (how: Partial<Upload> & { name: string }): Upload => ({ key: ++number, file: null, path: "", id: "", picture: "", sent: 0, failure: "", isFinal: false, ...how });
const arrived = (uploads: Upload[]): Kept[] => uploads.filter((each) => each.id).map(({ id, name, path }) => ({ id, name, path }));

// Changes what is stored, because another window may have attached more.
function keep(chat: string, before: Kept[], after: Kept[]): void {
  if (before.map((each) => each.id).join() === after.map((each) => each.id).join()) return;
  const all = [...keptOf(chat).filter((each) => ![...before, ...after].some((one) => one.id === each.id)), ...after];
  store(KEPT + chat, all.length > 0 ? JSON.stringify(all) : "");
}
addEventListener("storage", (e) => {
  const chat = e.key?.startsWith(KEPT) ? e.key.slice(KEPT.length) : "";
  const mine = ofChat.get(chat);
  if (!mine) return;
  ofChat.set(chat, [...keptOf(chat).map((each) => mine.find((one) => one.id === each.id) ?? made(each)), ...mine.filter((each) => !each.id)]);
  draw();
});

function put(chat: string, uploads: Upload[]): void {
  keep(chat, arrived(uploadsOf(chat)), arrived(uploads));
  ofChat.set(chat, uploads);
  draw();
}
const change = (chat: string, key: number, how: Partial<Upload>): void => put(chat, uploadsOf(chat).map((each) => (each.key === key ? { ...each, ...how } : each)));

export function uploadsOf(chat: string): Upload[] {
  if (chat === "") return NONE;
  if (!ofChat.has(chat)) ofChat.set(chat, keptOf(chat).map(made));
  return ofChat.get(chat)!;
}

export const useUploads = (chat: string): Upload[] => useSelect(() => uploadsOf(chat));

let making: { box: number; chat: Promise<string | null> } | null = null; // a chat that is being made for files

// The chat that is open, or is being made, or a new one.
export const chatToFill = (): Promise<string | null> => (!cache.open && making?.box === cache.box ? making.chat : requests.chatToFill());
async function chatForFiles(): Promise<string | null> {
  if (cache.open) return requests.chatToFill();
  if (making?.box === cache.box) return making.chat;
  const mine = (making = { box: cache.box, chat: requests.createChat() });
  const chat = await mine.chat;
  if (making === mine) making = null;
  return chat;
}
// Attaches files. Makes a chat for them if there is none yet.
export async function attach(files: File[]): Promise<void> {
  const chat = await chatForFiles();
  if (!chat) return;
  for (const file of files) send(chat, add(chat, { name: file.name || t.pastedFile, file, picture: file.type.startsWith("image/") ? URL.createObjectURL(file) : "" }));
}
function add(chat: string, how: Partial<Upload> & { name: string }): Upload {
  const upload = made(how);
  put(chat, [...uploadsOf(chat), upload]);
  return upload;
}

// Attaches a file of the workspace as it is now, unless the next message already has it.
export async function attachPath(path: string): Promise<void> {
  const chat = await chatToFill();
  if (!chat) return;
  asText.get(chat)?.delete(path);
  if (!uploadsOf(chat).some((each) => each.path === path)) void fetchPath(chat, add(chat, { name: path, path })).catch(() => undefined);
}
async function fetchPath(chat: string, upload: Upload): Promise<void> {
  try {
    const { id } = await call<FileInfo>("POST", `${chatPath(chat)}/workspace/files`, { path: upload.path });
    change(chat, upload.key, { id, sent: 1 });
  } catch (error) {
    change(chat, upload.key, error instanceof ApiError ? { failure: error.message, isFinal: isFinal(error.status) } : { failure: t.uploadFailed });
    throw error;
  }
}

// Attaches the files that a message names, of the workspace or else of the chat; other names stay text. False if a file exists, or may, but cannot be attached: then
// the message would lack it.
export async function attachMentioned(chat: string, text: string): Promise<boolean> {
  let all = true;
  if (!cache.tools) await readTools().catch(() => undefined); // whether there is a workspace; the page may just have been opened
  for (const path of mentionsIn(text)) {
    const known = uploadsOf(chat).find((each) => each.path === path || each.name === path);
    if (known?.failure) all = false;
    if (known || asText.get(chat)?.has(path)) continue;
    if (cache.tools?.workspace) {
      const upload = add(chat, { name: path, path });
      try {
        await fetchPath(chat, upload);
        continue;
      } catch (error) {
        const isNone = error instanceof ApiError && (error.status === 404 || error.status === 400); // such as a folder
        if (!isNone) {
          all = false;
          continue;
        }
        put(chat, uploadsOf(chat).filter((each) => each.key !== upload.key));
      }
    }
    const looked = await attempt(async () => {
      const named = (await filesOf(chat)).filter((each) => each.filename === path).pop();
      if (named) mention(chat, named);
      else if (/[./]/.test(path)) tell(t.noSuchFile(path));
    }, t.offline);
    if (!looked) return false;
  }
  return all;
}
export const filesOf = (chat: string): Promise<FileInfo[]> => get<ChatFiles>(`${chatPath(chat)}/files`).then((found) => found.files, noneIfNew([]));

// "10 MiB" of "the body is larger than 10 MiB"; empty if it names none.
function limitIn(message: string): string {
  const [size, unit] = message.split(" ").slice(-2);
  return Number(size) > 0 && unit ? `${size} ${unit}` : "";
}

function send(chat: string, upload: Upload): void {
  if (upload.path) return void fetchPath(chat, upload).catch(() => undefined);
  const form = new FormData();
  form.append("file", upload.file!, upload.name);
  const request = new XMLHttpRequest(); // because fetch reports no progress
  request.upload.onprogress = (e) => e.lengthComputable && change(chat, upload.key, { sent: e.loaded / e.total });
  request.onload = () => {
    const body = parse(request.responseText);
    if (request.status === 201 && body?.id) change(chat, upload.key, { id: body.id, name: body.filename, sent: 1 });
    else change(chat, upload.key, { failure: request.status === 413 ? t.fileTooLarge(limitIn(body?.error?.message ?? "")) : (body?.error?.message ?? t.uploadFailed), isFinal: isFinal(request.status) });
  };
  request.onerror = () => change(chat, upload.key, { failure: t.uploadFailed });
  request.open("POST", `${chatPath(chat)}/files`);
  for (const [name, value] of Object.entries(authorization())) request.setRequestHeader(name, value);
  request.send(form);
}

const isFinal = (status: number): boolean => status === 413 || status === 415;

function parse(text: string): { id: string; filename: string; error?: { message: string } } | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export function retry(chat: string, upload: Upload): void {
  change(chat, upload.key, { failure: "", isFinal: false, sent: 0 });
  send(chat, upload);
}
export function detach(chat: string, upload: Upload): void {
  if (upload.picture) URL.revokeObjectURL(upload.picture);
  if (upload.path) asText.set(chat, (asText.get(chat) ?? new Set()).add(upload.path));
  put(chat, uploadsOf(chat).filter((each) => each !== upload));
}
// Takes away the files that have gone with a message. Others may have been attached since.
export function clear(chat: string, sent: string[]): void {
  const [gone, rest] = [true, false].map((is) => uploadsOf(chat).filter((each) => sent.includes(each.id) === is)) as [Upload[], Upload[]];
  gone.forEach((each) => each.picture && URL.revokeObjectURL(each.picture));
  asText.delete(chat);
  put(chat, rest);
}
export function mention(chat: string, file: FileInfo): void {
  if (!uploadsOf(chat).some((each) => each.id === file.id)) add(chat, { name: file.filename, id: file.id, sent: 1 });
}

// The files that a message names, as the terminal client reads them: @notes.txt, or, if the name has blanks, @"my notes.txt".
const MOST = 20; // in one message

export function mentionsIn(text: string): string[] {
  const paths = [...text.matchAll(/(?<=^|[ \n])@(?:"([^"\n]+)"?|([^ \n"][^ \n]*))/g)].map((each) => each[1] ?? each[2]!);
  return [...new Set(paths)].slice(0, MOST);
}

export const mentionOf = (path: string): string => (path.includes(" ") ? `@"${path}"` : `@${path}`);

// The mention being typed before the caret: where it begins, and the name so far; null if there is none.
export function mentionBefore(text: string): { from: number; word: string } | null {
  const found = /(?:^|[ \n])@(?:"([^"\n]*)|([^\s"]*))$/.exec(text);
  return found && { from: text.lastIndexOf("@", text.length - 1 - (found[1] ?? found[2]!).length), word: found[1] ?? found[2]! };
}

// The files that are dropped. A folder comes as a file that cannot be read.
export function filesIn(dropped: DataTransfer | null): File[] {
  const items = [...(dropped?.items ?? [])], folders = items.filter((each) => each.webkitGetAsEntry()?.isDirectory);
  if (folders.length > 0) tell(t.noFolders);
  const unreadable = new Set(folders.map((each) => each.getAsFile()?.name));
  return [...(dropped?.files ?? [])].filter((each) => !unreadable.has(each.name));
}
