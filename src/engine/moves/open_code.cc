// opencode: the files of a session, its messages and their parts; `opencode export` is one object with all of them, and
// so is what opencode.db has (databases.h).
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
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

// The JSON files of a folder, by name: ids rise with time.
std::vector<fs::path> JsonFilesIn(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code failed;
  for (fs::directory_iterator each(folder, failed), end; !failed && each != end && paths.size() < kMostFiles;
       each.increment(failed)) {
    const bool is_json = each->path().extension() == ".json" && fs::is_regular_file(each->symlink_status(failed));
    if (is_json) paths.push_back(each->path());
  }
  std::ranges::sort(paths);
  return paths;
}

bool IsPlainName(const std::string& id) { return !id.empty() && std::ranges::all_of(id, IsToolNameCharacter); }

// A message of a store, with its parts, as an export has it. "unreadable" counts files that are no JSON.
Json StoredMessage(const fs::path& storage, const fs::path& path) {
  std::size_t unreadable = 0;
  const auto read = [&](const fs::path& file) {
    auto json = ReadForeignJson(file.string());
    if (json && json->is_object()) return *std::move(json);
    ++unreadable;
    return Json();
  };
  Json info = read(path), parts = Json::array();
  const std::string id = TextMember(info, "id");
  for (const fs::path& part : IsPlainName(id) ? JsonFilesIn(storage / "part" / id) : std::vector<fs::path>()) {
    if (Json json = read(part); !json.is_null()) parts.push_back(std::move(json));
  }
  return {{"info", std::move(info)}, {"parts", std::move(parts)}, {"unreadable", unreadable}};
}

std::vector<fs::path> StoredMessagesOf(const fs::path& storage, const std::string& session) {
  return IsPlainName(session) ? JsonFilesIn(storage / "message" / session) : std::vector<fs::path>();
}

// Those of a session in a store; none if it has none.
Records StoredRecords(const fs::path& storage, const std::string& session) {
  auto paths = storage.empty() ? std::vector<fs::path>() : StoredMessagesOf(storage, session);
  const std::size_t count = paths.size();
  auto load = [storage, paths = std::move(paths)](std::size_t record) -> Result<Json> {
    return StoredMessage(storage, paths[record]);
  };
  return {.count = count, .load = std::move(load)};
}

// Its records are messages, each with its parts.
class OpenCodeReader final : public RecordReader {
 public:
  OpenCodeReader(const Json& session, std::size_t records, OpenCodeSubAgents sub_agents)
      : records_(records), sub_agents_(std::move(sub_agents)) {
    const Json& time = MemberOf(session, "time");
    const Json& revert = MemberOf(session, "revert");
    facts = {.id = TextMember(session, "id"),
             .title = TextMember(session, "title"),
             .folder = TextMember(session, "directory"),
             .created = TimeIn(MemberOf(time, "created")),
             .updated = TimeIn(MemberOf(time, "updated"))};
    undone_ = TextMember(revert, "messageID");
    undone_part_ = TextMember(revert, "partID");
    read_.emplace(facts.id, Naming{.record = kNone});
    if (records == 0) CountUnnamed();
  }

  std::vector<MovedMessage> Take(const Json& message) override {
    named_here_ = bytes_here_ = 0;
    const bool is_undone = IsUndone(message);
    auto steps = is_undone ? StepsLeft(message) : StepsOf(message, 0);
    if (record + 1 == records_) CountUnnamed();
    return steps;
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  // Where a sub-agent was first named.
  struct Naming {
    std::size_t record = kNone, number = 0;
    bool operator==(const Naming&) const = default;
  };

  void CountUnnamed() {
    std::vector<std::string> unnamed;
    for (const std::string& each : sub_agents_.known) {
      if (!read_.contains(each) && !unread_.contains(each)) unnamed.push_back(each);
    }
    AddNamed(left_out, "sub-agent that no call names", unnamed);
  }

  // What a person has undone stays in the store, until they go on: a message, or parts of it, and all that follows.
  bool IsUndone(const Json& message) {
    const bool begins =
        !undone_.empty() && undone_from_ == kNone && TextMember(MemberOf(message, "info"), "id") == undone_;
    if (begins) undone_from_ = record;
    return record >= undone_from_;
  }

  // Of an undone message: those before the part in which the undoing begins.
  std::vector<MovedMessage> StepsLeft(const Json& message) {
    const Json& parts = ListIn(message, "parts");
    const auto part = std::find_if(parts.begin(), parts.end(), [&](const Json& each) {
      return record == undone_from_ && !undone_part_.empty() && TextMember(each, "id") == undone_part_;
    });
    if (part == parts.end()) return left_out.Add("message that was taken back"), std::vector<MovedMessage>();
    left_out.Add("part of an answer that was taken back", static_cast<std::size_t>(parts.end() - part));
    return StepsOf({{"info", MemberOf(message, "info")}, {"parts", Json::array_t(parts.begin(), part)}}, 0);
  }

  std::vector<MovedMessage> StepsOf(const Json& message, int depth) {
    std::vector<MovedMessage> steps;
    left_out.Add("file that is no JSON", static_cast<std::size_t>(CountIn(message, "unreadable")));
    if (MemberOf(message, "info").is_null()) return steps;
    if (TextMember(MemberOf(message, "info"), "role") == "user") {
      AddPrompt(message, steps);
    } else {
      AddAnswer(message, depth, steps);
    }
    return steps;
  }

  std::vector<MovedMessage> StepsOfSession(const std::string& session, const Records& records, int depth) {
    std::vector<MovedMessage> steps;
    for (std::size_t i = 0; i < records.count && !failed; ++i) {
      const auto message = records.load(i);
      if (!message) return failed = message.error(), steps;
      auto said = StepsOf(*message, depth);
      bytes_here_ += BytesOf(said);
      std::ranges::move(said, std::back_inserter(steps));
      if (bytes_here_ <= kMaxSourceRecord || failed) continue;
      failed = Fail(ErrorCode::kTooLarge, "session " + facts.id + ": the sub-agents of a message, as " + session +
                                              ", are larger than " + std::to_string(kMaxSourceRecord >> 20) + " MiB")
                   .value();
    }
    return steps;
  }

  void AddPrompt(const Json& message, std::vector<MovedMessage>& steps) {
    MovedMessage prompt{.at = TimeIn(MemberOf(MemberOf(MemberOf(message, "info"), "time"), "created"))};
    for (const Json& part : ListIn(message, "parts")) {
      const std::string type = TextMember(part, "type");
      if (type == "text" && (MemberOf(part, "synthetic") == true || MemberOf(part, "ignored") == true)) {
        left_out.Add("message that the tool added by itself");
      } else if (type == "text") {
        AddLine(prompt.text, TextMember(part, "text"));
      } else if (type == "file") {
        AddFile(part, prompt.files);
      } else if (type == "subtask") {
        AddLine(prompt.text, TextMember(part, "prompt"));
      } else if (type != "agent" && type != "compaction") {
        left_out.Add("part of a message (" + FirstWords(type) + ")");
      }
    }
    if (!prompt.text.empty() || !prompt.files.empty()) steps.push_back(std::move(prompt));
  }

  void AddFile(const Json& part, std::vector<MovedFile>& files) {
    auto file = FileInDataUrl(TextMember(part, "url"));
    if (!file) return left_out.Add("file that is kept elsewhere");
    file->filename = TextMember(part, "filename");
    files.push_back(*std::move(file));
  }

  void AddAnswer(const Json& message, int depth, std::vector<MovedMessage>& steps) {
    const Json& info = MemberOf(message, "info");
    const auto at = TimeIn(MemberOf(MemberOf(info, "time"), "created"));
    const bool is_summary = MemberOf(info, "summary") == true;
    MovedMessage answer{
        .kind = Kind::kAnswer, .group = TextMember(info, "id"), .at = at, .model = TextMember(info, "modelID")};
    std::vector<MovedMessage> results;
    for (const Json& part : ListIn(message, "parts")) {
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
        left_out.Add("part of an answer (" + FirstWords(type) + ")");
      }
    }
    const Json& tokens = MemberOf(info, "tokens");
    const Json& cache = MemberOf(tokens, "cache");
    answer.usage = UsageOf(CountIn(tokens, "input"), CountIn(tokens, "output") + CountIn(tokens, "reasoning"),
                           CountIn(cache, "read"), CountIn(cache, "write"));
    if (is_summary && !answer.blocks.empty()) {
      steps.push_back({.kind = Kind::kSummary, .at = at, .text = answer.blocks.back().text});
    } else if (!answer.blocks.empty()) {
      steps.push_back(std::move(answer));
      std::ranges::move(results, std::back_inserter(steps));
    }
    AddError(MemberOf(info, "error"), at, steps);
  }

  static void AddError(const Json& error, const std::optional<Timestamp>& at, std::vector<MovedMessage>& steps) {
    if (error.is_null()) return;
    const std::string name = TextMember(error, "name"), message = TextMember(MemberOf(error, "data"), "message");
    if (name == "MessageAbortedError") return steps.push_back({.kind = Kind::kStopped});
    steps.push_back({.kind = Kind::kFailed, .at = at, .text = message.empty() ? name : message});
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
    const Naming here{.record = record, .number = named_here_++};
    const auto named = read_.find(session);
    const bool is_again = named != read_.end() && named->second != here;
    const bool may_be_there = sub_agents_.find && depth < kMostSessions;
    if (may_be_there && is_again) return left_out.Add("sub-agent that is named twice");
    const auto records = may_be_there ? sub_agents_.find(session) : std::nullopt;
    if (!records) {
      unread_.insert(session);
      return left_out.Add("sub-agent in a session of its own");
    }
    read_.emplace(session, here);
    for (MovedMessage& step : StepsOfSession(session, *records, depth + 1)) {
      const bool says = step.nested.empty() &&
                        (step.kind == Kind::kAnswer || step.kind == Kind::kResult || step.kind == Kind::kFailed);
      if (!says) continue;
      step.nested = call;
      results.push_back(std::move(step));
    }
  }

  const std::size_t records_;
  const OpenCodeSubAgents sub_agents_;
  std::string undone_, undone_part_;             // ids; empty: none
  std::size_t undone_from_ = kNone;              // the record
  std::map<std::string, Naming> read_;           // sessions: they may name each other
  std::set<std::string> unread_;                 // that a call names
  std::size_t named_here_ = 0, bytes_here_ = 0;  // in this record, and of the steps of those named
};

}  // namespace

std::unique_ptr<RecordReader> ReadOpenCode(const Json& info, std::size_t records, OpenCodeSubAgents sub_agents) {
  return std::make_unique<OpenCodeReader>(info, records, std::move(sub_agents));
}

OpenedDocument OpenOpenCode(MovedDocument document, const std::string& path) {
  if (document.rest.contains("info")) {
    Records records = ElementsOf(document, "messages[");
    auto reader = ReadOpenCode(MemberOf(document.rest, "info"), records.count, {});
    return OpenRecords(std::move(records), std::move(reader));
  }
  // storage/session/PROJECT/ID.json
  const fs::path storage = fs::path(path).parent_path().parent_path().parent_path();
  Records records = StoredRecords(storage, TextMember(document.rest, "id"));
  OpenCodeSubAgents sub_agents;
  if (!storage.empty()) sub_agents.find = [storage](const std::string& id) { return StoredRecords(storage, id); };
  auto reader = ReadOpenCode(document.rest, records.count, std::move(sub_agents));
  return OpenRecords(std::move(records), std::move(reader));
}

}  // namespace reprise
