#include "store/linked_state.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "domain/codec.h"
#include "store/file_interaction_store.h"
#include "store/file_names.h"
#include "store/sample.h"
#include "support/forwarding_file_system.h"
#include "support/memory_file_system.h"
#include "support/test.h"

namespace reprise::linked_state_test {
namespace {

const std::string kRoot = "/data";

// A chat whose turns have `bytes` of text each, a fifth of it from the user.
class LongChat {
 public:
  explicit LongChat(std::size_t bytes, bool sealed = true) : bytes_(bytes) {
    if (sealed) keys_ = std::make_shared<const KeySet>(KeySet::Generate());
  }

  std::unique_ptr<FileInteractionStore> Open() {
    return *FileInteractionStore::Open({.root = kRoot, .keys = keys_, .file_system = disk, .lock = false});
  }

  // The next turn after the last one, with a text of its own.
  Interaction NextTurn() {
    ++number_;
    const std::string tag = std::to_string(number_) + " ";
    const std::string question = tag + std::string(bytes_ / 5, 'q'), answer = tag + std::string(bytes_ * 4 / 5, 'a');
    Interaction turn =
        Sample(Chat1(), Id(number_), number_ > 1 ? std::optional(Id(number_ - 1)) : std::nullopt, question);
    state_.messages.push_back({.role = Role::kUser, .content = question});
    Message call{.role = Role::kAssistant, .content = std::nullopt};
    call.tool_calls.push_back({"call_" + tag, "echo", R"({"text":")" + std::string(100, 'x') + tag + "\"}"});
    state_.messages.push_back(call);
    state_.messages.push_back({.role = Role::kTool, .content = "ok", .tool_calls = {}, .tool_call_id = "call_" + tag});
    state_.messages.push_back({.role = Role::kAssistant, .content = answer});
    turn.events = {{2, 0, turn.created_at, event::ToolCallStarted{"call_" + tag, "echo", call.tool_calls[0].arguments}},
                   {3, 0, turn.created_at, event::ToolResult{"call_" + tag, "echo", "ok", false}},
                   {4, 1, turn.created_at, event::Answer{answer}}};
    turn.final_agent_state = state_;
    return turn;
  }
  std::size_t said() const { return number_ * bytes_; }

  std::size_t FileBytes(std::uint32_t number) {
    return disk.ReadFile(InteractionFile(kRoot, Chat1(), Id(number)), kMaxRecordBytes)->size();
  }
  std::size_t DiskBytes() {
    std::size_t all = 0;
    for (std::uint32_t n = 1; n <= number_; ++n) all += FileBytes(n);
    return all;
  }

  std::shared_ptr<const KeySet> keys() const { return keys_; }

  MemoryFileSystem disk;

 private:
  const std::size_t bytes_;
  std::shared_ptr<const KeySet> keys_;
  std::uint32_t number_ = 0;
  AgentState state_;
};

}  // namespace

TEST_CASE("Long chats: a loaded interaction equals the saved one, even in a new store", "[store]") {
  LongChat chat(3000, GENERATE(true, false));
  std::vector<Interaction> turns;
  {
    auto store = chat.Open();
    for (int i = 0; i < 120; ++i) {
      turns.push_back(chat.NextTurn());
      REQUIRE(store->SaveInteraction(turns.back()));
    }
    REQUIRE(store->SaveInteraction(turns.back()));  // saving it twice is ok
    for (const Interaction& turn : turns) REQUIRE(store->LoadInteraction(Chat1(), turn.id) == turn);
  }
  auto store = chat.Open();
  for (const Interaction& turn : turns) REQUIRE(store->LoadInteraction(Chat1(), turn.id) == turn);
  CHECK(store->LoadPreviousState(Chat1(), Id(120))->value() == *turns[118].final_agent_state);
  // The whole chat comes without the states, which would grow with the square of its length.
  const auto all = store->LoadChat(Chat1());
  REQUIRE(all);
  CHECK(all->damaged.empty());
  CHECK(all->interactions.size() == 120);
  CHECK(all->interactions.front().final_agent_state);
  CHECK_FALSE(all->interactions.back().final_agent_state);
  CHECK(all->interactions.back().events == turns.back().events);
}

TEST_CASE("Long chats: disk space grows with the length of the conversation", "[store][long]") {
  LongChat chat(3500);
  auto store = chat.Open();
  double most = 0;
  for (int turn = 1; turn <= 1000; ++turn) {
    REQUIRE(store->SaveInteraction(chat.NextTurn()));
    if (turn >= 100 && turn % 20 == 0) most = std::max(most, double(chat.DiskBytes()) / double(chat.said()));
  }
  INFO("at most " << most << " times what was said");
  CHECK(most < 4);
  // A turn costs its own length, and not that of the earlier ones.
  CHECK(chat.FileBytes(1000) < 3 * 3500);
}

TEST_CASE("Long chats: a state in many small files is written in full from time to time", "[store][long]") {
  LongChat chat(300, /*sealed=*/false);
  auto store = chat.Open();
  std::vector<int> full;
  for (int turn = 1; turn <= 1500; ++turn) {
    REQUIRE(store->SaveInteraction(chat.NextTurn()));
    if (chat.FileBytes(static_cast<std::uint32_t>(turn)) > 2 * kFullStateBytes) full.push_back(turn);
  }
  REQUIRE(full.size() >= 2);
  CHECK(full.size() <= 4);
  CHECK(full[1] > full[0] * 3 / 2);
}

TEST_CASE("Long chats: a state up to 64 KiB is in one file, a longer one refers", "[store]") {
  LongChat chat(4000, /*sealed=*/false);
  auto store = chat.Open();
  for (int turn = 1; turn <= 40; ++turn) {
    REQUIRE(store->SaveInteraction(chat.NextTurn()));
    const auto text =
        chat.disk.ReadFile(InteractionFile(kRoot, Chat1(), Id(static_cast<std::uint32_t>(turn))), kMaxRecordBytes);
    const Json state = ParseJson(*text)->at("final_agent_state");
    const auto totals =
        TotalsOf(*store->LoadInteraction(Chat1(), Id(static_cast<std::uint32_t>(turn)))->final_agent_state);
    INFO(turn << ": " << totals.bytes);
    CHECK(state.contains("linked") == (totals.bytes > kFullStateBytes));
    if (!state.contains("linked")) CHECK(state.at("messages").size() == totals.messages);
  }
}

TEST_CASE("Long chats: a state that does not continue its parent's is written in full", "[store]") {
  LongChat chat(4000, /*sealed=*/false);
  auto store = chat.Open();
  for (int turn = 1; turn <= 30; ++turn) REQUIRE(store->SaveInteraction(chat.NextTurn()));
  Interaction other = chat.NextTurn();
  other.final_agent_state->messages.Change(0).content = "summed up";
  REQUIRE(store->SaveInteraction(other));
  CHECK(chat.FileBytes(31) > kFullStateBytes);
  CHECK(chat.FileBytes(30) < 16'000);
  CHECK(store->LoadInteraction(Chat1(), other.id) == other);
}

TEST_CASE("Long chats: a damaged, replaced or missing file before a state is named, and states without it are read",
          "[store][fault]") {
  LongChat chat(4000);
  std::vector<std::string> files;
  auto store = chat.Open();
  for (int turn = 1; turn <= 30; ++turn) REQUIRE(store->SaveInteraction(chat.NextTurn()));
  store = chat.Open();
  const std::string path = InteractionFile(kRoot, Chat1(), Id(25));
  const std::string whole = *chat.disk.ReadFile(path, kMaxRecordBytes);
  std::string flipped = whole;
  flipped[whole.size() / 2] = static_cast<char>(flipped[whole.size() / 2] ^ 1);
  SECTION("flipped") {
    chat.disk.Overwrite(path, flipped);
    CHECK(store->LoadInteraction(Chat1(), Id(30)).error().reason == "integrity_auth");
  }
  SECTION("missing") {
    REQUIRE(chat.disk.RemoveFile(path));
    CHECK(store->LoadInteraction(Chat1(), Id(30)).error().reason == "integrity_missing");
  }
  SECTION("another's") {
    chat.disk.Overwrite(path, *chat.disk.ReadFile(InteractionFile(kRoot, Chat1(), Id(24)), kMaxRecordBytes));
    CHECK(store->LoadInteraction(Chat1(), Id(30)).error().reason == "integrity_swap");
  }
  CHECK(store->LoadInteraction(Chat1(), Id(30)).error().detail.find("int_025") != std::string::npos);
  CHECK(store->LoadInteraction(Chat1(), Id(24)));
  const auto all = store->LoadChat(Chat1());
  REQUIRE(all);
  CHECK(all->interactions.size() == 29);
  CHECK(all->damaged.size() == 1);
}

TEST_CASE("Long chats: the state before an interaction is assembled once for both", "[store]") {
  LongChat chat(3000);
  for (int i = 0; i < 60; ++i) REQUIRE(chat.Open()->SaveInteraction(chat.NextTurn()));
  CountedReads disk(chat.disk);
  const auto store =
      *FileInteractionStore::Open({.root = kRoot, .keys = chat.keys(), .file_system = disk, .lock = false});
  const InteractionId last = Id(60);
  REQUIRE(store->LoadSummary(Chat1()));
  disk.reads = 0;
  REQUIRE(store->LoadPreviousState(Chat1(), last));
  CHECK(disk.reads > 10);
  disk.reads = 0;
  REQUIRE(store->LoadInteraction(Chat1(), last));
  CHECK(disk.reads <= 2);  // its own file and its parent's
}

TEST_CASE("Long chats: a state in the middle is taken from the beginning of a kept one", "[store]") {
  LongChat chat(3000);
  std::vector<Interaction> turns;
  for (int i = 0; i < 60; ++i) turns.push_back(chat.NextTurn());
  CountedReads disk(chat.disk);
  const auto store =
      *FileInteractionStore::Open({.root = kRoot, .keys = chat.keys(), .file_system = disk, .lock = false});
  for (const Interaction& turn : turns) REQUIRE(store->SaveInteraction(turn));
  REQUIRE(store->LoadFinalState(Chat1(), Id(60)));
  disk.reads = 0;
  CHECK(store->LoadPreviousState(Chat1(), Id(40)).value() == turns[38].final_agent_state);
  CHECK(store->LoadInteraction(Chat1(), Id(40)).value().final_agent_state == turns[39].final_agent_state);
  CHECK(disk.reads <= 4);

  const AgentState& state = *turns[39].final_agent_state;
  CHECK(BeginsWith(state, TotalsOf(state)));
  CHECK(BeginsWith(state, TotalsOf(*turns[20].final_agent_state)));
  CHECK_FALSE(BeginsWith(*turns[20].final_agent_state, TotalsOf(state)));
  AgentState other = state;
  other.messages.Change(3).content = "another";
  CHECK_FALSE(BeginsWith(other, TotalsOf(state)));
}

TEST_CASE("UnlinkState: a link that we did not write is damage", "[store]") {
  const Json good = {{"user_message", "hello"},
                     {"agent_events", Json::array()},
                     {"final_agent_state",
                      {{"messages", {{{"role", "user"}, {"content", ""}}}},
                       {"linked",
                        {{"kept", 1},
                         {"messages", 2},
                         {"bytes", 9},
                         {"digest", "d"},
                         {"full_bytes", 1},
                         {"files", 1},
                         {"texts", {{0, 0}}}}}}}};
  Json json = good;
  const auto link = UnlinkState(json);
  REQUIRE(link);
  REQUIRE(*link);
  CHECK(json["final_agent_state"]["messages"][0]["content"] == "hello");
  CHECK_FALSE(json["final_agent_state"].contains("linked"));
  for (const Json& texts : {Json{{0, 7}}, Json{{1, 0}}, Json{{-1, 0}}, Json{{0}}, Json("x"), Json{{"a", "b"}}}) {
    json = good;
    json["final_agent_state"]["linked"]["texts"] = texts;
    INFO(DumpJson(texts));
    CHECK(UnlinkState(json).error().code == ErrorCode::kCorruption);
  }
  for (const char* member : {"kept", "messages", "bytes", "digest", "full_bytes", "files"}) {
    json = good;
    json["final_agent_state"]["linked"].erase(member);
    CHECK(UnlinkState(json).error().code == ErrorCode::kCorruption);
  }
  for (Json other : {Json(), Json(1), Json::array(), Json{{"final_agent_state", nullptr}}})
    CHECK_FALSE(*UnlinkState(other));
}

TEST_CASE("Long chats: the memory kept for many short turns stays small", "[store][linked][long]") {
  LongChat chat(100);
  const auto store = chat.Open();
  std::size_t most = 0;
  for (int turn = 0; turn < 1500; ++turn) {
    REQUIRE(store->SaveInteraction(chat.NextTurn()));
    most = std::max(most, store->kept_bytes());
  }
  // Some states, each with the whole conversation: 6,000 messages and their objects.
  const auto last = store->LoadInteraction(Chat1(), Id(1500));
  REQUIRE(last);
  const std::size_t objects = last->final_agent_state->messages.size() * sizeof(Message);
  CHECK(objects > (1u << 19));
  CHECK(store->kept_bytes() > objects);
  CHECK(most < (16u << 20));
  REQUIRE(store->DeleteChat(Chat1()));
  CHECK(store->kept_bytes() == 0);
}

}  // namespace reprise::linked_state_test
