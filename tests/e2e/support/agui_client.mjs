// HttpAgent of @ag-ui/client, unmodified, which checks events and their order. Arguments: the package's entry, that of the schemas,
// the URL. Prints everything it saw as one JSON object.
const [entry, schemas, url] = process.argv.slice(2);
const { HttpAgent } = await import(entry);
const { EventSchemas } = await import(schemas);
const seen = { runs: [], errors: [], invalid: [] };
const agent = new HttpAgent({ url, threadId: "sdk" });
const run = async (text, more = {}) => {
  if (text !== null) agent.addMessage({ id: "user-" + seen.runs.length, role: "user", content: text });
  const types = [];
  await agent
    .runAgent({ runId: "run-" + seen.runs.length, ...more }, {
      onEvent: ({ event }) => {
        const parsed = EventSchemas.safeParse(event);
        if (!parsed.success) seen.invalid.push([event, parsed.error.issues]);
        types.push(event.type);
      },
      onRunErrorEvent: ({ event }) => void seen.errors.push(event.code),
    })
    .catch((error) => types.push("THROWN " + error.message));
  seen.runs.push(types);
};
await run("think: hard");
await run("echo one\ncalculate 6*7\nplan: a; b\ntask: first");
seen.state = agent.state;
await run("run: echo out; echo more");
seen.interrupts = agent.pendingInterrupts;
await run(null, { resume: [{ interruptId: agent.pendingInterrupts[0].id, status: "resolved", payload: { approved: true } }] });
await run("write a.txt: first");
await run(null, { resume: [{ interruptId: agent.pendingInterrupts[0].id, status: "resolved", payload: { approved: true, editedArgs: { path: "b.txt", content: "edited" } } }] });
await run("research: list");
await run("ask: Which colour?");
await run(null, { resume: [{ interruptId: agent.pendingInterrupts[0].id, status: "resolved", payload: "blue" }] });
await run("fail: quota");
await run("echo the end");
seen.messages = agent.messages;
// An aborted run.
agent.addMessage({ id: "slow", role: "user", content: "slow: " + "word ".repeat(200) });
const aborted = agent.runAgent({ runId: "aborted" }, { onTextMessageContentEvent: () => agent.abortRun() }).catch(() => {});
await aborted;
process.stdout.write(JSON.stringify(seen), () => process.exit(0));
