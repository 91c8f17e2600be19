// An MCP server of revision 2026-07-28 only, made with the official SDK: mcp_modern_server.mjs SDK stdio, or SDK http PORT.
import http from "node:http";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [sdk, transport, port] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(path.join(sdk, "dist", name)));
const { McpServer, acceptedContent, createMcpHandler, fromJsonSchema, inputRequired } = await load("index.mjs");

const PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const NAME = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const words = (text) => ({ content: [{ type: "text", text }] });
const tool = (properties = {}) => ({ inputSchema: fromJsonSchema({ type: "object", properties }) });
let grown = false;
let tellOfChange = () => undefined;

function make() {
  const server = new McpServer({ name: "modern", version: "7" }, { capabilities: { tools: { listChanged: true } } });
  server.registerTool("route", tool({ region: { type: "string", "x-mcp-header": "Region" }, text: { type: "string" } }),
    async ({ region, text }) => words(`${region}: ${text}`));
  server.registerTool("greet", tool(), async (_, ctx) => {
    const given = ctx.mcpReq.inputResponses?.who;
    if (!given) return inputRequired({ requestState: "asked once", inputRequests: { who: inputRequired.elicit({ message: "Who?", requestedSchema: NAME }) } });
    return words(given.action === "accept" ? `hello ${acceptedContent(ctx.mcpReq.inputResponses, "who").name}` : `hello nobody (${given.action})`);
  });
  server.registerTool("visit", tool(), async (_, ctx) => {
    const given = ctx.mcpReq.inputResponses?.page;
    if (!given) return inputRequired({ inputRequests: { page: inputRequired.elicitUrl({ message: "Open it", url: "https://example.org/x" }) } });
    return words(`page: ${given.action}`);
  });
  server.registerTool("where", tool(), async (_, ctx) => {
    const given = ctx.mcpReq.inputResponses?.roots;
    return given ? words(JSON.stringify(given)) : inputRequired({ inputRequests: { roots: inputRequired.listRoots() } });
  });
  server.registerTool("picture", tool(), async () => ({ content: [{ type: "image", mimeType: "image/png", data: PICTURE }] }));
  server.registerTool("slow", tool(), async (_, ctx) => {
    const token = ctx.mcpReq._meta?.progressToken;
    if (token !== undefined) await ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken: token, progress: 1, total: 2, message: "half" } });
    return words("slow");
  });
  server.registerTool("grow", tool(), async () => {
    grown = true;
    setTimeout(() => tellOfChange(server), 10);
    return words("grown");
  });
  if (grown) server.registerTool("new", tool(), async () => words("I am new"));
  server.registerResource("note", "note://one", { mimeType: "text/plain" }, async (uri) => ({ contents: [{ uri: uri.href, text: "a note" }] }));
  server.registerPrompt("hi", {}, async () => ({ messages: [{ role: "user", content: { type: "text", text: "say hi" } }] }));
  return server;
}

if (transport === "stdio") {
  const { serveStdio } = await load("stdio.mjs");
  tellOfChange = (server) => server.registerTool("new", tool(), async () => words("I am new"));
  serveStdio(() => make(), { legacy: "reject" });
} else {
  const handler = createMcpHandler(() => make(), { legacy: "reject" });
  tellOfChange = () => handler.notify.toolsChanged();
  http.createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = ["GET", "HEAD"].includes(request.method) ? undefined : Buffer.concat(parts);
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const answer = await handler.fetch(new Request(`http://127.0.0.1:${port}${request.url}`, { method: request.method, headers: request.headers, body, signal: gone.signal }));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    if (answer.body) for await (const part of answer.body) response.write(part);
    response.end();
  }).listen(Number(port), "127.0.0.1");
}
