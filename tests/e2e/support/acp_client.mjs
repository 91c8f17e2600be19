// The client of @agentclientprotocol/sdk, unmodified, against `reprise acp`. Arguments: the package's entry, a file for all lines
// of both sides, the working directory, then the command. Prints everything it saw as one JSON object.
import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";

const [entry, record, cwd, ...command] = process.argv.slice(2);
const acp = await import(entry);
const agent = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
const tap = (sender) => {
  let held = Buffer.alloc(0);
  return new TransformStream({
    transform(chunk, controller) {
      held = Buffer.concat([held, chunk]);
      for (let end; (end = held.indexOf("\n")) >= 0; held = held.subarray(end + 1)) appendFileSync(record, sender + " " + held.subarray(0, end + 1));
      controller.enqueue(chunk);
    },
  });
};
const outgoing = tap("client");
outgoing.readable.pipeTo(Writable.toWeb(agent.stdin)).catch(() => {});
const incoming = Readable.toWeb(agent.stdout).pipeThrough(tap("agent"));

const seen = { updates: [], permissions: [], forms: [], stops: [], text: [] };
let decide = () => "allow_once";
const app = acp
  .client({ name: "test" })
  .onRequest(acp.methods.client.session.requestPermission, async (context) => {
    seen.permissions.push(context.params.toolCall.title);
    const optionId = await decide(context);
    return { outcome: optionId ? { outcome: "selected", optionId } : { outcome: "cancelled" } };
  })
  .onRequest(acp.methods.client.elicitation.create, async (context) => {
    seen.forms.push(context.params.message);
    return { action: "accept", content: { answer: "blue" } };
  })
  .onNotification(acp.methods.client.session.update, (context) => void seen.updates.push(context.params.update.sessionUpdate));

await app.connectWith(acp.ndJsonStream(outgoing.writable, incoming), async (connection) => {
  const request = (method, params) => connection.request(method, params);
  seen.initialized = await request(acp.methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: { elicitation: { form: {}, url: {} }, session: { notices: {}, compaction: {} } },
    clientInfo: { name: "test", version: "1" },
  });
  await request(acp.methods.agent.authenticate, { methodId: seen.initialized.authMethods[0].id });
  const session = await connection.buildSession(cwd).start();
  const id = (seen.session = session.sessionId);
  const turn = async (text) => {
    const done = session.prompt(text);
    seen.text.push(await session.readText());
    seen.stops.push((await done).stopReason);
  };
  await turn("think: hard");
  await turn("write sdk.txt: by the sdk\nrun: echo ran; echo twice\nread sdk.txt\ntask: one\nplan: a; b");
  await turn("ask: Which colour?");
  decide = () => "reject_once";
  await turn("write no.txt: never");
  decide = () => (connection.notify(acp.methods.agent.session.cancel, { sessionId: id }), null);
  await turn("write cancelled.txt: never");
  seen.mode = await request(acp.methods.agent.session.setMode, { sessionId: id, modeId: "approve_all" });
  seen.options = await request(acp.methods.agent.session.setConfigOption, { sessionId: id, configId: "model", value: "offline" });
  await turn("write free.txt: unasked");
  seen.refused = await request(acp.methods.agent.session.setMode, { sessionId: id, modeId: "nonsense" }).catch((error) => error.code);
  seen.list = await request(acp.methods.agent.session.list, { cwd });
  await request(acp.methods.agent.session.close, { sessionId: id });
  session.dispose();
  const before = seen.updates.length;
  seen.loaded = await request(acp.methods.agent.session.load, { sessionId: id, cwd, mcpServers: [] });
  seen.replayed = seen.updates.slice(before);
  await request(acp.methods.agent.session.resume, { sessionId: id, cwd, mcpServers: [] });
  await request(acp.methods.agent.session.delete, { sessionId: id });
  await request(acp.methods.agent.session.delete, { sessionId: id });
  seen.gone = (await request(acp.methods.agent.session.list, {})).sessions.length;
});
agent.stdin.end();
agent.on("exit", (code) => {
  process.stdout.write(JSON.stringify({ ...seen, code }), () => process.exit(0));
});
