#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/json.h"
#include "client/archive/chat_folder.h"
#include "support/fixtures.h"
#include "support/source_directory.h"
#include "support/test.h"

namespace reprise::test::foreign_chat_test {
namespace {

const std::string kSample = SourceDirectory() + "/chats/sample";

Json Turn(const std::string& id) {
  return {{"id", id},
          {"status", "COMPLETED"},
          {"user_message", "question " + id},
          {"agent_events", Json::array({Json{{"type", "ANSWER"}, {"content", "answer " + id}}})},
          {"final_agent_state", nullptr},
          {"created_at", "2025-01-15T10:00:00Z"},
          {"completed_at", "2025-01-15T10:00:01Z"}};
}

Result<ForeignChat> Read(const Json& interactions) {
  const TempDirectory directory;
  const Json chat = {{"id", "c"}, {"interactions", interactions}, {"created_at", "2025-01-15T10:00:00Z"}};
  return ReadForeignChat(directory.Write("chat.txt", DumpJson(chat)));
}

}  // namespace

TEST_CASE("ReadForeignChat: our own folder needs nothing filled in", "[foreign]") {
  const auto chat = ReadForeignChat(kSample + "/trip");
  REQUIRE(chat);
  CHECK(chat->name == "trip");
  CHECK(chat->notes.empty());
  CHECK(chat->head == InteractionId::FromNumber(2));
  REQUIRE(chat->interactions.size() == 2);
  CHECK(chat->interactions[1].parent_id == InteractionId::FromNumber(1));
  CHECK(FindForeignChats(kSample)->paths == std::vector<std::string>{kSample + "/trip"});
}

TEST_CASE("FindForeignChats: a folder's documents may be chats, and what else is there is named", "[foreign]") {
  const TempDirectory directory;
  std::filesystem::create_directories(directory.File("folder/interactions"));
  std::filesystem::create_directories(directory.File("empty"));
  for (const char* name : {"one.json", "two.jsonl", "notes.txt", ".hidden.json", "audit.jsonl"})
    directory.Write(name, "{}");
  const auto found = FindForeignChats(directory.path());
  REQUIRE(found);
  CHECK(found->paths == std::vector{directory.File("folder"), directory.File("one.json"), directory.File("two.jsonl")});
  CHECK(found->others == std::vector<std::string>{"empty", "notes.txt"});
}

TEST_CASE("ReadForeignChat: states, parents and event numbers are filled in", "[foreign]") {
  Json second = Turn("int_002");
  second["agent_events"] =
      Json::array({Json{{"type", "TOOL_CALL"}, {"id", "c1"}, {"tool_name", "t"}, {"tool_input", {{"a", 1}}}},
                   Json{{"type", "ANSWER"}, {"content", "done"}}});
  const auto chat = Read(Json::array({second, Turn("int_001")}));
  REQUIRE(chat);
  const Interaction last = chat->Whole(chat->interactions.back().id);
  CHECK(last.id == InteractionId::FromNumber(2));
  CHECK(last.parent_id == InteractionId::FromNumber(1));
  CHECK(last.events[1].seq == 2);
  CHECK(std::get<event::ToolCallStarted>(last.events[0].payload).tool_input == R"({"a":1})");
  const auto& messages = last.final_agent_state->messages;
  REQUIRE(messages.size() == 6);
  CHECK(messages[1].content == "answer int_001");
  CHECK(messages[3].tool_calls.size() == 1);
  CHECK(messages[4].role == Role::kTool);  // a call without a result gets one
  CHECK(messages[5].content == "done");
  CHECK(chat->notes.size() == 3);
}

TEST_CASE("ReadForeignChat: times as other programs write them", "[foreign]") {
  for (const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
           {"2025-01-15T10:00:00", "2025-01-15T10:00:00.000Z"},
           {"2025-01-15 10:00:00.5", "2025-01-15T10:00:00.500Z"},
           {"2025-01-15T10:00:00.123456+00:00", "2025-01-15T10:00:00.123Z"},
           {"2025-01-15T10:00:00.-05:30", "2025-01-15T15:30:00.000Z"}}) {
    Json turn = Turn("int_001");
    turn["created_at"] = text;
    const auto chat = Read(Json::array({turn}));
    INFO(text);
    REQUIRE(chat);
    CHECK(FormatTimestamp(chat->interactions[0].created_at) == expected);
  }
  for (const char* text :
       {"", "yesterday", "2025-01-15", "2025-01-15T10:00:00+1", "2025-01-15T10:00:00+ab:cd", "2025-13-15T10:00:00Z"}) {
    Json turn = Turn("int_001");
    turn["created_at"] = text;
    INFO(text);
    CHECK(!Read(Json::array({turn})));
  }
}

TEST_CASE("ReadForeignChat: what cannot be used is named", "[foreign]") {
  CHECK(Read(Json::array({Turn("int_001"), Turn("int_001")})).error().message.find("two interactions") !=
        std::string::npos);
  CHECK(!Read(Json::array({"no object"})));
  Json turn = Turn("int_001");
  turn["parent_id"] = "int_002";
  CHECK(!Read(Json::array({turn, Turn("int_002")})));
  CHECK(Read(Json::array({turn}))->notes.front().find("int_001 begins a branch") == 0);
  turn = Turn("int_001");
  turn["agent_events"] = Json::array({Json{{"type", "ANSWER"}, {"content", 7}}});
  CHECK(Read(Json::array({turn})).error().code == ErrorCode::kInvalidArgument);
  const TempDirectory directory;
  for (const char* text : {"", "[]", "{}", "null", "{\"interactions\":", "{\"interactions\":7}"}) {
    INFO(text);
    CHECK(!ReadForeignChat(directory.Write("x.json", text)));
  }
}

}  // namespace reprise::test::foreign_chat_test
