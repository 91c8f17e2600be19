// The official client of MCP, unmodified, over HTTP or through `reprise mcp-server`, in either era. Arguments: the package's entry, that for
// stdio, the era, the way, the server's URL, the program. Prints everything it saw as one JSON object.
const [entry, stdio, era, way, url, program] = process.argv.slice(2);
const { Client, StreamableHTTPClientTransport } = await import(entry);
const { StdioClientTransport } = await import(stdio);
const seen = { asked: [], progress: 0 };
// "auto" detects the server's era.
const options = { capabilities: { elicitation: {} }, ...(era === "2026-07-28" ? { versionNegotiation: { mode: "auto" } } : {}) };
const client = new Client({ name: "test", version: "1" }, options);
client.setRequestHandler("elicitation/create", async ({ params }) => {
  seen.asked.push(params.message);
  return { action: "accept", content: { decision: "approve" } };
});
const transport =
  way === "http" ? new StreamableHTTPClientTransport(new URL(url + "/mcp")) : new StdioClientTransport({ command: program, args: ["mcp-server", "--url", url], env: process.env });
await client.connect(transport);
seen.version = client.getNegotiatedProtocolVersion();
seen.server = client.getServerVersion()?.name;
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
const ask = (message, more) => client.callTool({ name: "ask", arguments: { message, chat_id: "sdk" } }, more);
seen.answer = await ask("calculate 6*7");
seen.listed = (await client.callTool({ name: "list_chats", arguments: {} })).structuredContent.chats.map((chat) => chat.id);
// With a question in its midst, because the client drops the progress of a call if it reads the call's result at the same time.
seen.written = await ask("calculate 6*8\nwrite a.txt: hello", { onprogress: () => void seen.progress++ });
seen.read = (await client.readResource({ uri: "reprise://chats/sdk" })).contents[0].text;
// An abort during a run.
const controller = new AbortController();
const slow = ask("slow: " + "word ".repeat(400), { signal: controller.signal }).catch((error) => (seen.aborted = String(error)));
while ((await (await fetch(url + "/chats")).json()).chats[0].status !== "running");
controller.abort();
await slow;
process.stdout.write(JSON.stringify(seen), () => void client.close().then(() => process.exit(0)));
