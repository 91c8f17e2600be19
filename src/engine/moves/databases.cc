#include "engine/moves/databases.h"

#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/try.h"
#include "engine/moves/session.h"

namespace reprise {
namespace {

constexpr std::size_t kMostStored = 500'000;
constexpr int kMostLevels = 4;  // of sub-agents

// A view could make up anything, without end.
Result<void> CheckTables(const SqliteFile& file, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (!TRY(file.HasTable(name))) {
      return Fail(Reason::kInvalidDocument, file.path() + ": it has no table " + name);
    }
  }
  return {};
}

// What is kept of the rows of all sessions. Nothing is held open while these are imported.
Result<std::vector<Json>> SessionsIn(const SqliteFile& file, const char* select) {
  constexpr std::string_view kColumns[] = {
      "id",   "parent_id",   "title",       "directory",    "time_created",      "time_updated",
      "name", "description", "working_dir", "session_type", "model_config_json", "parent_session_id"};
  constexpr std::size_t kMostBytes = 16 << 10;  // of a text
  std::vector<Json> sessions;
  TRY(file.ForEachRow(select, {}, [&](const Json& row) -> Result<void> {
    if (sessions.size() >= kMostStored) return Fail(Reason::kInvalidDocument, file.path() + ": too many sessions");
    Json kept = Json::object();
    for (const std::string_view column : kColumns) {
      const Json& value = MemberOf(row, column);
      const bool fits = !value.is_string() || value.get_ref<const std::string&>().size() <= kMostBytes;
      if (!value.is_null() && fits) kept[std::string(column)] = value;
    }
    sessions.push_back(std::move(kept));
    return {};
  }));
  return sessions;
}

// Reads what belongs to one session, and no more of it than may be in memory.
class StoredSession {
 public:
  StoredSession(const SqliteFile& file, const std::string& id) : file_(file), where_(file.path() + ", session " + id) {}

  Result<void> ForEachRow(const char* select, const std::string& id, const std::function<void(Json row)>& visit) {
    return file_.ForEachRow(select, id, [&](Json row) -> Result<void> {
      for (const Json& value : row) bytes_ += value.is_string() ? value.get_ref<const std::string&>().size() : 0;
      if (bytes_ > kMaxSourceRecord) {
        return Fail(Reason::kInvalidDocument,
                    where_ + ": it is larger than " + std::to_string(kMaxSourceRecord >> 20) + " MiB");
      }
      visit(std::move(row));
      return {};
    });
  }
  // JSON in a column; null if it is none.
  Json JsonIn(const Json& row, const char* column) const {
    return ParseForeignJson(TextMember(row, column), where_).value_or(Json());
  }

 private:
  const SqliteFile& file_;
  const std::string where_;
  std::size_t bytes_ = 0;
};

Result<Json> OpenCodeMessages(StoredSession& stored, const std::string& session) {
  std::map<std::string, Json> parts;  // by message
  TRY(stored.ForEachRow("SELECT message_id, data FROM part WHERE session_id = ? ORDER BY id", session, [&](Json row) {
    Json& of_message = parts.try_emplace(TextMember(row, "message_id"), Json::array()).first->second;
    of_message.push_back(stored.JsonIn(row, "data"));
  }));
  Json messages = Json::array();
  TRY(stored.ForEachRow(
      "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id", session, [&](Json row) {
        Json info = stored.JsonIn(row, "data");
        if (!info.is_object()) info = Json::object();
        info["id"] = TextMember(row, "id");
        const auto found = parts.find(TextMember(row, "id"));
        messages.push_back(
            {{"info", std::move(info)}, {"parts", found == parts.end() ? Json::array() : found->second}});
      }));
  return messages;
}

}  // namespace

Result<void> ForEachGooseSession(const SqliteFile& file, const VisitStored& visit) {
  TRY(CheckTables(file, {"sessions", "messages"}));
  auto sessions = TRY(SessionsIn(file, "SELECT * FROM sessions ORDER BY created_at, id"));
  const auto is_below = [](const Json& session) {
    return TextMember(session, "session_type") == "sub_agent" && !TextMember(session, "parent_session_id").empty();
  };
  std::map<std::string, int> below;  // sub-agents: no call of their parent's names them
  for (const Json& session : sessions) below[TextMember(session, "parent_session_id")] += is_below(session) ? 1 : 0;
  for (Json& session : sessions) {
    if (is_below(session)) continue;
    const std::string id =
        MemberOf(session, "id").is_string() ? TextMember(session, "id") : MemberOf(session, "id").dump();
    StoredSession stored(file, id);
    Json conversation = Json::array();
    TRY(stored.ForEachRow("SELECT * FROM messages WHERE session_id = ? ORDER BY created_timestamp, id", id,
                          [&](Json row) {
                            conversation.push_back({{"role", TextMember(row, "role")},
                                                    {"created", MemberOf(row, "created_timestamp")},
                                                    {"content", stored.JsonIn(row, "content_json")}});
                          }));
    session["id"] = id;
    session["model_config"] = stored.JsonIn(session, "model_config_json");
    session["conversation"] = std::move(conversation);
    session["sub_agents"] = below[id];
    TRY(visit(session));
  }
  return {};
}

Result<void> ForEachOpenCodeSession(const SqliteFile& file, const VisitStored& visit) {
  TRY(CheckTables(file, {"session", "message", "part"}));
  const auto sessions = TRY(SessionsIn(file, "SELECT * FROM session ORDER BY time_created, id"));
  std::map<std::string, std::vector<std::string>> below;
  for (const Json& session : sessions) below[TextMember(session, "parent_id")].push_back(TextMember(session, "id"));
  for (const Json& session : sessions) {
    if (!TextMember(session, "parent_id").empty()) continue;  // it is read with its parent
    const std::string id = TextMember(session, "id");
    StoredSession stored(file, id);
    Json sub_agents = Json::object();
    std::vector<std::string> level = below[id];
    for (int depth = 0; depth < kMostLevels && !level.empty(); ++depth) {
      std::vector<std::string> next;
      for (const std::string& child : level) {
        if (sub_agents.contains(child)) continue;  // they may name each other
        sub_agents[child] = TRY(OpenCodeMessages(stored, child));
        const auto& children = below[child];
        next.insert(next.end(), children.begin(), children.end());
      }
      level = std::move(next);
    }
    const Json time = {{"created", MemberOf(session, "time_created")}, {"updated", MemberOf(session, "time_updated")}};
    TRY(visit({{"info",
                {{"id", id},
                 {"title", TextMember(session, "title")},
                 {"directory", TextMember(session, "directory")},
                 {"time", time}}},
               {"messages", TRY(OpenCodeMessages(stored, id))},
               {"sub_agents", std::move(sub_agents)}}));
  }
  return {};
}

}  // namespace reprise
