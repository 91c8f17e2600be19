// What a session is read from: a document that changes meanwhile, a database, and messages that lead nowhere.
#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/shared_library.h"
#include "moves/read_text.h"
#include "support/temp_directory.h"

namespace reprise::test::sources_test {
namespace {

// Reads the only session of a file. `meanwhile` is called when the interactions are known and not yet made.
Result<ForeignChat> ReadFile(const std::string& path, const std::function<void()>& meanwhile) {
  const auto source = SourceText::Open(path);
  const MoveFormat* const format = RecognizeFormat(*source, {}).value();
  std::optional<Result<ForeignChat>> chat;
  const auto read = ForEachSession(*source, *format, path, [&](const FoundSession& session) -> Result<void> {
    const auto turns = session.plan();
    REQUIRE(turns);
    meanwhile();
    chat = (*turns)->ReadAll("chat");
    return {};
  });
  return chat ? *chat : Fail(read.error());
}

// A database as a tool at work has it.
class Database : SharedLibrary {
 public:
  explicit Database(const std::string& path) : SharedLibrary(kSqliteLibrary) {
    REQUIRE(open_(path.c_str(), &database_) == SQLITE_OK);
  }
  ~Database() { close_(database_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void Do(const std::string& statements) {
    INFO(statements);
    REQUIRE(do_(database_, statements.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  }

 private:
  decltype(&::sqlite3_open) open_ = Find("sqlite3_open");
  decltype(&::sqlite3_exec) do_ = Find("sqlite3_exec");
  decltype(&::sqlite3_close) close_ = Find("sqlite3_close");
  sqlite3* database_ = nullptr;
};

std::vector<std::string> Said(const ForeignChat& chat) {
  std::vector<std::string> said;
  for (const Interaction& each : chat.interactions) said.push_back(each.user_message);
  return said;
}

}  // namespace

TEST_CASE("SourceText: a document that is rewritten in place is not mixed with what it was", "[moves]") {
  const TempDirectory folder;
  const std::string path = folder.path() + "/session.json";
  const auto write = [&](const char* first, const char* second) {
    const auto said = [](const char* text) {
      return Json{{"role", "user"}, {"created", 1}, {"content", {{{"type", "text"}, {"text", text}}}}};
    };
    std::ofstream(path) << DumpJson({{"working_dir", "/"}, {"conversation", {said(first), said(second)}}});
  };
  write("one", "two");
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  CHECK(Said(ReadFile(path, [] {}).value()) == std::vector<std::string>{"one", "two"});
  const auto changed = ReadFile(path, [&] { write("red", "hat"); });
  REQUIRE_FALSE(changed);
  CHECK(changed.error().message == path + " changed while it was read: run it again");
}

TEST_CASE("SqliteFile: a message that changes meanwhile is noticed, and others do not matter", "[moves]") {
  const TempDirectory folder;
  const std::string path = folder.path() + "/sessions.db";
  Database tool(path);
  tool.Do(
      "CREATE TABLE sessions (id TEXT PRIMARY KEY, created_at);"
      "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id, role, created_timestamp, content_json);"
      "INSERT INTO sessions VALUES ('s', 1);");
  const auto add = [&](const std::string& session, const std::string& text) {
    tool.Do("INSERT INTO messages(session_id, role, created_timestamp, content_json) VALUES ('" + session +
            "', 'user', 1, '[{\"type\":\"text\",\"text\":\"" + text + "\"}]')");
  };
  add("s", "one");
  add("s", "two");
  const std::vector<std::string> both{"one", "two"};
  CHECK(Said(ReadFile(path, [&] { add("other", "x"); }).value()) == both);
  CHECK(Said(ReadFile(path, [&] { add("s", "three"); }).value()) == both);
  for (const char* change : {"UPDATE messages SET content_json = replace(content_json, 'two', 'six')",
                             "DELETE FROM messages WHERE content_json LIKE '%one%'"}) {
    const auto changed = ReadFile(path, [&] { tool.Do(change); });
    REQUIRE_FALSE(changed);
    CHECK(changed.error().code == ErrorCode::kConflict);
    CHECK(changed.error().message == path + ", session s changed while it was read: run it again");
  }
}

TEST_CASE("MovedTurns: a chat whose messages are a circle is named with them", "[moves]") {
  const auto message = [](const char* parent) {
    return Json{{"parent", parent}, {"message", {{"author", {{"role", "user"}}}, {"content", {{"parts", {"Go."}}}}}}};
  };
  const Json circle = {{"mapping", {{"c", message("a")}, {"a", message("b")}, {"b", message("a")}}}};
  const Json good = {{"mapping", {{"a", message("none")}}}};
  const Read read = ReadText(DumpJson({circle, good, {{"mapping", Json::object()}}}));
  REQUIRE(read.chats.size() == 3);
  CHECK(read.chats[0].error().message ==
        "the source, element 1: its messages continue each other in a circle, and none begins it (a, b)");
  CHECK(read.chats[1]);
  CHECK(read.chats[2].error().code == ErrorCode::kNotFound);
}

}  // namespace reprise::test::sources_test
