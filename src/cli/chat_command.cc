#include "cli/chat_command.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/json.h"
#include "cli/console.h"
#include "cli/private_file.h"
#include "cli/server_client.h"
#include "cli/terminal_input.h"
#include "cli/terminal_text.h"
#include "reprise/ids.h"

namespace reprise {
namespace {

constexpr std::size_t kShownResult = 200;  // characters

constexpr std::string_view kHelp =
    "/undo          take the last message back\n"
    "/edit TEXT     say TEXT instead of the last message\n"
    "/history       what was said so far\n"
    "/quit          leave (or end of input)\n"
    "Ctrl-C         cancels what runs\n";

std::string TextIn(const Json& json, const char* name) {
  const auto member = json.is_object() ? json.find(name) : json.end();
  return member != json.end() && member->is_string() ? member->get<std::string>() : std::string();
}

class Conversation {
 public:
  Conversation(ServerClient& server, TerminalInput& input, const ChatId& chat, bool json)
      : server_(server), input_(input), path_("/chats/" + chat.str()), json_(json) {}

  int Run() {
    std::string line;
    for (;;) {
      if (!json_) Show("> ");
      switch (input_.ReadLine(line)) {
        case TerminalInput::Came::kEnd:
          return status_;
        case TerminalInput::Came::kInterrupt:
          Show("\n");
          return status_;
        case TerminalInput::Came::kLine:
          break;
      }
      if (line == "/quit") return status_;
      if (!line.empty()) Obey(line);
    }
  }

 private:
  void Show(std::string_view text) {
    Print(text);
    std::fflush(stdout);
  }
  // A question is not part of what --json prints.
  void Ask(const std::string& text) {
    if (!json_) return Show(text);
    std::fputs(text.c_str(), stderr);
  }
  void Failed(const Error& error) { status_ = Complain(error); }

  void Obey(const std::string& line) {
    if (line == "/help") return Show(kHelp);
    if (line == "/history") return History();
    if (line == "/undo") return Undo();
    if (line.starts_with("/edit ")) return Edit(line.substr(6));
    if (line.starts_with("/")) return Warn("there is no such command (/help lists them)");
    Exchange(path_ + "/interactions", {{"user_message", line}});
  }

  void Undo() {
    const auto undone = server_.Call("POST", path_ + "/undo");
    if (!undone) return Failed(undone.error());
    if (json_) return Show(DumpJson(*undone) + "\n");
    Show("back to " + VisibleLine(TextIn(*undone, "head")) + "\n");
  }

  void Edit(const std::string& text) {
    const auto chat = server_.Call("GET", path_);
    if (!chat) return Failed(chat.error());
    Exchange(path_ + "/interactions/" + TextIn(*chat, "head") + "/edit", {{"new_user_message", text}});
  }

  void History() {
    const auto chat = server_.Call("GET", path_);
    if (!chat) return Failed(chat.error());
    if (json_) return Show(DumpJson(*chat) + "\n");
    for (const Json& interaction : (*chat)["interactions"]) {
      Show(VisibleLine(TextIn(interaction, "id")) + "  " + VisibleLine(TextIn(interaction, "status")) + "\n  you    " +
           Indented(TextIn(interaction, "user_message"), "         ") + "\n");
      for (const Json& event : interaction["agent_events"]) {
        const std::string type = TextIn(event, "type");
        if (type == "ANSWER" || type == "MESSAGE") {
          Show("  agent  " + Indented(TextIn(event, "content"), "         ") + "\n");
        } else if (type == "TOOL_CALL") {
          Show("  tool   " + VisibleLine(TextIn(event, "tool_name") + " " + TextIn(event, "tool_input")) + "\n");
        }
      }
    }
  }

  // One message and all that comes of it.
  void Exchange(const std::string& path, const Json& body) {
    interaction_.clear();
    said_ = false;
    const auto cancel = [this] {
      if (interaction_.empty()) return;
      if (auto done = server_.Call("POST", path_ + "/interactions/" + interaction_ + "/cancel"); !done) {
        Failed(done.error());
      }
    };
    const auto ended = server_.Stream(
        path, body, input_, [this](std::string_view name, const Json& data) { Heard(name, data); }, cancel);
    if (!ended) Failed(ended.error());
  }

  void Heard(std::string_view name, const Json& data) {
    if (name == "interaction_started") interaction_ = TextIn(data, "interaction_id");
    if (json_) {
      Show(DumpJson(data) + "\n");
    } else {
      Tell(name, data);
    }
    if (name == "approval_required") Approve(data);
    if (name == "input_required") Respond(data);
    if (name == "interaction_complete" && TextIn(data, "status") != "COMPLETED") status_ = kExitFailure;
  }

  void EndText() {
    if (std::exchange(said_, false)) Show("\n");
  }

  void Tell(std::string_view name, const Json& data) {
    if (name == "text_delta") {
      said_ = true;
      return Show(Indented(TextIn(data, "content"), ""));
    }
    if (name == "answer" || name == "message") {
      if (!said_) Show(Indented(TextIn(data, "content"), ""));
      said_ = true;
      return EndText();
    }
    if (name == "tool_call") {
      EndText();
      Show("[" + VisibleLine(TextIn(data, "tool_name") + " " + TextIn(data, "tool_input")) + "]\n");
    } else if (name == "tool_result") {
      Show("  " + Shortened(VisibleLine(TextIn(data, "tool_output")), kShownResult) + "\n");
    } else if (name == "error") {
      EndText();
      Show("error: " + VisibleLine(TextIn(data, "message")) + "\n");
    } else if (name == "cancelled") {
      EndText();
      Show("(cancelled)\n");
    } else if (name == "retry") {
      Show("(the model's provider fails; trying again)\n");
    }
  }

  // The next line, as the answer to a question; nullopt if there is none any more.
  std::optional<std::string> Answer(const std::string& question) {
    EndText();
    Ask(question);
    std::string line;
    if (input_.ReadLine(line) == TerminalInput::Came::kLine) return line;
    Ask("\n");
    return std::nullopt;
  }

  void Approve(const Json& asked) {
    const std::string what = VisibleLine(TextIn(asked, "tool_name") + " " + TextIn(asked, "tool_input"));
    Json body = {{"approval_id", TextIn(asked, "approval_id")},
                 {"approved", false},
                 {"arguments_digest", TextIn(asked, "arguments_digest")}};
    for (;;) {
      const auto answer = Answer(what + "\n" + VisibleLine(TextIn(asked, "reason")) +
                                 "\nallow? [y]es, [n]o, [a]lways in this chat, [e]dit the arguments: ");
      if (!answer || answer == "n" || answer == "no") break;
      if (answer == "e" || answer == "edit") {
        const auto text = Answer("arguments: ");
        if (!text) break;
        const auto arguments = ParseJson(*text);
        if (!arguments || !arguments->is_object()) {
          Warn("the arguments must be a JSON object");
          continue;
        }
        body["arguments"] = *arguments;
      } else if (answer == "a" || answer == "always") {
        body["scope"] = "chat";
      } else if (answer != "y" && answer != "yes") {
        continue;
      }
      body["approved"] = true;
      break;
    }
    const auto given = server_.Call("POST", path_ + "/interactions/" + interaction_ + "/approve", body);
    if (!given) Failed(given.error());
  }

  void Respond(const Json& asked) {
    std::string question = VisibleLine(TextIn(asked, "question"));
    if (const auto options = asked.find("options"); options != asked.end() && options->is_array()) {
      for (const Json& option : *options) {
        if (option.is_string()) question += "\n  - " + VisibleLine(option.get<std::string>());
      }
    }
    const auto answer = Answer(question + "\nanswer: ");
    Json body = {{"request_id", TextIn(asked, "request_id")}};
    if (answer && !answer->empty()) {
      body["response"] = *answer;
    } else {
      body["declined"] = true;
    }
    const auto given = server_.Call("POST", path_ + "/interactions/" + interaction_ + "/respond", body);
    if (!given) Failed(given.error());
  }

  ServerClient& server_;
  TerminalInput& input_;
  const std::string path_;
  const bool json_;
  int status_ = kExitOk;
  std::string interaction_;  // that runs
  bool said_ = false;        // the line on the terminal has text of the model
};

}  // namespace

int RunChat(const CommandLine& line, const Environment&) {
  auto chat = line.argument.empty() ? Result<ChatId>(ChatId::Random()) : ChatId::Parse(line.argument);
  if (!chat) return Misused(chat.error().message);
  std::string url = line.url, token;
  while (url.ends_with('/')) url.pop_back();
  if (const auto file = line.flags.find("token-file"); file != line.flags.end()) {
    auto read = ReadToken(file->second);
    if (!read) return Complain(read.error());
    token = *std::move(read);
  }
  TerminalInput input;  // before the transport's thread
  ServerClient server(std::move(url), std::move(token));
  if (auto there = server.Call("GET", "/healthz"); !there) return Complain(there.error());
  if (!line.json) Print("chat " + chat->str() + " (/help lists the commands)\n");
  return Conversation(server, input, *chat, line.json).Run();
}

}  // namespace reprise
