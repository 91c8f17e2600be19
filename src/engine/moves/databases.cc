#include "engine/moves/databases.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/try.h"
#include "engine/moves/formats.h"

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

using Database = std::shared_ptr<const SqliteFile>;

// Where a message of a session is.
struct MessagePlace {
  std::int64_t row;
  std::vector<std::int64_t> parts;
  std::size_t hash = 0;  // of what it was when it was read first; 0: it was not
};

// The messages of a session, each read when it is needed.
class StoredMessages {
 public:
  using ReadMessage = std::function<Result<Json>(const MessagePlace& place)>;
  StoredMessages(std::string where, std::vector<MessagePlace> places, ReadMessage read)
      : where_(std::move(where)), places_(std::move(places)), read_(std::move(read)) {}

  std::size_t size() const { return places_.size(); }
  // kConflict if it is not the same as before.
  Result<Json> Load(std::size_t message) {
    MessagePlace& place = places_[message];
    auto json = read_(place);
    const std::size_t hash = json ? std::hash<Json>()(*json) : 0;
    if (place.hash == 0) place.hash = hash;
    const bool is_gone = !json && json.error().code == ErrorCode::kNotFound;
    if (is_gone || (json && hash != place.hash)) {
      return Fail(ErrorCode::kConflict, where_ + " changed while it was read: run it again");
    }
    return json;
  }

 private:
  const std::string where_;
  std::vector<MessagePlace> places_;
  const ReadMessage read_;
};

Records RecordsOf(const std::shared_ptr<StoredMessages>& messages) {
  return {.count = messages->size(), .load = [messages](std::size_t message) { return messages->Load(message); }};
}

// What a session holds, as one object.
struct Dump {
  Sha256Sum sum{};
  std::size_t bytes = 0;

  void Add(std::string_view text) { sum.Add(text), bytes += text.size(); }
  Result<void> Add(StoredMessages& messages) {
    Add("[");
    for (std::size_t i = 0; i < messages.size(); ++i) Add((i > 0 ? "," : "") + DumpJson(TRY(messages.Load(i))));
    return Add("]"), Result<void>();
  }
};

std::string NameIn(const SqliteFile& file, const std::string& session) { return file.path() + ", session " + session; }

// Reads the rows of a statement, no more of them than `room`. kTooLarge: `what` is.
Result<void> ForEachRow(const SqliteFile& file, const std::string& select, const std::string& value, std::size_t& room,
                        const std::string& what, const std::function<void(Json row)>& visit) {
  auto read = file.ForEachRow(select, value, room, [&](Json row) -> Result<void> {
    visit(std::move(row));
    return {};
  });
  if (read || read.error().code != ErrorCode::kTooLarge) return read;
  return Fail(ErrorCode::kTooLarge, what + " larger than " + std::to_string(kMaxSourceRecord >> 20) + " MiB");
}

// The only row. kNotFound, kTooLarge.
Result<Json> OnlyRow(const SqliteFile& file, const std::string& select, const std::string& value, std::size_t& room,
                     const std::string& where) {
  Json only;
  TRY(ForEachRow(file, select, value, room, where + ": a message is", [&](Json row) {
    if (only.is_null()) only = std::move(row);
  }));
  if (only.is_null()) return Fail(ErrorCode::kNotFound, where + ": it is no longer there");
  return only;
}

// JSON in a column; null if it is none.
Json JsonIn(const Json& row, const char* column) {
  return ParseForeignJson(TextMember(row, column), {}).value_or(Json());
}

struct ListedRow {
  Json time, id;  // they are ordered by them
  std::int64_t row;
  std::vector<ListedRow> parts{};
};

ListedRow Listed(const Json& row, const char* time) {
  const Json& number = MemberOf(row, "rowid");
  return {.time = MemberOf(row, time),
          .id = MemberOf(row, "id"),
          .row = number.is_number_integer() ? number.get<std::int64_t>() : 0};
}

std::vector<MessagePlace> PlacesOf(std::vector<ListedRow> messages) {
  Sort(messages);
  std::vector<MessagePlace> places;
  for (ListedRow& message : messages) {
    MessagePlace& place = places.emplace_back(MessagePlace{.row = message.row, .parts = {}});
    Sort(message.parts);
    for (const ListedRow& part : message.parts) place.parts.push_back(part.row);
  }
  return places;
}

constexpr std::size_t kMostPlaces = 2 * kMaxSourceRecord;  // bytes of the rows that say where a session's are

// The statements for goose; their parameter is a session, that of `message` a row.
struct GooseTables {
  std::string session, messages, message;
};

Result<std::shared_ptr<StoredMessages>> GooseMessages(const Database& file, const GooseTables& tables,
                                                      const std::string& session) {
  const std::string where = NameIn(*file, session);
  std::vector<ListedRow> messages;
  std::size_t room = kMostPlaces;
  TRY(ForEachRow(*file, tables.messages, session, room, where + ": its list of messages is",
                 [&](const Json& row) { messages.push_back(Listed(row, "created_timestamp")); }));
  auto read = [file, where, select = tables.message](const MessagePlace& place) -> Result<Json> {
    std::size_t left = kMaxSourceRecord;
    const Json row = TRY(OnlyRow(*file, select, std::to_string(place.row), left, where));
    Json message = {{"role", TextMember(row, "role")},
                    {"created", MemberOf(row, "created_timestamp")},
                    {"content", JsonIn(row, "content_json")}};
    if (Json metadata = JsonIn(row, "metadata_json"); metadata.is_object()) message["metadata"] = std::move(metadata);
    return message;
  };
  return std::make_shared<StoredMessages>(where, PlacesOf(std::move(messages)), std::move(read));
}

Result<StoredSession> GooseSession(const Database& file, const GooseTables& tables, const std::string& id,
                                   const std::vector<SessionBelow>& below) {
  std::size_t room = kMaxSourceRecord;
  Json session = TRY(OnlyRow(*file, tables.session, id, room, NameIn(*file, id)));
  session["id"] = id;
  session["model_config"] = JsonIn(session, "model_config_json");
  const auto messages = TRY(GooseMessages(file, tables, id));
  Dump dump;
  std::string text = DumpJson(session);
  text.pop_back();
  dump.Add(text + ",\"conversation\":");
  TRY(dump.Add(*messages));
  session["sub_agents"] = Json::array();
  for (const SessionBelow& each : below) session["sub_agents"].push_back(each.id);
  dump.Add(",\"sub_agents\":" + DumpJson(session["sub_agents"]) + "}");
  return StoredSession{.session = OpenRecords(RecordsOf(messages), ReadGooseExport(session)),
                       .sum = std::move(dump.sum),
                       .bytes = dump.bytes};
}

// The statements for opencode; their parameter is a session, that of `message` and `part` a row.
struct OpenCodeTables {
  std::string session, messages, parts, message, part;
};

Result<std::shared_ptr<StoredMessages>> OpenCodeMessages(const Database& file, const OpenCodeTables& tables,
                                                         const std::string& session) {
  const std::string where = NameIn(*file, session), what = where + ": its list of messages is";
  std::vector<ListedRow> messages;
  std::unordered_map<std::string, std::size_t> places;  // by id
  std::size_t room = kMostPlaces;
  TRY(ForEachRow(*file, tables.messages, session, room, what, [&](const Json& row) {
    places.emplace(TextMember(row, "id"), messages.size());
    messages.push_back(Listed(row, "time_created"));
  }));
  TRY(ForEachRow(*file, tables.parts, session, room, what, [&](const Json& row) {
    const auto message = places.find(TextMember(row, "message_id"));
    if (message != places.end()) messages[message->second].parts.push_back(Listed(row, "no time"));
  }));
  auto read = [file, where, select = tables.message, of_part = tables.part](const MessagePlace& place) -> Result<Json> {
    std::size_t left = kMaxSourceRecord;
    const Json row = TRY(OnlyRow(*file, select, std::to_string(place.row), left, where));
    Json info = JsonIn(row, "data"), parts = Json::array();
    if (!info.is_object()) info = Json::object();
    info["id"] = TextMember(row, "id");
    for (const std::int64_t part : place.parts) {
      parts.push_back(JsonIn(TRY(OnlyRow(*file, of_part, std::to_string(part), left, where)), "data"));
    }
    return Json{{"info", std::move(info)}, {"parts", std::move(parts)}};
  };
  return std::make_shared<StoredMessages>(where, PlacesOf(std::move(messages)), std::move(read));
}

Result<StoredSession> OpenCodeSession(const Database& file, const OpenCodeTables& tables, const std::string& id,
                                      const std::vector<SessionBelow>& below) {
  std::size_t room = kMaxSourceRecord;
  const Json session = TRY(OnlyRow(*file, tables.session, id, room, NameIn(*file, id)));
  const Json time = {{"created", MemberOf(session, "time_created")}, {"updated", MemberOf(session, "time_updated")}};
  Json info = {{"id", id},
               {"title", TextMember(session, "title")},
               {"directory", TextMember(session, "directory")},
               {"time", time}};
  if (Json revert = JsonIn(session, "revert"); revert.is_object()) info["revert"] = std::move(revert);
  const auto messages = TRY(OpenCodeMessages(file, tables, id));
  Dump dump;
  dump.Add("{\"info\":" + DumpJson(info) + ",\"messages\":");
  TRY(dump.Add(*messages));
  dump.Add(",\"sub_agents\":{");
  std::map<std::string, std::shared_ptr<StoredMessages>> readable;
  OpenCodeSubAgents sub_agents;
  for (const SessionBelow& each : below) {
    dump.Add((sub_agents.known.empty() ? "" : ",") + DumpJson(each.id) + ":");
    sub_agents.known.push_back(each.id);
    if (each.depth > kMostLevels) {
      dump.Add("null");
      continue;
    }
    const auto of_sub_agent = readable[each.id] = TRY(OpenCodeMessages(file, tables, each.id));
    TRY(dump.Add(*of_sub_agent));
  }
  dump.Add("}}");
  sub_agents.find = [readable = std::move(readable)](const std::string& name) -> std::optional<Records> {
    const auto found = readable.find(name);
    return found == readable.end() ? std::nullopt : std::optional(RecordsOf(found->second));
  };
  return StoredSession{
      .session = OpenRecords(RecordsOf(messages), ReadOpenCode(info, messages->size(), std::move(sub_agents))),
      .sum = std::move(dump.sum),
      .bytes = dump.bytes};
}

}  // namespace

Result<void> ForEachGooseSession(const std::shared_ptr<const SqliteFile>& file, const VisitStored& visit) {
  const std::string list = TRY(file->Select("sessions", {"id", "created_at", "session_type", "parent_session_id"}));
  GooseTables tables;
  tables.session = TRY(file->Select("sessions", {"id", "name", "description", "working_dir", "model_config_json"}));
  tables.messages = TRY(file->Select("messages", {"session_id", "rowid", "id", "created_timestamp"}));
  tables.message =
      TRY(file->Select("messages", {"session_id", "role", "created_timestamp", "content_json", "metadata_json"}));
  tables.session += " WHERE id = ?";
  tables.messages += " WHERE session_id = ?";
  tables.message += " WHERE rowid = ?";
  const auto sessions = TRY(ListSessions(*file, list, "created_at", [](const Json& row) {
    return TextMember(row, "session_type") == "sub_agent" ? TextMember(row, "parent_session_id") : std::string();
  }));
  return ForEachFamily(sessions, [&](const std::string& id, const std::vector<SessionBelow>& below) {
    return visit(GooseSession(file, tables, id, below));
  });
}

Result<void> ForEachOpenCodeSession(const std::shared_ptr<const SqliteFile>& file, const VisitStored& visit) {
  const std::string list = TRY(file->Select("session", {"id", "parent_id", "time_created"}));
  OpenCodeTables tables;
  tables.session = TRY(file->Select("session", {"id", "title", "directory", "time_created", "time_updated", "revert"}));
  tables.messages = TRY(file->Select("message", {"session_id", "rowid", "id", "time_created"}));
  tables.parts = TRY(file->Select("part", {"session_id", "rowid", "id", "message_id"}));
  tables.message = TRY(file->Select("message", {"id", "data"}));
  tables.part = TRY(file->Select("part", {"session_id", "data"}));
  tables.session += " WHERE id = ?";
  for (std::string* each : {&tables.messages, &tables.parts}) *each += " WHERE session_id = ?";
  for (std::string* each : {&tables.message, &tables.part}) *each += " WHERE rowid = ?";
  const auto sessions =
      TRY(ListSessions(*file, list, "time_created", [](const Json& row) { return TextMember(row, "parent_id"); }));
  return ForEachFamily(sessions, [&](const std::string& id, const std::vector<SessionBelow>& below) {
    return visit(OpenCodeSession(file, tables, id, below));
  });
}

}  // namespace reprise
