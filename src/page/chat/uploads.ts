// Files on their way to a chat, and those that the next message takes with it. Kept per chat while people look at others.
import { useSyncExternalStore } from "react";
import { store } from "../store/store";
import { t } from "../texts";
import type { FileInfo } from "../wire";
import { chatPath } from "../wire/api";

export interface Upload {
  key: number;
  name: string;
  file: File | null; // null: it was in the chat already
  id: string; // empty while it is on its way
  picture: string; // an address of this window, to show it
  sent: number; // of 1
  failure: string;
}

const NONE: Upload[] = [];
const ofChat = new Map<string, Upload[]>();
const listeners = new Set<() => void>();
let number = 0;

function put(chat: string, uploads: Upload[]): void {
  ofChat.set(chat, uploads);
  for (const listener of [...listeners]) listener();
}
const change = (chat: string, key: number, how: Partial<Upload>): void => put(chat, uploadsOf(chat).map((each) => (each.key === key ? { ...each, ...how } : each)));

export const uploadsOf = (chat: string): Upload[] => ofChat.get(chat) ?? NONE;

export function useUploads(chat: string): Upload[] {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, () => uploadsOf(chat));
}

// Before the first message there is no chat to hold files: it is made for them.
export async function attach(files: File[]): Promise<void> {
  const chat = store.open?.id ?? (await store.newChat());
  if (!chat) return;
  for (const file of files) {
    const upload: Upload = { key: ++number, name: file.name || t.pastedFile, file, id: "", picture: file.type.startsWith("image/") ? URL.createObjectURL(file) : "", sent: 0, failure: "" };
    put(chat, [...uploadsOf(chat), upload]);
    send(chat, upload);
  }
}

function send(chat: string, upload: Upload): void {
  const form = new FormData();
  form.append("file", upload.file!, upload.name);
  const request = new XMLHttpRequest(); // fetch does not tell how far it has come
  request.upload.onprogress = (e) => e.lengthComputable && change(chat, upload.key, { sent: e.loaded / e.total });
  request.onload = () => {
    const body = parse(request.responseText);
    if (request.status === 201 && body?.id) change(chat, upload.key, { id: body.id, name: body.filename, sent: 1 });
    else change(chat, upload.key, { failure: body?.error?.message ?? t.uploadFailed });
  };
  request.onerror = () => change(chat, upload.key, { failure: t.uploadFailed });
  request.open("POST", `${chatPath(chat)}/files`);
  request.send(form);
}

function parse(text: string): { id: string; filename: string; error?: { message: string } } | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export function retry(chat: string, upload: Upload): void {
  change(chat, upload.key, { failure: "", sent: 0 });
  send(chat, upload);
}
export function detach(chat: string, upload: Upload): void {
  if (upload.picture) URL.revokeObjectURL(upload.picture);
  put(chat, uploadsOf(chat).filter((each) => each !== upload));
}
export function clear(chat: string): void {
  uploadsOf(chat).forEach((each) => each.picture && URL.revokeObjectURL(each.picture));
  put(chat, NONE);
}
export function mention(chat: string, file: FileInfo): void {
  if (uploadsOf(chat).some((each) => each.id === file.id)) return;
  put(chat, [...uploadsOf(chat), { key: ++number, name: file.filename, file: null, id: file.id, picture: "", sent: 1, failure: "" }]);
}
