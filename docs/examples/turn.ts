// A client of Reprise: one message, its answer as it comes, approvals at the terminal.
//   npx openapi-typescript openapi.json -o reprise.d.ts --default-non-nullable=false
//   node turn.js http://127.0.0.1:8000 CHAT MESSAGE
import type { components, paths } from "./reprise";

type Event = Extract<components["schemas"]["event"], { type: string }>;  // without the frames about the stream itself
type Approval = Extract<Event, { type: "APPROVAL_REQUIRED" }>;
type Start = paths["/chats/{chat_id}/interactions"]["post"]["requestBody"]["content"]["application/json"];
type Answer = paths["/approvals/{approval_id}"]["post"]["requestBody"]["content"]["application/json"];

// The events of a stream. `event:` and `id:` say nothing that the data does not say as well.
async function* eventsOf(response: Response): AsyncGenerator<Event> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(bytes, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const block = text.slice(0, end);
      text = text.slice(end + 2);
      // Frames without an id (stream_open, stream_live) are about the stream itself.
      if (!block.startsWith("id: ")) continue;
      const data = block.split("\n").find(line => line.startsWith("data: "));
      if (data) yield JSON.parse(data.slice("data: ".length)) as Event;
    }
  }
}

class Chat {
  constructor(private readonly server: string, private readonly id: string, private readonly token?: string) {}

  // All events of one interaction, also where the connection is lost on the way.
  async *say(user_message: string): AsyncGenerator<Event> {
    const body: Start = { user_message, on_disconnect: "continue" };
    let response = await this.post(`/chats/${this.id}/interactions`, body);
    const path = response.headers.get("Content-Location");
    let seen = 0;
    for (;;) {
      try {
        for await (const event of eventsOf(response)) {
          seen = event.seq;
          yield event;
          if (event.type === "INTERACTION_COMPLETE") return;
        }
      } catch (error) {
        if (!path) throw error;
      }
      response = await this.request(path as string, { headers: { Accept: "text/event-stream", "Last-Event-ID": String(seen) } });
    }
  }

  async answer(approval: Approval, approved: boolean): Promise<void> {
    const body: Answer = { approved, arguments_digest: approval.arguments_digest };
    await this.post(`/approvals/${approval.approval_id}`, body);
  }

  private post(path: string, body: unknown): Promise<Response> {
    return this.request(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  }

  private async request(path: string, init: { method?: string; headers: Record<string, string>; body?: string }): Promise<Response> {
    if (this.token) init.headers["Authorization"] = `Bearer ${this.token}`;
    const response = await fetch(this.server + path, init);
    if (response.ok) return response;
    const { error } = (await response.json()) as components["schemas"]["error"];
    throw new Error(`${error.code}: ${error.message}`);
  }
}

async function main([server, chat, message]: string[]): Promise<void> {
  const { createInterface } = await import("node:readline/promises");
  const client = new Chat(server, chat, process.env.REPRISE_TOKEN);
  for await (const event of client.say(message)) {
    if (event.type === "TEXT_DELTA") process.stdout.write(event.content);
    if (event.type === "TOOL_CALL") console.log(`[${event.tool_name} ${event.tool_input}]`);
    if (event.type === "APPROVAL_REQUIRED") {
      const terminal = createInterface({ input: process.stdin, output: process.stdout });
      const answer = await terminal.question(`May ${event.tool_name} run with ${event.tool_input}? (y/n) `);
      terminal.close();
      await client.answer(event, answer === "y");
    }
    if (event.type === "ERROR") console.error(`${event.code}: ${event.message}`);
    if (event.type === "INTERACTION_COMPLETE") console.log(`\n${event.status}`);
  }
}

main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(String(error));
  process.exit(1);
});
