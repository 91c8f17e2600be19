// A typical front end: CopilotKit's hooks over AG-UI's client, without CopilotKit's cloud and runtime. Only the names of elements are ours.
import { HttpAgent } from "@ag-ui/client";
import { CopilotKitProvider, useAgent, useCopilotKit, useInterrupt } from "@copilotkit/react-core/v2";
import { createElement as h, useState } from "react";
import { createRoot } from "react-dom/client";

const fail = (error) => document.body.setAttribute("data-error", String(error?.message ?? error));

function Chat() {
  const { agent } = useAgent({ agentId: "reprise" });
  const { copilotkit } = useCopilotKit();
  const [words, setWords] = useState("");
  const question = useInterrupt({
    agentId: "reprise",
    renderInChat: false,
    render: ({ interrupt, resolve }) =>
      h(
        "div",
        { "data-testid": "interrupt" },
        h("p", null, interrupt?.message),
        h("button", { "data-testid": "approve", onClick: () => resolve({ approved: true }) }, "Approve"),
        h("button", { "data-testid": "change", onClick: () => resolve({ approved: true, editedArgs: { path: "changed.txt", content: "changed" } }) }, "Change"),
      ),
  });
  const send = () => {
    setWords("");
    agent.addMessage({ id: crypto.randomUUID(), role: "user", content: words });
    copilotkit.runAgent({ agent }).catch(fail);
  };
  return h(
    "div",
    null,
    agent.messages.map((each) => h("p", { key: each.id, "data-testid": each.role }, typeof each.content === "string" ? each.content : "")),
    question,
    h("pre", { "data-testid": "state" }, JSON.stringify(agent.state ?? null)),
    h("textarea", { "data-testid": "composer", value: words, onChange: (event) => setWords(event.target.value) }),
    h("button", { "data-testid": "stop", onClick: () => copilotkit.stopAgent({ agent }) }, "Stop"),
    h("button", { "data-testid": "send", onClick: send }, "Send"),
  );
}
const agents = { reprise: new HttpAgent({ url: "/agui", threadId: "front" }) };
createRoot(document.getElementById("app")).render(
  h(CopilotKitProvider, { selfManagedAgents: agents, showDevConsole: false, onError: ({ error }) => fail(error) }, h(Chat)),
);
