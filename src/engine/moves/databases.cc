#include "engine/moves/databases.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/try.h"
#include "engine/moves/session.h"

namespace reprise {
namespace {

constexpr int kMostLevels = 4;  // of sub-agents

// What is in memory of all sessions while they are read one by one.
struct ListedSession {
  std::string id;
  std::string parent;  // the session whose sub-agent it is; empty: none
  Json time;           // it is ordered by it
};

std::string IdIn(const Json& row) {
  const Json& id = MemberOf(row, "id");
  return id.is_string() ? TextMember(row, "id") : id.dump();
}

// By time and id, as SQLite orders values. `ORDER BY` would sort whole rows, of any size.
template <typename Ordered>
void Sort(std::vector<Ordered>& items) {
  std::ranges::stable_sort(
      items, [](const auto& a, const auto& b) { return a.time != b.time ? a.time < b.time : a.id < b.id; });
}

Result<std::vector<ListedSession>> ListSessions(const SqliteFile& file, const std::string& select, const char* time,
                                                const std::function<std::string(const Json& row)>& parent_of) {
  std::size_t room = 16 << 20;
  std::vector<ListedSession> sessions;
  const auto read = file.ForEachRow(select, {}, room, [&](const Json& row) -> Result<void> {
    sessions.push_back({.id = IdIn(row), .parent = parent_of(row), .time = MemberOf(row, time)});
    return {};
  });
  if (!read && read.error().code == ErrorCode::kTooLarge) {
    return Fail(Reason::kInvalidDocument, file.path() + ": too many sessions");
  }
  if (!read) return Fail(read.error());
  Sort(sessions);
  return sessions;
}

struct SessionBelow {
  std::string id;
  int depth;
};

// Each session that is nobody's sub-agent, and those below it by depth. One whose parent is missing is as one that has
// none; of those that name each other in a circle the first is. So each is there once.
Result<void> ForEachFamily(
    const std::vector<ListedSession>& sessions,
    const std::function<Result<void>(const std::string& id, const std::vector<SessionBelow>& below)>& visit) {
  std::unordered_map<std::string_view, std::vector<std::string_view>> children;
  std::unordered_set<std::string_view> known, reached;
  for (const ListedSession& each : sessions) {
    known.insert(each.id);
    if (!each.parent.empty()) children[each.parent].push_back(each.id);
  }
  const auto visit_from = [&](const std::string& root) -> Result<void> {
    if (!reached.insert(root).second) return {};
    std::vector<SessionBelow> below;
    std::vector<std::string_view> level{root};
    for (int depth = 1; !level.empty(); ++depth) {
      std::vector<std::string_view> next;
      for (const std::string_view parent : level) {
        const auto found = children.find(parent);
        if (found == children.end()) continue;
        for (const std::string_view child : found->second) {
          if (!reached.insert(child).second) continue;
          below.push_back({.id = std::string(child), .depth = depth});
          next.push_back(child);
        }
      }
      level = std::move(next);
    }
    return visit(root, below);
  };
  for (const ListedSession& each : sessions) {
    if (each.parent.empty() || !known.contains(each.parent)) TRY(visit_from(each.id));
  }
  for (const ListedSession& each : sessions) TRY(visit_from(each.id));
  return {};
}

// A session that is too large, or gone meanwhile, holds up no other. A database that cannot be read holds up all.
Result<void> Tell(const VisitStored& visit, Result<Json> session) {
  const bool is_of_all =
      !session && session.error().code != ErrorCode::kTooLarge && session.error().code != ErrorCode::kNotFound;
  if (is_of_all) return Fail(std::move(session.error()));
  return visit(std::move(session));
}

// Reads what belongs to one session, and no more of it than may be in memory.
class StoredSession {
 public:
  StoredSession(const SqliteFile& file, const std::string& id) : file_(file), where_(file.path() + ", session " + id) {}

  // kTooLarge if it and what was read before are.
  Result<void> ForEachRow(const std::string& select, const std::string& id,
                          const std::function<void(Json row)>& visit) {
    auto read = file_.ForEachRow(select, id, room_, [&](Json row) -> Result<void> {
      visit(std::move(row));
      return {};
    });
    if (read || read.error().code != ErrorCode::kTooLarge) return read;
    return Fail(ErrorCode::kTooLarge,
                where_ + ": it is larger than " + std::to_string(kMaxSourceRecord >> 20) + " MiB");
  }
  // The row of the session itself. kNotFound.
  Result<Json> OnlyRow(const std::string& select, const std::string& id) {
    Json only;
    TRY(ForEachRow(select, id, [&](Json row) {
      if (only.is_null()) only = std::move(row);
    }));
    if (only.is_null()) return Fail(ErrorCode::kNotFound, where_ + ": it is no longer there");
    return only;
  }
  // JSON in a column; null if it is none.
  Json JsonIn(const Json& row, const char* column) const {
    return ParseForeignJson(TextMember(row, column), where_).value_or(Json());
  }

 private:
  const SqliteFile& file_;
  const std::string where_;
  std::size_t room_ = kMaxSourceRecord;
};

struct MessageRow {
  Json time, id, value;
};

Json ValuesOf(std::vector<MessageRow> messages) {
  Sort(messages);
  Json values = Json::array();
  for (MessageRow& each : messages) values.push_back(std::move(each.value));
  return values;
}

// The statements for goose; their parameter is a session.
struct GooseTables {
  std::string session, messages;
};

Result<Json> GooseSession(const SqliteFile& file, const GooseTables& tables, const std::string& id,
                          const std::vector<SessionBelow>& below) {
  StoredSession stored(file, id);
  Json session = TRY(stored.OnlyRow(tables.session, id));
  std::vector<MessageRow> messages;
  TRY(stored.ForEachRow(tables.messages, id, [&](const Json& row) {
    const Json& time = MemberOf(row, "created_timestamp");
    Json message = {
        {"role", TextMember(row, "role")}, {"created", time}, {"content", stored.JsonIn(row, "content_json")}};
    if (Json metadata = stored.JsonIn(row, "metadata_json"); metadata.is_object())
      message["metadata"] = std::move(metadata);
    messages.push_back({.time = time, .id = MemberOf(row, "id"), .value = std::move(message)});
  }));
  session["id"] = id;
  session["model_config"] = stored.JsonIn(session, "model_config_json");
  session["conversation"] = ValuesOf(std::move(messages));
  session["sub_agents"] = Json::array();
  for (const SessionBelow& each : below) session["sub_agents"].push_back(each.id);
  return session;
}

// The statements for opencode; their parameter is a session.
struct OpenCodeTables {
  std::string session, messages, parts;
};

Result<Json> OpenCodeMessages(StoredSession& stored, const OpenCodeTables& tables, const std::string& session) {
  std::map<std::string, std::vector<MessageRow>> parts;  // by message
  TRY(stored.ForEachRow(tables.parts, session, [&](const Json& row) {
    parts[TextMember(row, "message_id")].push_back(
        {.time = {}, .id = MemberOf(row, "id"), .value = stored.JsonIn(row, "data")});
  }));
  std::vector<MessageRow> messages;
  TRY(stored.ForEachRow(tables.messages, session, [&](const Json& row) {
    Json info = stored.JsonIn(row, "data");
    if (!info.is_object()) info = Json::object();
    info["id"] = TextMember(row, "id");
    messages.push_back({.time = MemberOf(row, "time_created"),
                        .id = MemberOf(row, "id"),
                        .value = Json::object({{"info", std::move(info)}})});
  }));
  for (MessageRow& each : messages) {
    const auto found = parts.find(TextMember(each.value["info"], "id"));
    each.value["parts"] = found == parts.end() ? Json::array() : ValuesOf(std::move(found->second));
    if (found != parts.end()) parts.erase(found);
  }
  return ValuesOf(std::move(messages));
}

Result<Json> OpenCodeSession(const SqliteFile& file, const OpenCodeTables& tables, const std::string& id,
                             const std::vector<SessionBelow>& below) {
  StoredSession stored(file, id);
  const Json session = TRY(stored.OnlyRow(tables.session, id));
  Json sub_agents = Json::object();
  for (const SessionBelow& each : below) {
    sub_agents[each.id] = each.depth > kMostLevels ? Json() : TRY(OpenCodeMessages(stored, tables, each.id));
  }
  const Json time = {{"created", MemberOf(session, "time_created")}, {"updated", MemberOf(session, "time_updated")}};
  Json info = {{"id", id},
               {"title", TextMember(session, "title")},
               {"directory", TextMember(session, "directory")},
               {"time", time}};
  if (Json revert = stored.JsonIn(session, "revert"); revert.is_object()) info["revert"] = std::move(revert);
  Json messages = TRY(OpenCodeMessages(stored, tables, id));
  return Json{{"info", std::move(info)}, {"messages", std::move(messages)}, {"sub_agents", std::move(sub_agents)}};
}

}  // namespace

Result<void> ForEachGooseSession(const SqliteFile& file, const VisitStored& visit) {
  const std::string list = TRY(file.Select("sessions", {"id", "created_at", "session_type", "parent_session_id"}));
  GooseTables tables;
  tables.session = TRY(file.Select("sessions", {"id", "name", "description", "working_dir", "model_config_json"}));
  tables.messages =
      TRY(file.Select("messages", {"session_id", "id", "role", "created_timestamp", "content_json", "metadata_json"}));
  tables.session += " WHERE id = ?";
  tables.messages += " WHERE session_id = ?";
  const auto sessions = TRY(ListSessions(file, list, "created_at", [](const Json& row) {
    return TextMember(row, "session_type") == "sub_agent" ? TextMember(row, "parent_session_id") : std::string();
  }));
  return ForEachFamily(sessions, [&](const std::string& id, const std::vector<SessionBelow>& below) {
    return Tell(visit, GooseSession(file, tables, id, below));
  });
}

Result<void> ForEachOpenCodeSession(const SqliteFile& file, const VisitStored& visit) {
  const std::string list = TRY(file.Select("session", {"id", "parent_id", "time_created"}));
  OpenCodeTables tables;
  tables.session = TRY(file.Select("session", {"id", "title", "directory", "time_created", "time_updated", "revert"}));
  tables.messages = TRY(file.Select("message", {"session_id", "id", "time_created", "data"}));
  tables.parts = TRY(file.Select("part", {"session_id", "id", "message_id", "data"}));
  tables.session += " WHERE id = ?";
  tables.messages += " WHERE session_id = ?";
  tables.parts += " WHERE session_id = ?";
  const auto sessions =
      TRY(ListSessions(file, list, "time_created", [](const Json& row) { return TextMember(row, "parent_id"); }));
  return ForEachFamily(sessions, [&](const std::string& id, const std::vector<SessionBelow>& below) {
    return Tell(visit, OpenCodeSession(file, tables, id, below));
  });
}

}  // namespace reprise
