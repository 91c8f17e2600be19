#include "cli/command_notes.h"

#include <utility>

namespace reprise {
namespace {

constexpr CommandExample kExamples[] = {
    {"", "reprise", "talk with the agent, in a new chat"},
    {"", "reprise --continue", "go on with the chat that was used last"},
    {"", "reprise -p \"what is 2+2?\"", "one question; the answer alone is printed"},
    {"serve", "reprise serve", "serve http://127.0.0.1:8000; the tools work in this folder"},
    {"serve", "reprise serve --port 9000 --workspace ~/project", "another port, another folder"},
    {"serve", "reprise serve --model openai/gpt-4o-mini", "with a model whose key is in OPENAI_API_KEY"},
    {"chat", "reprise chat", "begin a new chat"},
    {"chat", "reprise chat notes", "go on with the chat notes"},
    {"acp", "reprise acp", "what an editor starts: docs/acp.md"},
    {"acp", "reprise acp --url http://127.0.0.1:9000", "by a server that runs there"},
    {"mcp-server", "reprise mcp-server", "what a client of MCP starts: docs/mcp-server.md"},
    {"mcp-server", "reprise mcp-server --url http://127.0.0.1:9000", "by a server that runs there"},
    {"ls", "reprise ls", "all chats, the latest first"},
    {"ls", "reprise ls notes --all", "every interaction of one chat"},
    {"cat", "reprise cat notes/int_001", "one interaction as plain JSON"},
    {"show", "reprise show notes", "a chat, for reading"},
    {"replay", "reprise replay notes", "does the agent do the same again on its record?"},
    {"replay", "reprise replay notes/int_002 --mode events --speed 1", "watch an interaction again"},
    {"verify", "reprise verify", "check every file of every chat"},
    {"verify", "reprise verify notes --json", "one chat, for a program"},
    {"audit", "reprise audit --json", "the log of all tool calls, for a program"},
    {"approvals", "reprise approvals", "what waits for a person, in every chat"},
    {"approvals", "reprise approvals approval_0f8c6e2a4b1d49e7a3c5f6d7e8091a2b no --feedback \"in the other folder\"",
     "reject a call, and say why"},
    {"models", "reprise models", "which models there are"},
    {"models", "reprise models --json", "the same, for a program"},
    {"mv", "reprise mv notes Shopping for Sunday", "another title; the id stays"},
    {"rm", "reprise rm notes", "move a chat to the trash"},
    {"rm", "reprise rm notes drafts", "move two chats there"},
    {"restore", "reprise restore", "what is in the trash"},
    {"restore", "reprise restore notes", "bring a chat back"},
    {"fork", "reprise fork notes --as plan-b", "go on from here in another chat"},
    {"fork", "reprise fork notes/int_003 --as earlier", "from an earlier interaction on"},
    {"export", "reprise export notes --format markdown -o notes.md", "a chat as a text to read or to send"},
    {"export", "reprise export -o backup", "every chat, each as a document that import reads"},
    {"import", "reprise import backup", "bring them in again, as new chats"},
    {"search", "reprise search invoice", "where that word was said"},
    {"search", "reprise search --regex \"int(eger)? overflow\" --chat notes", "a pattern, in one chat"},
    {"encrypt", "reprise encrypt --all --in-place", "seal a data folder that was plain"},
    {"decrypt", "reprise decrypt --all -o plain-chats", "a plain copy of all chats"},
    {"keys init", "reprise keys init", "make the key file, if there is none"},
    {"keys list", "reprise keys list", "which keys there are"},
    {"keys rotate", "reprise keys rotate --rewrap", "a new key, and every file wrapped to it"},
    {"keys rewrap", "reprise keys rewrap --remove-old", "finish that, and drop the old keys"},
    {"keys passphrase", "reprise keys passphrase", "set or change the key file's passphrase"},
    {"files sweep", "reprise files sweep --dry-run", "what is in the bucket that no chat needs any more"},
    {"files push", "reprise files push", "the files that were in the folder, to the bucket"},
    {"files pull", "reprise files pull", "all back into the folder"},
    {"mcp add", "reprise mcp add dice -- python3 dice.py", "a server that is a program"},
    {"mcp add", "reprise mcp add tickets --url https://example.org/mcp --oauth", "one on the web, at which you log in"},
    {"mcp list", "reprise mcp list", "which servers there are, and where you are logged in"},
    {"mcp login", "reprise mcp login tickets", "log in, in the browser"},
    {"mcp logout", "reprise mcp logout tickets", "forget that log-in"},
    {"mcp test", "reprise mcp test dice", "does it start, and how many tools has it?"},
    {"db init", "reprise db init", "make the tables, once"},
    {"db migrate", "reprise db migrate", "after an update of reprise"},
    {"db status", "reprise db status", "is the database ready?"},
    {"doctor", "reprise doctor", "is everything in order?"},
    {"trust", "reprise trust", "allow ./reprise.json as it is now"},
    {"trust", "reprise trust --list", "what is allowed, and whether it has changed"},
    {"users token add", "reprise users token add alice --name backup --expires-days 90", "a token for a script"},
    {"users token list", "reprise users token list", "whose they are, and when they were last used"},
    {"users org delete", "reprise users org delete acme --yes", "delete all that the users of acme have"},
    {"users token revoke", "reprise users token revoke token_5f0c1d2e3a4b", "take one back"},
    {"completion", "reprise completion bash > ~/.local/share/bash-completion/completions/reprise", "for bash"},
    {"completion", "reprise completion fish > ~/.config/fish/completions/reprise.fish", "for fish"},
    {"man", "reprise man serve | man -l -", "read the page of a command without installing it"},
    {"help", "reprise help keys", "the options of a command"},
};

constexpr std::pair<std::string_view, std::string_view> kDescriptions[] = {
    {"",
     "Reprise runs an LLM agent on your own machine, for you alone. One user message and everything the agent does "
     "about it is an interaction: streamed while it happens, stopped and approved by plain HTTP, and written to disk "
     "as "
     "one encrypted JSON file. An earlier message can be changed: the agent goes back to the state before it and runs "
     "again from there. Nothing that was on disk is lost by that.\n\n"
     "It works without a network and without a key too: the built-in offline model drives every tool.\n\n"
     "Without a command, `reprise` at a terminal is the client: it finds the server that uses the data folder, or "
     "starts "
     "one that ends with it. With --prompt, or with input from a pipe, it sends one message and prints the answer."},
    {"serve",
     "Serves the HTTP interface of `reprise` until SIGINT or SIGTERM. When it accepts connections it prints one line, "
     "`reprise listening on http://HOST:PORT`; everything else is logged on standard error. A second signal ends it at "
     "once.\n\n"
     "Flags beat REPRISE_* variables, these beat the configuration file, and that beats the defaults. Where "
     "OPENAI_API_KEY "
     "or ANTHROPIC_API_KEY is set, a model of that provider is the default; else it is the offline model.\n\n"
     "Under systemd it takes its listening socket from the service manager, if there is one (LISTEN_FDS; --host and "
     "--port then have no effect), and tells it when it is ready (NOTIFY_SOCKET). The user units reprise.socket and "
     "reprise.service are made for that."},
    {"ls", "Reads the files of the chats. A server may be running on the same data folder meanwhile."},
    {"cat", "Prints what is in an encrypted file, as JSON. A server may be running on the same data folder meanwhile."},
    {"replay",
     "Runs the agent again on what model, tools and people said then, and compares each event with the recorded one. "
     "No "
     "model is asked, no tool is run, and nothing is written."},
    {"verify",
     "Opens every file and checks that it is what was written, where it was written. Damaged files are named and left "
     "as "
     "they are."},
    {"audit",
     "Each tool call is a line of the log: when, where, which tool, the digest of its arguments, why it was allowed, "
     "and "
     "how it ended. Lines that were changed or taken out are reported."},
    {"rm",
     "The chat goes to the trash as it is; `reprise restore` brings it back. If a server runs on the data folder, it "
     "does this, and cancels a run of the chat first."},
    {"restore",
     "Without an argument it lists the trash: chat, time of deletion, size, the entry's id, and the title.\n\n"
     "A chat comes back under its own name only, for its files are sealed to that. If another chat has the name, fork "
     "that one and move it to the trash first."},
    {"mv", "A chat's id never changes: its files are sealed to it, and clients know it by that."},
    {"approvals",
     "Asks the server that runs on the data folder. An approval is answered once, by whoever is first. A no is for the "
     "one call that is asked about; a yes may be for equal calls as well (--scope)."},
    {"models",
     "Asks the server that runs on the data folder. Without one it lists what the configuration names and what its "
     "providers tell within three seconds."},
    {"import",
     "What is brought in becomes a new chat; no chat that is there is changed. A chat is there with all its "
     "interactions, "
     "or not at all. If a server runs on the data folder, the chats go through it."},
    {"trust",
     "A configuration that was found in the current folder, and programs that it names in the workspace, could have "
     "been "
     "written by the agent. They are used only after a person has allowed them as they are. A changed file has to be "
     "allowed anew."},
    {"db",
     "Chats are kept in a PostgreSQL database if the configuration says so: "
     "\"store\": {\"type\": \"postgres\", \"url\": \"postgresql://...\"}. Only these commands make or change its "
     "tables; a server that finds others than it needs does not start."},
    {"keys",
     "Chats are encrypted with a key in the key file. Keep a copy of that file elsewhere: without it nobody can open "
     "the "
     "chats."},
    {"files",
     "Where the configuration names a bucket, the files that are given to chats go there, sealed as they would be in "
     "the "
     "folder. Files that were given before stay where they are until they are moved. For push and pull no server may "
     "run on the data folder; a sweep does not mind one."},
    {"completion",
     "Prints a script that makes the shell complete the commands, flags and values of reprise, files, and the ids of "
     "chats. The scripts that are installed with reprise are the same."},
    {"man", "Prints the man page of reprise or of one command (`reprise man keys init`), as troff."},
};

}  // namespace

std::span<const CommandExample> AllExamples() { return kExamples; }

std::vector<CommandExample> ExamplesOf(std::string_view command) {
  std::vector<CommandExample> examples;
  for (const CommandExample& example : kExamples) {
    if (example.command == command) examples.push_back(example);
  }
  return examples;
}

std::string_view DescriptionOf(std::string_view command) {
  for (const auto& [name, text] : kDescriptions) {
    if (name == command) return text;
  }
  return {};
}

}  // namespace reprise
