// Claude Code: a line for each content block, in a tree by parentUuid.
#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "engine/moves/formats.h"

namespace reprise {
namespace {

using Kind = MovedMessage::Kind;

// Lines that hold nothing of the conversation.
constexpr std::array kSilent = {
    "queue-operation", "last-prompt", "permission-mode", "mode",       "agent-name",         "agent-color",
    "agent-setting",   "tag",         "pr-link",         "summary",    "custom-title",       "ai-title",
    "worktree-state",  "progress",    "system",          "attachment", "content-replacement"};
constexpr std::uint64_t kMostOfSubAgent = 32 << 20;

std::string Between(std::string_view text, std::string_view begin, std::string_view end) {
  const std::size_t from = text.find(begin);
  if (from == std::string_view::npos) return {};
  const std::size_t to = text.find(end, from + begin.size());
  return std::string(
      Trimmed(text.substr(from + begin.size(), to == std::string_view::npos ? to : to - from - begin.size())));
}

// A command as the tool writes it: elements and nothing else. People may mention them.
bool IsCommand(std::string_view text) {
  return text.starts_with("<command-") && text.ends_with(">") && text.find("</command-name>") != std::string_view::npos;
}

// A message alone: `user` lines without results are prompts. Results in an answer are of the provider's own calls in
// it.
std::vector<MovedMessage> MessagesIn(const Json& line, LeftOut& left_out) {
  const Json& message = MemberOf(line, "message");
  AnthropicContent content = ReadAnthropicContent(MemberOf(message, "content"), left_out);
  std::vector<MovedMessage> messages = std::move(content.results);
  MovedMessage& said = content.message;
  if (TextMember(line, "type") == "assistant") {
    said.kind = Kind::kAnswer;
    said.text.clear();
    said.group = TextMember(message, "id");
    said.model = TextMember(message, "model");
    if (said.model == "<synthetic>") said.model.clear();
    said.usage = AnthropicUsage(MemberOf(message, "usage"));
    if (MemberOf(line, "isApiErrorMessage") == true) {
      said.kind = Kind::kFailed;
      for (const MovedBlock& block : std::exchange(said.blocks, {})) AddLine(said.text, block.text);
    }
    messages.insert(messages.begin(), std::move(said));
  } else if (!said.text.empty() || !said.files.empty()) {
    said.blocks.clear();
    messages.push_back(std::move(said));
  }
  for (MovedMessage& each : messages) each.at = TimeIn(MemberOf(line, "timestamp"));
  return messages;
}

// What a person says beside the mark of an interruption is a message of its own.
void TakeMark(std::vector<MovedMessage>& messages) {
  constexpr std::string_view kMark = "[Request interrupted by user";
  if (messages.empty() || messages.back().kind != Kind::kPrompt) return;
  MovedMessage& said = messages.back();
  const std::string_view text = Trimmed(said.text);
  if (!text.starts_with(kMark)) return;
  MovedMessage stopped{.kind = Kind::kStopped, .at = said.at};
  said.text = std::string(Trimmed(text.substr(std::min(text.find(']'), text.size() - 1) + 1)));
  const bool says_more = !said.text.empty() || !said.files.empty();
  messages.insert(messages.end() - 1, std::move(stopped));
  if (!says_more) messages.pop_back();
}

// The file of a sub-agent; empty if there is none. The id is a part of a name, and no path.
std::string FileOfSubAgent(const std::string& path, std::string_view agent) {
  if (path.empty() || agent.empty() || !std::ranges::all_of(agent, IsToolNameCharacter)) return {};
  const std::filesystem::path session(path);
  for (const auto& folder : {session.parent_path() / session.stem() / "subagents", session.parent_path()}) {
    std::error_code failed;
    const auto file = folder / ("agent-" + std::string(agent) + ".jsonl");
    if (std::filesystem::is_regular_file(std::filesystem::symlink_status(file, failed))) return file.string();
  }
  return {};
}

class ClaudeCodeReader final : public RecordReader {
 public:
  explicit ClaudeCodeReader(const std::string& path) : path_(path) {}

  std::vector<MovedMessage> Take(const Json& line) override {
    is_first_ = record >= read_;
    read_ = std::max(read_, record + 1);
    TakeFacts(line);
    const std::string type = TextMember(line, "type");
    std::vector<MovedMessage> messages;
    if (MemberOf(line, "isSidechain") == true) {
      messages = TakeSidechain(line);
    } else if (type == "user" || type == "assistant") {
      messages = TakeMessage(line, type);
    } else if (type == "progress") {
      messages = TakeProgress(line);
    } else if (type == "attachment") {
      messages = TakeAttachment(line);
    } else if (type == "file-history-snapshot") {
      left_out.Add("list of files as they were");
    } else if (std::ranges::find(kSilent, type) == kSilent.end()) {
      left_out.AddUnknown("line", type);
    }
    if (type == "system" && line.contains("compactMetadata")) {
      tokens_[TextMember(line, "uuid")] = CountIn(MemberOf(line, "compactMetadata"), "preTokens");
    }
    PutPlaces(line, messages);
    return messages;
  }

 private:
  struct Command {
    std::size_t record;  // its line
    std::string text, parent;
    std::string child{};  // the first line that it led to; empty: none yet
  };

  void TakeFacts(const Json& line) {
    if (facts.folder.empty()) facts.folder = TextMember(line, "cwd");
    if (facts.id.empty()) facts.id = TextMember(line, "sessionId");
    const std::string type = TextMember(line, "type");
    if (type == "summary") facts.title = TextMember(line, "summary");
    if (type == "ai-title") facts.title = TextMember(line, "aiTitle");
    if (type == "custom-title") facts.title = TextMember(line, "customTitle");
    const auto at = TimeIn(MemberOf(line, "timestamp"));
    if (!facts.created) facts.created = at;
    facts.updated = std::max(facts.updated, at);
  }

  std::vector<MovedMessage> TakeMessage(const Json& line, const std::string& type) {
    if (MemberOf(line, "isMeta") == true) {
      left_out.Add("message that the tool added by itself");
      return {};
    }
    auto messages = MessagesIn(line, left_out);
    TakeMark(messages);
    for (MovedMessage& message : messages) {
      for (const MovedBlock& block : message.blocks) {
        if (block.kind == MovedBlock::Kind::kCall) NoteTask(block);
      }
      if (message.kind == Kind::kPrompt) TakePrompt(line, message);
      if (message.kind == Kind::kResult) open_tasks_.erase(message.call_id);
    }
    std::erase_if(messages, [](const MovedMessage& each) { return each.kind == Kind::kModel; });
    if (type == "user") AddSubAgent(line, messages);
    return messages;
  }

  void TakePrompt(const Json& line, MovedMessage& message) {
    const std::string_view text = Trimmed(message.text);
    if (MemberOf(line, "isCompactSummary") == true) {
      message.kind = Kind::kSummary;
      message.tokens_before = tokens_[TextMember(line, "parentUuid")];
    } else if (((text.starts_with("<local-command-") || text.starts_with("<bash-")) && text.ends_with(">")) ||
               text.starts_with("Caveat: The messages below")) {
      left_out.Add("command of the tool itself");
      message.kind = Kind::kModel;
    } else if (IsCommand(text)) {
      const std::string arguments = Between(text, "<command-args>", "</command-args>");
      commands_.try_emplace(TextMember(line, "uuid"),
                            Command{.record = record,
                                    .text = Between(text, "<command-name>", "</command-name>") +
                                            (arguments.empty() ? "" : " " + arguments),
                                    .parent = TextMember(line, "parentUuid")});
      message.kind = Kind::kModel;
    }
  }

  // A call that may start a sub-agent, whose lines then begin with the same text.
  void NoteTask(const MovedBlock& block) {
    const bool may_start =
        block.text.find("\"prompt\"") != std::string::npos || block.text.find("\"question\"") != std::string::npos;
    const auto input = may_start ? ParseForeignJson(block.text, {}) : Json();
    for (const char* member : {"prompt", "question"}) {  // "question": of our own tool (share.md)
      const std::string task = input ? TextMember(*input, member) : "";
      if (task.empty() || !is_first_) continue;
      tasks_[std::hash<std::string>()(task)].push_back(block.id);
      open_tasks_.insert(block.id);
    }
  }

  // Sub-agents of versions that write into the same file.
  std::vector<MovedMessage> TakeSidechain(const Json& line) {
    const std::string parent = TextMember(line, "parentUuid");
    auto messages = MessagesIn(line, left_out);
    // As it was found when the lines were read in order; later lines may be known by now.
    const auto [known, is_new] = calls_of_lines_.try_emplace(record);
    std::string& call = known->second;
    if (is_new) {
      if (const auto found = chains_.find(parent); found != chains_.end()) call = found->second;
      if (call.empty() && parent.empty() && !messages.empty()) call = CallWith(messages.back().text);
    }
    if (call.empty()) {
      left_out.Add("step of a sub-agent whose call is missing");
      return {};
    }
    chains_.try_emplace(TextMember(line, "uuid"), call);
    return Nested(std::move(messages), call);
  }

  // The first call with this prompt that has neither a sub-agent nor a result yet; if all have, the last one.
  std::string CallWith(const std::string& prompt) {
    const auto found = tasks_.find(std::hash<std::string>()(prompt));
    if (found == tasks_.end()) return {};
    auto& calls = found->second;
    while (calls.size() > 1 && !open_tasks_.contains(calls.front())) calls.pop_front();
    open_tasks_.erase(calls.front());
    return calls.front();
  }

  static std::vector<MovedMessage> Nested(std::vector<MovedMessage> messages, const std::string& call) {
    std::erase_if(messages, [](const MovedMessage& each) { return each.kind == Kind::kPrompt; });
    for (MovedMessage& each : messages) each.nested = call;
    return messages;
  }

  // Newer versions tell of a sub-agent's steps in lines of their own, and keep them in a file beside.
  std::vector<MovedMessage> TakeProgress(const Json& line) {
    const Json& data = MemberOf(line, "data");
    if (TextMember(data, "type") != "agent_progress" || !FileOfAgent(TextMember(data, "agentId")).empty()) return {};
    return Nested(MessagesIn(MemberOf(data, "message"), left_out), TextMember(line, "parentToolUseID"));
  }

  void AddSubAgent(const Json& line, std::vector<MovedMessage>& messages) {
    const std::string agent = TextMember(MemberOf(line, "toolUseResult"), "agentId");
    const auto result = std::ranges::find(messages, Kind::kResult, &MovedMessage::kind);
    const std::string file = FileOfAgent(agent);
    if (result == messages.end() || file.empty()) return;
    // A sub-agent that was resumed has the steps of all calls in one file.
    if (naming_.try_emplace(file, record).first->second != record) return left_out.Add("sub-agent that is named twice");
    const std::string call = result->call_id;
    const auto source = SourceText::Open(file);
    if (!source || source->size() > kMostOfSubAgent) return left_out.Add("sub-agent whose file cannot be read");
    // What came later is not read, so that the steps stay the same.
    const std::uint64_t size = sizes_.try_emplace(file, source->size()).first->second;
    std::vector<MovedMessage> steps;
    const auto read = ForEachLine(*source, [&](const SourcePlace& place, std::string_view text) -> Result<bool> {
      if (place.offset >= size) return false;
      text = text.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(text.size(), size - place.offset)));
      const auto step = ParseForeignJson(text, file);
      if (!step) return left_out.Add("line of a sub-agent, which is not complete"), true;
      std::ranges::move(Nested(MessagesIn(*step, left_out), call), std::back_inserter(steps));
      return true;
    });
    if (!read) left_out.Add("sub-agent whose file cannot be read");
    messages.insert(result, std::make_move_iterator(steps.begin()), std::make_move_iterator(steps.end()));
  }

  std::string FileOfAgent(const std::string& agent) const { return FileOfSubAgent(path_, agent); }

  std::vector<MovedMessage> TakeAttachment(const Json& line) {
    const Json& attachment = MemberOf(line, "attachment");
    if (TextMember(attachment, "type") != "queued_command") return {};
    AnthropicContent content = ReadAnthropicContent(MemberOf(attachment, "prompt"), left_out);
    content.message.blocks.clear();
    content.message.at = TimeIn(MemberOf(line, "timestamp"));
    // The tool puts its own news there, too, and what other sessions send.
    const std::string from = TextMember(MemberOf(attachment, "origin"), "kind");
    const bool is_of_person = (from.empty() || from == "human") &&
                              TextMember(attachment, "commandMode") != "task-notification" &&
                              !content.message.text.starts_with("<task-notification>");
    if (!is_of_person) left_out.Add("message that the tool added by itself");
    if (!is_of_person || (IsBlank(content.message.text) && content.message.files.empty())) return {};
    return {std::move(content.message)};
  }

  // Says what each step continues; what says nothing is a place in the tree all the same.
  void PutPlaces(const Json& line, std::vector<MovedMessage>& messages) {
    const std::string uuid = TextMember(line, "uuid");
    std::string parent = TextMember(line, "parentUuid");
    if (parent.empty()) parent = TextMember(line, "logicalParentUuid");
    if (const auto command = commands_.find(parent); command != commands_.end())
      BeginCommand(command->second, uuid, line, messages);
    if (messages.empty() && !uuid.empty() && MemberOf(line, "isSidechain") != true)
      messages.push_back({.kind = Kind::kModel});
    const bool is_root = line.contains("parentUuid") && MemberOf(line, "parentUuid").is_null() && parent.empty();
    for (MovedMessage& message : messages) {
      if (!message.nested.empty() || !message.id.empty()) continue;
      message.id = uuid;
      message.parent = parent;
      message.is_root = is_root && message.kind == Kind::kPrompt;
    }
  }

  // A command of the tool is a message of the person if the model answers.
  void BeginCommand(Command& command, const std::string& uuid, const Json& line, std::vector<MovedMessage>& messages) {
    const bool leads_on = TextMember(line, "type") == "assistant" || MemberOf(line, "isMeta") == true;
    if (command.record > record) return;  // nor was it known when the lines were read in order
    if (!leads_on || (!command.child.empty() && command.child != uuid)) return;
    command.child = uuid;
    MovedMessage prompt{.id = TextMember(line, "parentUuid"), .parent = command.parent, .text = command.text};
    prompt.at = TimeIn(MemberOf(line, "timestamp"));
    messages.insert(messages.begin(), std::move(prompt));
  }

  const std::string path_;
  std::size_t read_ = 0;                                         // records
  bool is_first_ = true;                                         // reading of the record
  std::unordered_map<std::string, Command> commands_;            // by uuid
  std::unordered_map<std::string, std::int64_t> tokens_;         // before a compaction, by its uuid
  std::unordered_map<std::string, std::string> chains_;          // calls of sub-agents, by uuid of their lines
  std::unordered_map<std::size_t, std::string> calls_of_lines_;  // the same by number of the line; empty: none
  std::unordered_map<std::string, std::size_t> naming_;   // by file of a sub-agent: the record that named it first
  std::unordered_map<std::string, std::uint64_t> sizes_;  // of sub-agents' files, when they were first read
  std::unordered_map<std::size_t, std::deque<std::string>> tasks_;  // calls, by hash of their prompt
  std::unordered_set<std::string> open_tasks_;                      // those without a sub-agent and a result
};

}  // namespace

Result<std::vector<std::string>> FilesOfSubAgents(const SourceText& source, const std::string& path) {
  constexpr std::string_view kMember = "\"agentId\"";
  std::set<std::string, std::less<>> agents;
  TRY(ForEachLine(source, [&](const SourcePlace&, std::string_view line) -> Result<bool> {
    for (std::size_t at = line.find(kMember); at != std::string_view::npos; at = line.find(kMember, at)) {
      at = std::min(line.find_first_not_of(" :", at + kMember.size()), line.size());
      if (at == line.size() || line[at] != '"') continue;
      const std::string_view agent = line.substr(at + 1, line.find('"', at + 1) - at - 1);
      if (!agents.contains(agent)) agents.emplace(agent);
    }
    return true;
  }));
  std::vector<std::string> files;
  for (const std::string& agent : agents) {
    if (std::string file = FileOfSubAgent(path, agent); !file.empty()) files.push_back(std::move(file));
  }
  return files;
}

std::unique_ptr<RecordReader> ReadClaudeCode(const std::string& path) {
  return std::make_unique<ClaudeCodeReader>(path);
}

}  // namespace reprise
