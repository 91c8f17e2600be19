#include "blame/file_changes.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/json.h"
#include "domain/audit_reading.h"

namespace reprise {
namespace {

// What a turn had read so far.
class Reads {
 public:
  void Begin(const std::string& call, const std::string& tool, const std::string& input) {
    if (tool != "read_file") return;
    const auto json = ParseJson(input);
    if (json) begun_[call] = TextMember(*json, "path");
  }
  // The answer replaced the arguments.
  void Change(const std::string& call, const std::string& input) {
    if (begun_.contains(call)) Begin(call, "read_file", input);
  }
  void End(const event::ToolResult& result) {
    const auto found = begun_.find(result.id);
    if (found == begun_.end() || result.is_error || found->second.empty()) return;
    if (std::ranges::find(paths_, found->second) == paths_.end()) paths_.push_back(found->second);
  }
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  std::map<std::string, std::string> begun_;  // by call
  std::vector<std::string> paths_;
};

// A sub-agent's calls have ids that begin with that of its own call: "ID/...". The last of them counts.
std::optional<ChangingCall::Approval> ApprovalOf(const std::string& call,
                                                 const std::map<std::string, ChangingCall::Approval>& approvals) {
  std::optional<ChangingCall::Approval> found;
  for (const auto& [id, approval] : approvals) {
    if (id != call && !id.starts_with(call + "/")) continue;
    if (!found || approval.at >= found->at) found = approval;
  }
  return found;
}

}  // namespace

void FileChanges::Add(const Chat& chat) {
  tools_.clear();
  for (const Interaction& each : chat.interactions) {
    if (!each.imported) Add(each, chat.summary.created_at);
  }
}

void FileChanges::Add(const Interaction& interaction, Timestamp chat_created) {
  const std::filesystem::path folder = interaction.workspace.empty() ? workspace_ : interaction.workspace;
  const std::size_t turn = turns_++;
  std::size_t steps = 0;
  std::optional<std::string> last_call;
  Reads reads;
  std::map<std::string, std::string> terms;  // by approval
  std::map<std::string, ChangingCall::Approval> approvals;
  for (const AgentEvent& event : interaction.events) {
    if (const auto* begun = std::get_if<event::ToolCallStarted>(&event.payload)) {
      tools_[begun->id] = begun->tool_name;
      reads.Begin(begun->id, begun->tool_name, begun->tool_input);
    } else if (const auto* result = std::get_if<event::ToolResult>(&event.payload)) {
      reads.End(*result);
    } else if (const auto* nested = std::get_if<event::Nested>(&event.payload)) {
      if (const auto* call = std::get_if<event::ToolCallStarted>(&nested->step)) {
        reads.Begin(call->id, call->tool_name, call->tool_input);
      } else if (const auto* answer = std::get_if<event::ToolResult>(&nested->step)) {
        reads.End(*answer);
      }
    } else if (const auto* asked = std::get_if<event::ApprovalRequired>(&event.payload)) {
      terms[asked->approval_id] = asked->terms_digest;
    } else if (const auto* approved = std::get_if<event::Approved>(&event.payload)) {
      if (approved->tool_input) reads.Change(approved->call_id, *approved->tool_input);
      approvals.insert_or_assign(approved->call_id,
                                 ChangingCall::Approval{*approved, terms[approved->approval_id], event.at});
    } else if (const auto* changed = std::get_if<event::FilesChanged>(&event.payload)) {
      const bool goes_on = steps > 0 && changed->call_id == last_call;
      last_call = changed->call_id;
      if (!goes_on) ++steps;
      std::optional<std::size_t> call;
      if (changed->call_id) {
        if (!goes_on) {
          ChangingCall made{.chat = interaction.chat_id,
                            .interaction = interaction.id,
                            .id = *changed->call_id,
                            .tool = tools_[*changed->call_id],
                            .model = interaction.model,
                            .at = event.at,
                            .read_before = reads.paths()};
          made.approval = ApprovalOf(made.id, approvals);
          calls_.push_back(std::move(made));
        }
        call = calls_.size() - 1;
      }
      for (const WorkspaceChange& each : changed->changes) {
        for (const auto& version : {each.before, each.after}) {
          if (version && !version->digest.empty()) kept_[version->digest].insert(interaction.chat_id);
        }
        changes_.push_back({.at = event.at,
                            .chat_created = chat_created,
                            .what = {.path = (folder / each.path).string(),
                                     .before = each.before,
                                     .after = each.after,
                                     .by_agent = call.has_value(),
                                     .turn = turn,
                                     .call = steps},
                            .call = call});
      }
    }
  }
}

std::vector<const ChangingCall*> FileChanges::OriginsOf(const std::string& path, std::string_view present,
                                                        const ContentOfVersion& content_of) {
  // A fork has the turns of its origin, with their times.
  std::ranges::stable_sort(changes_, {}, [](const Change& each) { return std::tuple(each.at, each.chat_created); });
  std::set<std::tuple<Timestamp, std::string, std::string, std::string>> seen;
  std::erase_if(changes_, [&](const Change& each) {
    const std::string call = each.call ? calls_[*each.call].id : "";
    const std::string digest = each.what.after ? each.what.after->digest : "";
    return !seen.emplace(each.at, each.what.path, call, digest).second;
  });
  std::vector<BlamedChange> changes;
  for (const Change& each : changes_) changes.push_back(each.what);
  const BlameSources sources{.content = [&](const FileVersion& version) -> std::optional<std::string> {
                               for (const ChatId& chat : kept_[version.digest]) {
                                 if (auto content = content_of(chat, version)) return *std::move(content);
                               }
                               lost_.insert(version.digest);
                               return std::nullopt;
                             },
                             .is_there = [](const std::string& other) { return std::filesystem::exists(other); }};
  std::vector<const ChangingCall*> origins;
  for (const auto& change : Blame(path, present, changes, sources)) {
    const auto call = change ? changes_[*change].call : std::nullopt;
    origins.push_back(call ? &calls_[*call] : nullptr);
  }
  return origins;
}

void FileChanges::ReadPermissions(const std::vector<const ChangingCall*>& origins, const AuditLog& log) {
  std::map<std::tuple<std::string, std::string, std::string>, ChangingCall*> unasked;
  const std::set<const ChangingCall*> wanted(origins.begin(), origins.end());
  for (ChangingCall& call : calls_) {
    if (wanted.contains(&call) && !call.approval) unasked[{call.chat.str(), call.interaction.str(), call.id}] = &call;
  }
  // A log that cannot be read is left out.
  static_cast<void>(ReadAuditLines(log, [&](const Json& line) {
    if (TextMember(line, "event") != "started") return true;
    const auto call =
        unasked.find({TextMember(line, "chat_id"), TextMember(line, "interaction_id"), TextMember(line, "call_id")});
    if (call != unasked.end()) call->second->permission = TextMember(line, "reason");
    return true;
  }));
}

}  // namespace reprise
