// A typical front end: assistant-ui's primitives over its AG-UI runtime. Only the names of elements are ours.
import { HttpAgent } from "@ag-ui/client";
import { ActionBarPrimitive, AssistantRuntimeProvider, ComposerPrimitive, MessagePrimitive, ThreadPrimitive } from "@assistant-ui/react";
import { useAgUiInterrupts, useAgUiRuntime, useAgUiState, useAgUiSubmitInterruptResponses } from "@assistant-ui/react-ag-ui";
import { createElement as h } from "react";
import { createRoot } from "react-dom/client";

const agent = new HttpAgent({ url: "/agui", threadId: "front" });

const Text = ({ text }) => h("span", { "data-testid": "text" }, text);
const Tool = ({ toolName, argsText, result }) => h("p", { "data-testid": "tool", "data-name": toolName, title: argsText }, result === undefined ? "" : String(result));
const parts = { Text, tools: { Fallback: Tool } };
const User = () =>
  h(MessagePrimitive.Root, { "data-testid": "user" }, h(MessagePrimitive.Parts, { components: parts }), h(ActionBarPrimitive.Edit, { "data-testid": "edit" }, "Edit"));
const Assistant = () => h(MessagePrimitive.Root, { "data-testid": "assistant" }, h(MessagePrimitive.Parts, { components: parts }));
const Editor = () => h(ComposerPrimitive.Root, null, h(ComposerPrimitive.Input, { "data-testid": "edited" }), h(ComposerPrimitive.Send, { "data-testid": "send-edited" }, "Send"));

function Interrupts() {
  const interrupts = useAgUiInterrupts();
  const submit = useAgUiSubmitInterruptResponses();
  const answer = (payload) => void submit(interrupts.map((each) => ({ interruptId: each.id, status: "resolved", payload })));
  if (interrupts.length === 0) return null;
  return h(
    "div",
    { "data-testid": "interrupt" },
    interrupts.map((each) => h("p", { key: each.id }, each.message)),
    h("button", { "data-testid": "approve", onClick: () => answer({ approved: true }) }, "Approve"),
    h("button", { "data-testid": "change", onClick: () => answer({ approved: true, editedArgs: { path: "changed.txt", content: "changed" } }) }, "Change"),
  );
}
const State = () => h("pre", { "data-testid": "state" }, JSON.stringify(useAgUiState() ?? null));

function App() {
  const runtime = useAgUiRuntime({ agent, onError: (error) => document.body.setAttribute("data-error", error.message) });
  return h(
    AssistantRuntimeProvider,
    { runtime },
    h(ThreadPrimitive.Messages, { components: { UserMessage: User, AssistantMessage: Assistant, EditComposer: Editor } }),
    h(Interrupts),
    h(State),
    h(ComposerPrimitive.Root, null, h(ComposerPrimitive.Input, { "data-testid": "composer" }), h(ComposerPrimitive.Cancel, { "data-testid": "stop" }, "Stop"), h(ComposerPrimitive.Send, { "data-testid": "send" }, "Send")),
  );
}
createRoot(document.getElementById("app")).render(h(App));
