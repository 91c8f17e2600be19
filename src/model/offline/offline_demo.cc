#include "model/offline/offline_demo.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"
#include "model/provider_error.h"

namespace reprise {
namespace {

constexpr std::chrono::milliseconds kStoryPause{20};  // between two words, as a fast model has it
constexpr std::chrono::milliseconds kStoryRetryAfter{1000};

// What the file consists of; a colour stands between.
constexpr std::string_view kFileStart =
    "This file was written by a demonstration of Reprise. You may delete it.\nColour: ";
constexpr std::string_view kNoColour = "not chosen yet";
constexpr std::array<std::string_view, 3> kColours{"green", "blue", "red"};
constexpr std::size_t kLongestColour = 60;  // characters
constexpr int kMostFiles = 99;

constexpr std::string_view kLookTask = "Look around", kWriteTask = "Write a file and change it";

constexpr std::string_view kStoryCommand = "for i in 1 2 3 4 5; do echo \"line $i of 5\"; sleep 0.3; done";

// Its calls are "demo_SCENE_WHAT": they tell how far the story has come.
constexpr std::string_view kCallPrefix = "demo_";

std::string FileName(int number) {
  return number == 1 ? "reprise-demo.txt" : "reprise-demo-" + std::to_string(number) + ".txt";
}

std::string FileText(std::string_view colour) { return std::string(kFileStart).append(colour).append("\n"); }

bool IsOwnFile(std::string_view text) {
  return text.starts_with(kFileStart) && text.find('\n', kFileStart.size()) == text.size() - 1;
}

// One line that means nothing in Markdown.
std::string PlainWords(std::string_view text) {
  std::string plain = ToValidUtf8(text);
  for (char& c : plain) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f ||
        std::string_view("|`*_<>[]\\").find(c) != std::string_view::npos)
      c = ' ';
  }
  const std::size_t first = plain.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  plain = plain.substr(first, plain.find_last_not_of(' ') - first + 1);
  return std::string(Utf8Prefix(plain, kLongestColour));
}

class Story {
 public:
  Story(const Messages& turn, const std::vector<ToolSpec>& tools, bool asks_people)
      : turn_(turn), tools_(tools), asks_people_(asks_people) {}

  OfflineResponse Next() const {
    static constexpr std::array kScenes{&Story::MakePlan,  &Story::LookAround, &Story::WriteFile,
                                        &Story::AskColour, &Story::ChangeFile, &Story::RunCommand};
    for (std::size_t scene = ScenesPlayed(); scene < kScenes.size(); ++scene) {
      OfflineResponse response = (this->*kScenes[scene])();
      if (response.tool_calls.empty()) continue;  // nothing of it can be done
      for (ToolCall& call : response.tool_calls) call.id = CallId(scene + 1, call.id);
      response.pause = kStoryPause;
      return response;
    }
    return End();
  }

 private:
  // What became of a call.
  enum class Became { kNone, kDone, kRejected, kFailed };

  // --- what has happened ---

  static std::string CallId(std::size_t scene, std::string_view what) {
    return std::string(kCallPrefix) + std::to_string(scene) + "_" + std::string(what);
  }

  std::size_t ScenesPlayed() const {
    std::size_t played = 0;
    for (const Message& message : turn_) {
      for (const ToolCall& call : message.tool_calls) {
        const std::string_view id = call.id;
        if (!id.starts_with(kCallPrefix) || id.size() == kCallPrefix.size()) continue;
        const char digit = id[kCallPrefix.size()];
        if (digit >= '1' && digit <= '9') played = std::max(played, static_cast<std::size_t>(digit - '0'));
      }
    }
    return played;
  }

  const Message* ResultOf(std::string_view id) const {
    for (const Message& message : turn_) {
      if (message.role == Role::kTool && message.tool_call_id == id) return &message;
    }
    return nullptr;
  }

  std::string_view OutputOf(std::string_view id) const {
    const Message* result = ResultOf(id);
    return result && result->content ? std::string_view(*result->content) : std::string_view();
  }

  Became EndOf(std::string_view id) const {
    const Message* result = ResultOf(id);
    if (result == nullptr) return Became::kNone;
    if (!result->is_error) return Became::kDone;
    const std::string_view output = OutputOf(id);
    for (const std::string_view start :
         {"The user rejected", "Nobody approved", "This server refuses", "This call needs approval"}) {
      if (output.starts_with(start)) return Became::kRejected;
    }
    return Became::kFailed;
  }

  bool IsDone(std::string_view id) const { return EndOf(id) == Became::kDone; }

  std::string TaskId(std::string_view call_id, std::string_view title) const {
    if (!IsDone(call_id)) return {};
    std::string_view list = OutputOf(call_id);
    std::string id;  // of the last such task: others may have the same title
    while (!list.empty()) {
      const std::string_view line = list.substr(0, list.find('\n'));
      list.remove_prefix(std::min(line.size() + 1, list.size()));
      if (line.ends_with("] " + std::string(title))) id = line.substr(0, line.find(' '));
    }
    return id;
  }

  bool IsThere(std::string_view name) const {
    std::string_view list = OutputOf("demo_2_list");
    while (!list.empty()) {
      std::string_view line = list.substr(0, list.find('\n'));
      list.remove_prefix(std::min(line.size() + 1, list.size()));
      if (line.ends_with('/')) line.remove_suffix(1);
      if (line == name) return true;
    }
    return false;
  }

  bool HasOwnFile() const { return IsDone("demo_2_read") && IsOwnFile(OutputOf("demo_2_read")); }

  // The file to write; nullopt if it is not known which one would be nobody's.
  std::optional<std::string> File() const {
    if (HasOwnFile()) return FileName(1);
    const bool is_whole = OutputOf("demo_2_list").find("\n(cut: ") == std::string_view::npos;
    if (!IsDone("demo_2_list") || !is_whole) return std::nullopt;
    const int first = IsDone("demo_2_read") ? 2 : 1;  // it was made while the list was
    for (int number = first; number <= kMostFiles; ++number) {
      if (!IsThere(FileName(number))) return FileName(number);
    }
    return std::nullopt;
  }

  // What the person has chosen; empty if they would not say.
  std::string Colour() const {
    if (IsDone("demo_4_ask")) return PlainWords(OutputOf("demo_4_ask"));
    const bool was_asked = ResultOf("demo_4_ask") != nullptr;
    return was_asked ? std::string() : std::string(kColours.front());
  }

  // --- what can be done ---

  bool Has(std::string_view tool) const {
    return std::any_of(tools_.begin(), tools_.end(), [&](const ToolSpec& each) { return each.name == tool; });
  }

  void Add(OfflineResponse& response, std::string_view what, std::string_view tool, const Json& arguments) const {
    if (Has(tool)) response.tool_calls.push_back({std::string(what), std::string(tool), DumpJson(arguments)});
  }

  void FinishTask(OfflineResponse& response, std::string_view call_id, std::string_view title) const {
    const std::string id = TaskId(call_id, title);
    if (!id.empty()) Add(response, "task", "manage_tasks", {{"action", "update"}, {"id", id}, {"status", "done"}});
  }

  // --- the scenes: without a call, there is none ---

  OfflineResponse MakePlan() const {
    OfflineResponse response{
        .thinking =
            "Somebody wants to see what this is. Showing is better than telling: I make a plan, look around "
            "before I change anything, ask before I write, run a command, and say at the end how to take all "
            "of it back.",
        .text =
            "I show you around, step by step. What I was thinking stands above this. First a plan, and two tasks "
            "that I tick off on the way."};
    Add(response, "plan", "update_plan",
        {{"steps",
          {"Look around in the workspace", "Write a small file, if I may", "Ask a question",
           "Change the file, if I may", "Run a command, if I may", "Say what to try next"}}});
    Add(response, "look", "manage_tasks", {{"action", "add"}, {"title", kLookTask}});
    Add(response, "write", "manage_tasks", {{"action", "add"}, {"title", kWriteTask}});
    return response;
  }

  OfflineResponse LookAround() const {
    OfflineResponse response{.text =
                                 "Two tools that only read run side by side, and need nobody's consent: what is "
                                 "in the workspace, and is there a `" +
                                 FileName(1) + "` already?"};
    Add(response, "list", "list_files", Json::object());
    Add(response, "read", "read_file", {{"path", FileName(1)}});
    return response;
  }

  OfflineResponse WriteFile() const {
    const auto file = File();
    OfflineResponse response;
    if (!file || !Has("write_file")) return response;
    response.thinking = "I know now what is here, so I can choose a name that overwrites nothing of theirs.";
    if (HasOwnFile()) {
      response.text = "`" + *file + "` is of an earlier demonstration, so I write it anew.";
    } else if (*file != FileName(1)) {
      response.text = "There is a `" + FileName(1) + "` that is not mine. I leave it alone and take `" + *file + "`.";
    } else {
      response.text = "There is none, so I write one.";
    }
    if (asks_people_) response.text += " You see what will be in it, and nothing is written before you agree.";
    FinishTask(response, "demo_1_look", kLookTask);
    Add(response, "write", "write_file", {{"path", *file}, {"content", FileText(kNoColour)}});
    return response;
  }

  OfflineResponse AskColour() const {
    OfflineResponse response;
    if (!asks_people_) return response;
    switch (EndOf("demo_3_write")) {
      case Became::kNone:
        response.text = "I write no file here.";
        break;
      case Became::kDone:
        response.text = "Written.";
        break;
      case Became::kRejected:
        response.text = "As you wish: nothing was written, and I do not try it in another way.";
        break;
      case Became::kFailed:
        response.text = "That could not be written, so I go on without it.";
        break;
    }
    response.text += " Now something that only you can know. I wait for your answer as long as it takes.";
    Add(response, "ask", "ask_human",
        {{"question", "Which colour do you like best? (Another answer is fine, too.)"}, {"options", kColours}});
    return response;
  }

  OfflineResponse ChangeFile() const {
    const std::string colour = Colour();
    const auto file = File();
    OfflineResponse response;
    if (!file || !IsDone("demo_3_write") || colour.empty()) return response;
    response.text = asks_people_
                        ? "You said *" + colour + "*. That goes into the file. Only what changes is shown for approval."
                        : "I would ask you for a colour now. Nobody is asked on this server, so I take " + colour +
                              " and put it into the file.";
    Add(response, "edit", "edit_file",
        {{"path", *file}, {"old_text", "Colour: " + std::string(kNoColour)}, {"new_text", "Colour: " + colour}});
    return response;
  }

  OfflineResponse RunCommand() const {
    OfflineResponse response;
    if (!Has("run_shell")) return response;
    if (EndOf("demo_5_edit") == Became::kRejected) {
      response.text = "Then it stays as it is. ";
    } else if (EndOf("demo_4_ask") == Became::kFailed) {
      response.text = "No answer is an answer, too. ";
    }
    response.text +=
        "Now a command. What it prints is shown while it runs, and it runs in a sandbox where this "
        "machine has one.";
    if (IsDone("demo_5_edit")) FinishTask(response, "demo_1_write", kWriteTask);
    Add(response, "run", "run_shell", {{"command", kStoryCommand}});
    return response;
  }

  // --- the end ---

  std::string Told(std::string_view id, std::string_view done) const {
    switch (EndOf(id)) {
      case Became::kNone:
        return "left out";
      case Became::kDone:
        return std::string(done);
      case Became::kRejected:
        return "not allowed, so not done";
      case Became::kFailed:
        return "failed";
    }
    return {};
  }

  OfflineResponse End() const {
    const std::string file = File().value_or(FileName(1));
    std::string said = Told("demo_4_ask", "you said *" + Colour() + "*");
    if (EndOf("demo_4_ask") == Became::kFailed || Colour().empty()) said = "not answered";
    if (!asks_people_) said = "left out: nobody is asked here";
    Error failure = MakeProviderError({.status = 529,
                                       .code = "overloaded_error",
                                       .message = "the offline model plays this once in its demonstration"},
                                      {});
    failure.retry_after = kStoryRetryAfter;
    return {
        .thinking = "All is shown. What people miss most is the way back, so I end with that.",
        .text =
            "## That was the tour\n"
            "| step | what became of it |\n"
            "|---|---|\n"
            "| plan and tasks | " +
            Told("demo_1_plan", "made") +
            " |\n"
            "| two reads side by side | " +
            Told("demo_2_list", "done") +
            " |\n"
            "| a file to approve | " +
            Told("demo_3_write", "written: `" + file + "`") +
            " |\n"
            "| a question | " +
            said +
            " |\n"
            "| a change to approve | " +
            Told("demo_5_edit", "made") +
            " |\n"
            "| a command with live output | " +
            Told("demo_6_run", "run") +
            " |\n"
            "| a retry | the request for this answer failed once (I played that) and was sent again |\n"
            "\n"
            "## Now you\n"
            "- **Edit an earlier message:** `/edit` takes your last message, `/edit 1` the first. What you say "
            "instead begins a new branch; the old one stays.\n"
            "- **Switch branches:** `/branches` lists them and takes you to another one. `/undo` goes one message "
            "back.\n"
            "- **Replay:** `reprise replay CHAT` runs the agent again on the record of a chat, touches nothing, and "
            "compares every event.\n"
            "- **More of this model:** `help` lists what I understand. For a real model see `/model`.\n"
            "\n"
            "Over HTTP an edit is `POST /chats/CHAT/interactions/int_001/edit`.",
        .pause = kStoryPause,
        .failure = std::move(failure),
        .fails_first_attempt = true};
  }

  const Messages& turn_;
  const std::vector<ToolSpec>& tools_;
  const bool asks_people_;
};

}  // namespace

OfflineResponse NextOfDemo(const Messages& turn, const std::vector<ToolSpec>& tools, bool asks_people) {
  return Story(turn, tools, asks_people).Next();
}

}  // namespace reprise
