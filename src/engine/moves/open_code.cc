// opencode: the files of a session, its messages and their parts; `opencode export` is one object with all of them, and
// so is what opencode.db has (databases.h).
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/text.h"
#include "engine/moves/formats.h"

namespace reprise {
namespace {

using Kind = MovedMessage::Kind;
namespace fs = std::filesystem;

constexpr int kMostSessions = 4;
constexpr std::size_t kMostFiles = 200'000;

struct StoredMessage {
  Json info;
  std::vector<Json> parts;
};

// The JSON files of a folder, by name: ids rise with time.
std::vector<Json> JsonFilesIn(const fs::path& folder, LeftOut& left_out) {
  std::vector<fs::path> paths;
  std::error_code failed;
  for (fs::directory_iterator each(folder, failed), end; !failed && each != end && paths.size() < kMostFiles;
       each.increment(failed)) {
    const bool is_json = each->path().extension() == ".json" && fs::is_regular_file(each->symlink_status(failed));
    if (is_json) paths.push_back(each->path());
  }
  std::ranges::sort(paths);
  std::vector<Json> files;
  for (const fs::path& path : paths) {
    auto json = ReadForeignJson(path.string());
    if (json && json->is_object()) {
      files.push_back(*std::move(json));
    } else {
      left_out.Add("file that is no JSON");
    }
  }
  return files;
}

bool IsPlainName(const std::string& id) { return !id.empty() && std::ranges::all_of(id, IsToolNameCharacter); }

class OpenCodeReader {
 public:
  // `storage` is the folder with session, message and part; empty for an export, which may have the messages of
  // sub-agents by their sessions.
  explicit OpenCodeReader(fs::path storage, const Json& sub_agents = {})
      : storage_(std::move(storage)), sub_agents_(sub_agents) {}

  ReadSession Read(const Json& session, std::vector<StoredMessage> messages) {
    ReadSession read;
    const Json& time = MemberOf(session, "time");
    read.facts = {.id = TextMember(session, "id"),
                  .title = TextMember(session, "title"),
                  .folder = TextMember(session, "directory"),
                  .created = TimeIn(MemberOf(time, "created")),
                  .updated = TimeIn(MemberOf(time, "updated"))};
    read_.insert(read.facts.id);
    TakeBack(MemberOf(session, "revert"), messages);
    read.messages = StepsOf(messages, 0);
    std::vector<std::string> unnamed;
    if (sub_agents_.is_object()) {
      for (const auto& each : sub_agents_.items()) {
        if (!read_.contains(each.key()) && !unread_.contains(each.key())) unnamed.push_back(each.key());
      }
    }
    AddNamed(left_out_, "sub-agent that no call names", unnamed);
    read.left_out = std::move(left_out_);
    return read;
  }

  static std::vector<StoredMessage> MessagesIn(const Json& list) {
    std::vector<StoredMessage> messages;
    for (const Json& message : list) {
      const Json& parts = ListIn(message, "parts");
      messages.push_back({.info = MemberOf(message, "info"), .parts = {parts.begin(), parts.end()}});
    }
    return messages;
  }

  std::vector<StoredMessage> MessagesOf(const std::string& session) {
    if (storage_.empty()) return MessagesIn(ListIn(sub_agents_, session));
    std::vector<StoredMessage> messages;
    if (!IsPlainName(session)) return messages;
    for (Json& info : JsonFilesIn(storage_ / "message" / session, left_out_)) {
      const std::string id = TextMember(info, "id");
      auto parts = IsPlainName(id) ? JsonFilesIn(storage_ / "part" / id, left_out_) : std::vector<Json>();
      messages.push_back({.info = std::move(info), .parts = std::move(parts)});
    }
    return messages;
  }

 private:
  // What a person has undone stays in the store, until they go on.
  void TakeBack(const Json& revert, std::vector<StoredMessage>& messages) {
    const std::string id = TextMember(revert, "messageID"), part_id = TextMember(revert, "partID");
    if (id.empty()) return;
    auto begin = std::ranges::find_if(
        messages, [&](const StoredMessage& message) { return TextMember(message.info, "id") == id; });
    if (begin == messages.end()) return;
    const auto part = std::ranges::find_if(
        begin->parts, [&](const Json& each) { return !part_id.empty() && TextMember(each, "id") == part_id; });
    if (part != begin->parts.end()) {
      left_out_.Add("part of an answer that was taken back", static_cast<std::size_t>(begin->parts.end() - part));
      begin->parts.erase(part, begin->parts.end());
      ++begin;
    }
    left_out_.Add("message that was taken back", static_cast<std::size_t>(messages.end() - begin));
    messages.erase(begin, messages.end());
  }

  std::vector<MovedMessage> StepsOf(const std::vector<StoredMessage>& messages, int depth) {
    std::vector<MovedMessage> steps;
    for (const StoredMessage& message : messages) {
      if (TextMember(message.info, "role") == "user") {
        AddPrompt(message, steps);
      } else {
        AddAnswer(message, depth, steps);
      }
    }
    return steps;
  }

  void AddPrompt(const StoredMessage& message, std::vector<MovedMessage>& steps) {
    MovedMessage prompt{.at = TimeIn(MemberOf(MemberOf(message.info, "time"), "created"))};
    for (const Json& part : message.parts) {
      const std::string type = TextMember(part, "type");
      if (type == "text" && (MemberOf(part, "synthetic") == true || MemberOf(part, "ignored") == true)) {
        left_out_.Add("message that the tool added by itself");
      } else if (type == "text") {
        AddLine(prompt.text, TextMember(part, "text"));
      } else if (type == "file") {
        AddFile(part, prompt.files);
      } else if (type == "subtask") {
        AddLine(prompt.text, TextMember(part, "prompt"));
      } else if (type != "agent" && type != "compaction") {
        left_out_.Add("part of a message (" + FirstWords(type) + ")");
      }
    }
    if (!prompt.text.empty() || !prompt.files.empty()) steps.push_back(std::move(prompt));
  }

  void AddFile(const Json& part, std::vector<MovedFile>& files) {
    auto file = FileInDataUrl(TextMember(part, "url"));
    if (!file) return left_out_.Add("file that is kept elsewhere");
    file->filename = TextMember(part, "filename");
    files.push_back(*std::move(file));
  }

  void AddAnswer(const StoredMessage& message, int depth, std::vector<MovedMessage>& steps) {
    const Json& info = message.info;
    const auto at = TimeIn(MemberOf(MemberOf(info, "time"), "created"));
    const bool is_summary = MemberOf(info, "summary") == true;
    MovedMessage answer{
        .kind = Kind::kAnswer, .group = TextMember(info, "id"), .at = at, .model = TextMember(info, "modelID")};
    std::vector<MovedMessage> results;
    for (const Json& part : message.parts) {
      const std::string type = TextMember(part, "type");
      if (type == "text") {
        answer.blocks.push_back({.text = TextMember(part, "text")});
      } else if (type == "reasoning") {
        answer.blocks.push_back({.kind = MovedBlock::Kind::kThinking, .text = TextMember(part, "text")});
      } else if (type == "tool") {
        AddCall(part, at, depth, answer, results);
      } else if (type == "step-finish" || type == "step-start" || type == "retry") {
        continue;
      } else {
        left_out_.Add("part of an answer (" + FirstWords(type) + ")");
      }
    }
    const Json& tokens = MemberOf(info, "tokens");
    const Json& cache = MemberOf(tokens, "cache");
    answer.usage = UsageOf(CountIn(tokens, "input"), CountIn(tokens, "output") + CountIn(tokens, "reasoning"),
                           CountIn(cache, "read"), CountIn(cache, "write"));
    const bool aborted = TextMember(MemberOf(info, "error"), "name") == "MessageAbortedError";
    if (is_summary && !answer.blocks.empty()) {
      steps.push_back({.kind = Kind::kSummary, .at = at, .text = answer.blocks.back().text});
    } else if (!answer.blocks.empty()) {
      steps.push_back(std::move(answer));
      std::ranges::move(results, std::back_inserter(steps));
    }
    if (aborted) steps.push_back({.kind = Kind::kStopped});
  }

  void AddCall(const Json& part, const std::optional<Timestamp>& at, int depth, MovedMessage& answer,
               std::vector<MovedMessage>& results) {
    const Json& state = MemberOf(part, "state");
    const std::string status = TextMember(state, "status"), id = TextMember(part, "callID");
    answer.blocks.push_back({.kind = MovedBlock::Kind::kCall,
                             .text = ArgumentsIn(MemberOf(state, "input")),
                             .id = id,
                             .name = TextMember(part, "tool")});
    const std::string child = TextMember(MemberOf(state, "metadata"), "sessionId");
    if (!child.empty()) AddSubAgent(child, id, depth, results);
    if (status != "completed" && status != "error") return;
    MovedMessage result{.kind = Kind::kResult, .at = at, .call_id = id, .is_error = status == "error"};
    if (const auto end = TimeIn(MemberOf(MemberOf(state, "time"), "end"))) result.at = end;
    result.text = TextMember(state, result.is_error ? "error" : "output");
    for (const Json& file : ListIn(state, "attachments")) AddFile(file, result.files);
    results.push_back(std::move(result));
  }

  void AddSubAgent(const std::string& session, const std::string& call, int depth, std::vector<MovedMessage>& results) {
    const bool is_there = !storage_.empty() || MemberOf(sub_agents_, session).is_array();
    if (!is_there || depth >= kMostSessions) {
      unread_.insert(session);
      return left_out_.Add("sub-agent in a session of its own");
    }
    if (!read_.insert(session).second) return left_out_.Add("sub-agent that is named twice");
    for (MovedMessage& step : StepsOf(MessagesOf(session), depth + 1)) {
      const bool says = step.nested.empty() && (step.kind == Kind::kAnswer || step.kind == Kind::kResult);
      if (!says) continue;
      step.nested = call;
      results.push_back(std::move(step));
    }
  }

  const fs::path storage_;
  const Json sub_agents_;
  std::set<std::string> read_;    // sessions: they may name each other
  std::set<std::string> unread_;  // that a call names
  LeftOut left_out_;
};

}  // namespace

ReadSession ReadOpenCode(const Json& session, const std::string& path) {
  if (session.contains("info")) {
    auto messages = OpenCodeReader::MessagesIn(ListIn(session, "messages"));
    return OpenCodeReader({}, MemberOf(session, "sub_agents")).Read(MemberOf(session, "info"), std::move(messages));
  }
  // storage/session/PROJECT/ID.json
  OpenCodeReader reader(fs::path(path).parent_path().parent_path().parent_path());
  return reader.Read(session, reader.MessagesOf(TextMember(session, "id")));
}

}  // namespace reprise
