// Requests to the page's own server. A failure is an ApiError with the server's message.
import { writeExact } from "../chat/exact";
import type { Error as ErrorBody, Transcription } from "../wire";

const SAVED_WITHIN = 60_000; // milliseconds, after which the browser has begun to save

export class ApiError extends Error {
  constructor(readonly status: number, readonly code: string, message: string) {
    super(message);
  }
}

export const isNotFound = (error: unknown): boolean => error instanceof ApiError && error.status === 404;
// A chat that has not begun has none of what is read. Other failures stay failures.
export const noneIfNew = <T>(none: T) => (error: unknown): T => {
  if (isNotFound(error)) return none;
  throw error;
};

// Called on 401. `why` is the server's message if the token is invalid, and empty if there was none.
let onLoggedOut: (why: string) => void = () => undefined;
export function whenLoggedOut(call: (why: string) => void): void {
  onLoggedOut = call;
}

// At log-in the server splits the token into two halves. The cookie is hidden from scripts but sent to every port of the host. The page key is kept in this
// origin's storage, which no other port can read, and sent as a header, which no other page can send.
const PAGE_KEY = "pageKey";
const HEADER = "Reprise-Page-Key";
export const hasToken = (): boolean => localStorage.getItem(PAGE_KEY) !== null;
export function authorization(): Record<string, string> {
  const key = localStorage.getItem(PAGE_KEY);
  return key === null ? {} : { [HEADER]: key };
}
export async function logIn(token: string): Promise<void> {
  const response = await fetch("/login", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) });
  if (!response.ok) throw await failureOf(response);
  const key = response.headers.get(HEADER);
  if (key !== null) localStorage.setItem(PAGE_KEY, key);
}
export const logOut = (): void => localStorage.removeItem(PAGE_KEY);
// Called when another window changes it.
export const whenTokenChanges = (call: () => void): void => addEventListener("storage", (e) => e.key === PAGE_KEY && call());

async function failureOf(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => null)) as ErrorBody | null;
  if (response.status === 401) onLoggedOut(body?.error.code === "invalid_token" ? body.error.message : "");
  return new ApiError(response.status, body?.error.code ?? "unknown", body?.error.message ?? response.statusText);
}

export const UNREACHED = "unreached"; // the event of a request that did not reach the server

export async function request(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const response = await fetch(path, {
    method,
    signal,
    headers: { Accept: "application/json", ...authorization(), ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
    body: body === undefined || body instanceof Blob ? body : writeExact(body),
  }).catch((error: unknown) => {
    if (error instanceof TypeError) dispatchEvent(new Event(UNREACHED));
    throw error;
  });
  if (!response.ok) throw await failureOf(response);
  return response;
}

export async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await request(method, path, body);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

export const get = <T>(path: string): Promise<T> => call<T>("GET", path);

// Starts a run and returns when it has begun. The feed brings its events, and the run goes on without this response.
export async function begin(path: string, body: Record<string, unknown>): Promise<void> {
  const stop = new AbortController();
  const response = await request("POST", path, { ...body, on_disconnect: "continue" }, stop.signal);
  const reader = response.body?.getReader();
  await reader?.read().catch(() => undefined); // the request was accepted, so the rest of the response does not matter
  stop.abort();
}

// The text spoken in a recording.
export async function transcribe(sound: Blob, signal: AbortSignal): Promise<string> {
  const form = new FormData();
  form.append("file", sound, `recording.${/^[a-z]+\/([a-z0-9]+)/.exec(sound.type)?.[1] ?? "webm"}`);
  const response = await fetch("/audio/transcriptions", { method: "POST", headers: authorization(), body: form, signal });
  if (!response.ok) throw await failureOf(response);
  return ((await response.json()) as Transcription).text;
}

// Saves the server's file at this path. A plain link would not work, because the browser sends no page key.
export async function save(path: string, name: string): Promise<void> {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await (await request("GET", path)).blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), SAVED_WITHIN);
}

export const chatPath = (chat: string): string => `/chats/${encodeURIComponent(chat)}`;
export const exported = (chat: string, format: string): { path: string; name: string } =>
  ({ path: `${chatPath(chat)}/export?format=${format}`, name: `${chat}.${format === "markdown" ? "md" : format}` });
export const turnPath = (chat: string, interaction: string): string => `${chatPath(chat)}/interactions/${interaction}`;
