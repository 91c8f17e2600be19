// Uses the official client as applications do. Arguments: the module, the base URL, the key, and what to do.
const [, , module, baseURL, apiKey, what] = process.argv;
const { default: OpenAI } = await import(module);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const say = value => console.log(JSON.stringify(value));
const messages = text => [{ role: "user", content: text }];

const doings = {
  async chat() {
    const whole = await client.chat.completions.create({ model: "reprise", messages: messages("whole") });
    say({ text: whole.choices[0].message.content, finish: whole.choices[0].finish_reason, total: whole.usage.total_tokens });
    const stream = client.chat.completions.stream({ model: "reprise", messages: messages("streamed"), stream_options: { include_usage: true } });
    const pieces = [];
    stream.on("content", piece => pieces.push(piece));
    const message = await stream.finalMessage();
    const usage = await stream.totalUsage();
    say({ text: message.content, joined: pieces.join(""), calls: message.tool_calls ?? null, total: usage.total_tokens });
    const chunks = [];
    for await (const chunk of await client.chat.completions.create({ model: "reprise", messages: messages("chunks"), stream: true })) {
      chunks.push(chunk.choices[0]?.delta?.content ?? "");
    }
    say({ text: chunks.join("") });
  },
  async responses() {
    const first = await client.responses.create({ model: "reprise", input: "whole", instructions: "Be brief." });
    say({ text: first.output_text, status: first.status, id: first.id });
    const events = [];
    const stream = client.responses.stream({ model: "reprise", input: "and?", previous_response_id: first.id });
    stream.on("event", event => events.push([event.type, event.sequence_number]));
    const final = await stream.finalResponse();
    say({ text: final.output_text, previous: final.previous_response_id, events, usage: final.usage.total_tokens });
    const read = await client.responses.retrieve(final.id);
    let again = "";
    for await (const event of await client.responses.retrieve(final.id, { stream: true, starting_after: 1 })) {
      if (event.type === "response.output_text.delta") again += event.delta;
    }
    say({ text: read.output_text, status: read.status, previous: read.previous_response_id, again });
  },
  async approval() {
    const server = baseURL.replace("/v1", "");
    const stream = client.chat.completions.stream({ model: "reprise", messages: messages("write") });
    let text = "", answered;
    stream.on("content", piece => {
      text += piece;
      if (!text.includes("Approval needed") || answered) return;
      answered = fetch(server + "/approvals").then(each => each.json()).then(({ approvals }) => fetch(`${server}/approvals/${approvals[0].approval_id}`, {
        method: "POST", headers: { "Content-Type": "application/json" }, body: '{"approved":true}' }));
    });
    const message = await stream.finalMessage();
    say({ text: message.content, answered: (await answered).status });
  },
  async leave() {
    const stream = await client.chat.completions.create({ model: "reprise", messages: messages("x"), stream: true });
    let text = "";
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta?.content ?? "";
      if (text === "half") break;  // it aborts the request
    }
    say({ text });
    const begun = await client.responses.create({ model: "reprise", input: "y", background: true });
    const cancelled = await client.responses.cancel(begun.id);
    say({ begun: begun.status, cancelled: cancelled.id === begun.id });
    for (;;) {
      const now = await client.responses.retrieve(begun.id);
      if (now.status !== "in_progress") { say({ status: now.status }); break; }
    }
  },
  async conversations() {
    const made = await client.conversations.create({ items: [{ type: "message", role: "user", content: "Hello!" }], metadata: { topic: "demo" } });
    const answer = await client.responses.create({ model: "reprise", input: "and?", conversation: made.id });
    const texts = [];
    let last;
    for await (const item of client.conversations.items.list(made.id, { limit: 1, order: "asc" })) {
      texts.push(item.content[0].text);
      last = item;
    }
    const input = [];
    for await (const item of client.responses.inputItems.list(answer.id)) input.push(item.content[0].text);
    const one = await client.conversations.items.retrieve(last.id, { conversation_id: made.id });
    const added = await client.conversations.items.create(made.id, { items: [{ type: "message", role: "user", content: "more" }] });
    const { input_tokens: tokens } = await client.responses.inputTokens.count({ model: "reprise", conversation: made.id, input: "x" });
    const changed = await client.conversations.update(made.id, { metadata: { topic: "other" } });
    const read = await client.conversations.retrieve(made.id);
    const { deleted } = await client.conversations.delete(made.id);
    say({ texts, input, same: one.id === last.id, added: added.data.length, counted: tokens > 0, topics: [made, changed, read].map(each => each.metadata.topic),
          told: answer.conversation.id === made.id, deleted });
  },
  async models() {
    const names = [];
    for await (const model of client.models.list()) names.push(model.id);
    const one = await client.models.retrieve("reprise/" + names.at(-1));
    say({ names, one: one.id });
  },
  async errors() {
    for (const body of [{ model: "nobody/x", messages: messages("x") }, { model: "reprise", messages: [] }]) {
      try { await client.chat.completions.create(body); say({}); } catch (error) {
        say({ status: error.status, code: error.code, type: error.type, param: error.param, kind: error.constructor.name });
      }
    }
    try {
      for await (const _ of await client.chat.completions.create({ model: "reprise", messages: messages("fails"), stream: true }));
      say({});
    } catch (error) { say({ code: error.code, message: error.message }); }
  },
  async tools() {
    const stream = client.chat.completions.stream({
      model: "test/scripted", messages: messages("weather?"),
      tools: [{ type: "function", function: { name: "get_weather", parameters: { type: "object", properties: { place: { type: "string" } } } } }],
    });
    const message = await stream.finalMessage();
    say({ calls: message.tool_calls.map(call => [call.function.name, call.function.arguments]) });
  },
  async audio() {
    const { toFile } = await import(module);
    const heard = await client.audio.transcriptions.create({ model: "whisper-1", file: await toFile(Buffer.from("RIFFxxxxWAVE"), "a.wav") });
    const spoken = await client.audio.speech.create({ model: "tts-1", voice: "alloy", input: "hello" });
    say({ text: heard.text, bytes: (await spoken.arrayBuffer()).byteLength, type: spoken.headers.get("content-type") });
  },
};
await doings[what]();
