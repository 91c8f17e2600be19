// Sends one message through a common client library, which may retry by itself.
// usage: node repeating_clients.mjs MODULES BASE_URL LIBRARY(-stream) [TIMEOUT_MS]
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, baseURL, what, timeout] = process.argv.slice(2);
const resolve = createRequire(modules + "/any.cjs").resolve;
const load = name => import(pathToFileURL(resolve(name)));
const [library, mode] = what.split("/");
const message = "count once";
const apiKey = "none";
const patience = timeout ? Number(timeout) : undefined;

async function drain(stream) {
  for await (const part of stream) if (part.type === "error") throw part.error;
}

const asks = {
  async openai() {
    const { default: OpenAI } = await load("openai");
    const client = new OpenAI({ baseURL, apiKey, timeout: patience, maxRetries: 2 });
    const stream = mode === "stream";
    const answer = await client.chat.completions.create({ model: "reprise", stream, messages: [{ role: "user", content: message }] });
    if (stream) await drain(answer);
  },
  async responses() {
    const { default: OpenAI } = await load("openai");
    const client = new OpenAI({ baseURL, apiKey, timeout: patience, maxRetries: 2 });
    const stream = mode === "stream";
    const answer = await client.responses.create({ model: "reprise", stream, input: message });
    if (stream) for await (const event of answer) if (event.type === "response.failed") throw new Error(event.response.error.message);
  },
  async ai() {
    const { generateText, streamText } = await load("ai");
    const { createOpenAI } = await load("@ai-sdk/openai");
    const model = createOpenAI({ baseURL, apiKey }).chat("reprise");
    if (mode === "stream") await drain(streamText({ model, prompt: message, onError() {} }).fullStream);
    else await generateText({ model, prompt: message });
  },
  async "ai-responses"() {
    const { generateText, streamText } = await load("ai");
    const { createOpenAI } = await load("@ai-sdk/openai");
    const model = createOpenAI({ baseURL, apiKey }).responses("reprise");
    if (mode === "stream") await drain(streamText({ model, prompt: message, onError() {} }).fullStream);
    else await generateText({ model, prompt: message });
  },
  async langchain() {
    const { ChatOpenAI } = await load("@langchain/openai");
    const model = new ChatOpenAI({ model: "reprise", apiKey, timeout: patience, streaming: mode === "stream", configuration: { baseURL } });
    await model.invoke(message);
  },
  async "langchain-responses"() {
    const { ChatOpenAI } = await load("@langchain/openai");
    const model = new ChatOpenAI({ model: "reprise", apiKey, useResponsesApi: true, streaming: mode === "stream", configuration: { baseURL } });
    await model.invoke(message);
  },
};

try {
  await asks[library]();
  console.log(JSON.stringify({ ok: true }));
} catch (error) {
  console.log(JSON.stringify({ ok: false, said: String(error.message ?? error) }));
}
