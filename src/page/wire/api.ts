// Requests to the server that this page comes from. A failure is an ApiError with the server's own words.
import { writeExact } from "../chat/exact";
import type { Error as ErrorBody, Transcription } from "../wire";

export class ApiError extends Error {
  constructor(readonly status: number, readonly code: string, message: string) {
    super(message);
  }
}

// Told why, in the server's words, if a token was shown that does not count (any more).
let onLoggedOut: (why: string) => void = () => undefined;
export function whenLoggedOut(call: (why: string) => void): void {
  onLoggedOut = call;
}

async function failureOf(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => null)) as ErrorBody | null;
  if (response.status === 401) onLoggedOut(body?.error.code === "invalid_token" ? body.error.message : "");
  return new ApiError(response.status, body?.error.code ?? "unknown", body?.error.message ?? response.statusText);
}

export async function request(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const response = await fetch(path, {
    method,
    signal,
    headers: { Accept: "application/json", ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
    body: body === undefined ? undefined : writeExact(body),
  });
  if (!response.ok) throw await failureOf(response);
  return response;
}

export async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await request(method, path, body);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

export const get = <T>(path: string): Promise<T> => call<T>("GET", path);

// Starts a run and returns when it has begun: what follows comes by the feed, and the run goes on without this answer.
export async function begin(path: string, body: Record<string, unknown>): Promise<void> {
  const stop = new AbortController();
  const response = await request("POST", path, { ...body, on_disconnect: "continue" }, stop.signal);
  const reader = response.body?.getReader();
  await reader?.read().catch(() => undefined); // it has been taken in; what becomes of this answer does not matter
  stop.abort();
}

// What was said in a recording.
export async function transcribe(sound: Blob, signal: AbortSignal): Promise<string> {
  const form = new FormData();
  form.append("file", sound, `recording.${/^[a-z]+\/([a-z0-9]+)/.exec(sound.type)?.[1] ?? "webm"}`);
  const response = await fetch("/audio/transcriptions", { method: "POST", body: form, signal });
  if (!response.ok) throw await failureOf(response);
  return ((await response.json()) as Transcription).text;
}

export const chatPath = (chat: string): string => `/chats/${encodeURIComponent(chat)}`;
export const turnPath = (chat: string, interaction: string): string => `${chatPath(chat)}/interactions/${interaction}`;
