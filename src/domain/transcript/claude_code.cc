#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "domain/codec.h"
#include "domain/transcript/other_formats.h"
#include "domain/transcript/rounds.h"
#include "domain/transcript/transcript.h"
#include "reprise/version.h"

namespace reprise {
namespace {

// A UUID (version 8, RFC 9562) of a name, so that the same chat always gives the same lines.
std::string UuidOf(const std::string& name) {
  std::string hex = ArgumentsDigest("reprise " + name).substr(std::string_view("sha256:").size(), 32);
  hex[12] = '8', hex[16] = 'a';
  for (const std::size_t at : {20, 16, 12, 8}) hex.insert(at, "-");
  return hex;
}

// The signatures of an answer's thinking, in their order: an Anthropic model wants them back.
Json ThinkingOf(const Round& round) {
  Json blocks = Json::array();
  const auto extras = ParseJson(round.extras.empty() ? "{}" : round.extras, 2 * kMaxJsonDepth);
  for (const Json& provider : extras ? MemberOf(*extras, "provider_extras") : Json()) {
    for (const Json& block : MemberOf(provider, "blocks")) {
      const std::string type = TextMember(block, "type");
      if (type == "thinking" || type == "redacted_thinking") blocks.push_back(block);
    }
  }
  if (blocks.empty() && !round.thinking.empty()) {
    blocks.push_back({{"type", "thinking"}, {"thinking", round.thinking}});  // nobody has signed it
  }
  return blocks;
}

// With which a sidechain begins: by the same text in the call's input it is known whose it is.
std::string TaskIn(const Round::Call& call) {
  const Json arguments = ArgumentsObject(call);
  for (const char* member : {"prompt", "question"}) {  // Claude Code's; ours
    if (std::string task = TextMember(arguments, member); !task.empty()) return task;
  }
  return call.arguments;
}

class Session {
 public:
  explicit Session(std::string chat) : chat_(std::move(chat)) {}

  // The lines of a turn, behind those of its parent.
  void Add(const AddedInteraction& turn) {
    const Interaction& one = turn.interaction;
    workspace_ = one.workspace;
    name_ = one.id.str();
    const auto parent = one.parent_id ? ends_.find(one.parent_id->str()) : ends_.end();
    std::string last = parent == ends_.end() ? "" : parent->second;
    if (!one.user_message.empty() || !one.attachments.empty()) {
      const std::string files = one.attachments.empty() ? "" : "\n" + FileLines(one.attachments);
      last = AddUser(last, one.created_at, one.user_message + files, /*side=*/false);
    }
    ends_[one.id.str()] = AddRounds(RoundsOf(turn), last, one.model, /*side=*/false);
  }
  std::string Take() && { return std::move(lines_); }

 private:
  // Returns the id of the last line.
  std::string AddRounds(const std::vector<Round>& rounds, std::string last, const std::string& model, bool side) {
    for (const Round& round : rounds) {
      Json content = ThinkingOf(round);
      if (!round.text.empty()) content.push_back({{"type", "text"}, {"text", round.text}});
      for (const Round::Call& call : round.calls) {
        content.push_back(
            {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", ArgumentsObject(call)}});
      }
      if (content.empty()) continue;
      last = AddAssistant(last, round, std::move(content), model, side);
      for (const Round::Call& call : round.calls) {
        if (!call.of_sub_agent.empty()) {
          AddRounds(call.of_sub_agent, AddUser("", round.at, TaskIn(call), /*side=*/true), model, /*side=*/true);
        }
        if (!call.has_result) continue;
        Json result = {{"tool_use_id", call.id}, {"type", "tool_result"}, {"content", call.result}};
        if (call.is_error) result["is_error"] = true;
        last = AddUser(last, call.at == Timestamp() ? round.at : call.at, Json::array({std::move(result)}), side);
      }
    }
    return last;
  }
  std::string AddUser(const std::string& parent, Timestamp at, Json content, bool side) {
    return AddLine(parent, at, "user", {{"role", "user"}, {"content", std::move(content)}}, side);
  }
  std::string AddAssistant(const std::string& parent, const Round& round, Json content, const std::string& model,
                           bool side) {
    const TokenUsage& used = round.usage;
    // Their input tokens are those that did not come from the cache.
    Json usage = {{"input_tokens", used.input_tokens - used.cache_read_tokens - used.cache_write_tokens},
                  {"cache_creation_input_tokens", used.cache_write_tokens},
                  {"cache_read_input_tokens", used.cache_read_tokens},
                  {"output_tokens", used.output_tokens}};
    Json message = {{"id", "msg_" + std::to_string(count_ + 1)},
                    {"type", "message"},
                    {"role", "assistant"},
                    {"model", model},
                    {"content", std::move(content)},
                    {"stop_reason", round.calls.empty() ? "end_turn" : "tool_use"},
                    {"stop_sequence", nullptr},
                    {"usage", std::move(usage)}};
    return AddLine(parent, round.at, "assistant", std::move(message), side);
  }
  std::string AddLine(const std::string& parent, Timestamp at, const char* type, Json message, bool side) {
    std::string uuid = UuidOf(chat_ + "/" + name_ + "/" + std::to_string(++count_));
    lines_ += DumpJson({{"parentUuid", parent.empty() ? Json() : Json(parent)},
                        {"isSidechain", side},
                        {"userType", "external"},
                        {"cwd", workspace_},
                        {"sessionId", UuidOf(chat_)},
                        {"version", "reprise " REPRISE_VERSION},
                        {"type", type},
                        {"message", std::move(message)},
                        {"uuid", uuid},
                        {"timestamp", FormatTimestamp(at)}}) +
              "\n";
    return uuid;
  }

  const std::string chat_;
  std::string workspace_, name_;             // of the turn
  std::map<std::string, std::string> ends_;  // by turn: its last line
  std::size_t count_ = 0;
  std::string lines_;
};

}  // namespace

std::string FormatClaudeCode(const ChatSummary& summary, const std::vector<AddedInteraction>& turns) {
  Session session(summary.id.str());
  for (const AddedInteraction& turn : turns) session.Add(turn);
  return std::move(session).Take();
}

}  // namespace reprise
