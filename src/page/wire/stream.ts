// Reads GET /events for ever. After a restart or a lost connection it reconnects by itself and continues where it was.
import { ApiError, request, UNREACHED } from "./api";

export interface Frame {
  event: string;
  data: unknown;
}
export type Connection = "live" | "connecting" | "offline";

const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 5000;
// ms of silence after which the connection is lost: the server sends something every fifteen seconds.
const SILENCE = 40_000;
const LATE = 20_000; // ms of silence that are enough when the page is shown again

type OnFrames = (frames: Frame[]) => void;
type OnState = (state: Connection) => void;

export class Feed {
  private cursor = "";
  private chats: readonly string[] = [];
  private abort: AbortController | null = null;
  private pause = FIRST_PAUSE;
  private heard = Date.now(); // time of the last bytes

  start(onFrames: OnFrames, onState: OnState): void {
    void this.run(onFrames, onState);
    // Whether the server can be reached is seen at once.
    for (const name of ["online", "offline", UNREACHED]) addEventListener(name, () => this.abort?.abort());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && Date.now() - this.heard > LATE) this.abort?.abort();
    });
  }

  // From now on the feed also has all events of these chats.
  follow(chats: readonly string[]): void {
    if (chats.join() === this.chats.join()) return;
    this.chats = chats;
    this.pause = 0;
    this.abort?.abort();
  }

  private async run(onFrames: OnFrames, onState: OnState): Promise<void> {
    for (;;) {
      try {
        await this.read(onFrames, onState);
        this.pause = FIRST_PAUSE;
      } catch (error) {
        if (error instanceof ApiError && error.status === 401) onState("offline");
      }
      const pause = this.pause;
      if (pause > 0) {
        onState(pause > 1000 ? "offline" : "connecting");
        await new Promise((resume) => setTimeout(resume, pause));
      }
      this.pause = Math.min(LONGEST_PAUSE, Math.max(FIRST_PAUSE, pause * 2));
    }
  }

  private async read(onFrames: OnFrames, onState: OnState): Promise<void> {
    const abort = (this.abort = new AbortController());
    const query = new URLSearchParams(this.chats.map((chat) => ["chat", chat]));
    if (this.cursor) query.set("after", this.cursor);
    let watch = setTimeout(() => abort.abort(), SILENCE);
    const response = await request("GET", `/events?${query}`, undefined, abort.signal);
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    onState("live");
    this.pause = FIRST_PAUSE;
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      clearTimeout(watch);
      this.heard = Date.now();
      if (done) return;
      watch = setTimeout(() => abort.abort(), SILENCE);
      const parts = (rest + value).split("\n\n");
      rest = parts.pop() ?? "";
      const frames = parts.map((part) => this.parse(part)).filter((frame): frame is Frame => frame !== null);
      if (frames.length > 0) onFrames(frames);
    }
  }

  private parse(text: string): Frame | null {
    let event = "";
    let data = "";
    for (const line of text.split("\n")) {
      if (line.startsWith("id: ")) this.cursor = line.slice(4);
      else if (line.startsWith("event: ")) event = line.slice(7);
      else if (line.startsWith("data: ")) data = line.slice(6);
    }
    return event ? { event, data: JSON.parse(data) } : null;
  }
}
