#include "store/file_interaction_store.h"

#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/posix_file_system.h"
#include "crypto/jwe.h"
#include "crypto/key_set.h"
#include "domain/codec.h"
#include "store/file_names.h"
#include "store/record.h"
#include "store/sample.h"
#include "support/faulty_file_system.h"
#include "support/memory_file_system.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::file_interaction_store_test {
namespace {

namespace fs = std::filesystem;
using Access = FileInteractionStore::Access;

std::shared_ptr<const KeySet> NewKeys() { return std::make_shared<const KeySet>(KeySet::Generate()); }

// A data folder on the real disk with a store that can be closed and opened.
struct DataFolder {
  explicit DataFolder(std::shared_ptr<const KeySet> with_keys) : keys(std::move(with_keys)) { Open(); }
  DataFolder() : DataFolder(NewKeys()) {}

  void Open() {
    Close();
    auto opened = FileInteractionStore::Open({.root = root(), .keys = keys, .file_system = disk});
    REQUIRE(opened);
    store = *std::move(opened);
  }
  void Close() { store.reset(); }
  std::string root() const { return folder.File("chats"); }
  std::string Interaction(std::uint32_t number) const { return InteractionFile(root(), Chat1(), Id(number)); }
  std::string ChatJson() const { return ChatFile(root(), Chat1()); }
  std::string Read(const std::string& path) { return *disk.ReadFile(path, 1 << 30); }
  void Write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::trunc | std::ios::binary) << text;
  }
  void SaveThree() {
    REQUIRE(store->SaveInteraction(Sample(1, {}, "one")));
    REQUIRE(store->SaveInteraction(Sample(2, 1, "two")));
    REQUIRE(store->SaveInteraction(Sample(3, 2, "three")));
  }

  TempDirectory folder;
  PosixFileSystem disk;
  std::shared_ptr<const KeySet> keys;
  std::unique_ptr<FileInteractionStore> store;
};

template <typename T>
std::string ReasonOf(const Result<T>& result) {
  return result ? "ok" : result.error().reason;
}

mode_t ModeOf(const fs::path& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

}  // namespace

TEST_CASE("a kept what-if turn leaves the head, also if the process ends before chat.json is written", "[store]") {
  DataFolder folder;
  REQUIRE(folder.store->SaveInteraction(Sample(1, {}, "one")));
  REQUIRE(folder.store->SaveInteraction(Sample(2, 1, "two")));
  Interaction kept = Sample(3, 1, "another two");
  kept.edited_from = Id(2);
  kept.record.emplace().what_if = 2;
  REQUIRE(folder.store->SaveInteraction(kept));
  CHECK(folder.store->LoadSummary(Chat1())->head == Id(2));
  folder.Close();
  fs::remove(folder.ChatJson());
  folder.Open();
  CHECK(folder.store->LoadSummary(Chat1())->head == Id(2));
  CHECK(folder.store->LoadChat(Chat1())->interactions.size() == 3);
  REQUIRE(folder.store->SaveInteraction(Sample(4, 3, "on from there")));
  CHECK(folder.store->LoadSummary(Chat1())->head == Id(4));
}

TEST_CASE("FileInteractionStore: directories are 0700 and files 0600 whatever the umask", "[store]") {
  for (const mode_t mask : {0, 0777}) {
    const TempDirectory folder;
    const mode_t before = ::umask(mask);
    {
      PosixFileSystem disk;
      const auto store =
          FileInteractionStore::Open({.root = folder.File("a/b"), .keys = NewKeys(), .file_system = disk});
      const bool saved = store && (*store)->SaveInteraction(Sample(1, {}, "one")) &&
                         (*store)->SaveInteraction(Sample(*ChatId::Parse("gone"), Id(1), {}, "one")) &&
                         (*store)->DeleteChat(*ChatId::Parse("gone"));
      ::umask(before);
      REQUIRE(saved);
    }
    for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
      CAPTURE(entry.path().string(), mask);
      CHECK(ModeOf(entry.path()) == (entry.is_directory() ? 0700 : 0600));
    }
  }
}

TEST_CASE("FileInteractionStore: a sealed folder contains no word of the user", "[store]") {
  DataFolder data;
  REQUIRE(data.store->SaveInteraction(Sample(1, {}, "canary-5309")));
  REQUIRE(data.store->ChangeChat(Chat1(), {.title = "canary-5309"}));
  data.Close();
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(data.root())) {
    if (!entry.is_regular_file()) continue;
    ++files;
    CHECK(data.Read(entry.path()).find("canary") == std::string::npos);
  }
  CHECK(files == 3);  // .lock, chat.json, int_001.json and no temporary file
}

TEST_CASE("FileInteractionStore: a plain folder holds the JSON as it is", "[store]") {
  DataFolder data(nullptr);
  REQUIRE(data.store->SaveInteraction(Sample(1, {}, "one")));
  data.Close();
  CHECK(data.Read(data.Interaction(1)) == DumpJson(ToJson(Sample(1, {}, "one"))));
  const Json index = Json::parse(data.Read(data.ChatJson()));
  CHECK(index["schema"] == 1);
  CHECK(index["id"] == "chat1");
  CHECK(index["head"] == "int_001");
  CHECK(index["last"] == 1);
  CHECK(index["leaves"][0]["id"] == "int_001");
}

TEST_CASE("FileInteractionStore: the protected header binds a file to its place and its parent", "[store]") {
  DataFolder data;
  data.SaveThree();
  const auto header = ReadJweHeader(data.Read(data.Interaction(2)));
  REQUIRE(header);
  CHECK(*header == Json{{"alg", "A256KW"},
                        {"enc", "A256GCM"},
                        {"typ", "reprise/interaction"},
                        {"ver", 1},
                        {"chat_id", "chat1"},
                        {"interaction_id", "int_002"},
                        {"parent_id", "int_001"},
                        {"parent_digest", *RecordDigest(data.Read(data.Interaction(1)))}});
}

TEST_CASE("FileInteractionStore: a second server in the folder is refused", "[store]") {
  DataFolder data;
  PosixFileSystem disk;
  const auto second = FileInteractionStore::Open({.root = data.root(), .keys = data.keys, .file_system = disk});
  CHECK(ReasonOf(second) == "store_locked");
  data.Close();
  CHECK(FileInteractionStore::Open({.root = data.root(), .keys = data.keys, .file_system = disk}));
}

TEST_CASE("FileInteractionStore: chats that somebody moves by hand are in the next list", "[store]") {
  DataFolder data;
  data.SaveThree();
  const auto names = [&] {
    std::string text;
    const auto chats = data.store->ListChats();
    REQUIRE(chats);
    for (const ChatSummary& chat : *chats) text += chat.id.str() + " ";
    return text;
  };
  CHECK(names() == "chat1 ");
  const fs::path there = ChatDirectory(data.root(), Chat1()), away = data.folder.File("away");
  fs::rename(there, away);
  CHECK(names().empty());
  fs::rename(away, there);
  CHECK(names() == "chat1 ");
  const ChatId other = *ChatId::Parse("another");
  REQUIRE(data.store->CreateChat(other, {.title = "Other"}));
  CHECK(names() == "chat1 another ");  // the samples are of the year 2100
  fs::remove_all(ChatDirectory(data.root(), other));
  CHECK(names() == "chat1 ");
}

TEST_CASE("FileInteractionStore: a reader sees the saves of a server and writes nothing", "[store]") {
  DataFolder data;
  data.SaveThree();
  const auto reader = FileInteractionStore::Open(
      {.root = data.root(), .keys = data.keys, .file_system = data.disk, .access = Access::kReadOnly});
  REQUIRE(reader);
  CHECK((*reader)->LoadSummary(Chat1())->head == Id(3));
  REQUIRE(data.store->SaveInteraction(Sample(4, 3, "four")));
  CHECK((*reader)->LoadSummary(Chat1())->head == Id(4));
  CHECK((*reader)->LoadChat(Chat1())->interactions.size() == 4);
  CHECK((*reader)->ListChats()->size() == 1);
  CHECK((*reader)->SaveInteraction(Sample(5, 4, "five")).error().code == ErrorCode::kForbidden);
  CHECK((*reader)->ReserveInteraction(Chat1()).error().code == ErrorCode::kForbidden);
  CHECK((*reader)->DeleteChat(Chat1()).error().code == ErrorCode::kForbidden);
  const auto nowhere = FileInteractionStore::Open(
      {.root = data.root() + "/nowhere", .keys = data.keys, .file_system = data.disk, .access = Access::kReadOnly});
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().code == ErrorCode::kNotFound);
}

TEST_CASE("FileInteractionStore: a stored file never changes again", "[store]") {
  DataFolder data;
  data.SaveThree();
  const std::string before = data.Read(data.Interaction(2));
  REQUIRE(data.store->MoveHead(Chat1(), Id(1)));
  REQUIRE(data.store->SaveInteraction(Sample(4, 1, "edited")));
  REQUIRE(data.store->SaveInteraction(Sample(2, 1, "two")));
  data.Open();
  REQUIRE(data.store->SaveInteraction(Sample(2, 1, "two")));
  CHECK(data.Read(data.Interaction(2)) == before);
}

TEST_CASE("FileInteractionStore: each kind of damage has its name, and the neighbours stay readable", "[store]") {
  DataFolder data;
  data.SaveThree();
  REQUIRE(data.store->SaveInteraction(Sample(*ChatId::Parse("chat2"), Id(2), {}, "elsewhere")));
  data.Close();
  const std::string good = data.Read(data.Interaction(2));
  const auto check = [&](const std::string& text, const std::string& reason) {
    data.Write(data.Interaction(2), text);
    data.Open();
    const auto loaded = data.store->LoadInteraction(Chat1(), Id(2));
    CHECK(ReasonOf(loaded) == reason);
    if (!loaded) {
      CHECK(loaded.error().code == ErrorCode::kCorruption);
      CHECK(loaded.error().message.starts_with("chat1/interactions/int_002.json: "));
      CHECK(loaded.error().details_json == R"({"file":"chat1/interactions/int_002.json"})");
    }
    const auto chat = data.store->LoadChat(Chat1());
    REQUIRE(chat);
    REQUIRE(chat->damaged.size() == 1);
    CHECK(chat->damaged[0].id == Id(2));
    CHECK(chat->damaged[0].error.reason == reason);
    CHECK(chat->interactions == std::vector{Sample(1, {}, "one"), Sample(3, 2, "three")});
    CHECK(data.store->LoadInteraction(Chat1(), Id(3)) == Sample(3, 2, "three"));
    CHECK(ReasonOf(data.store->LoadPreviousState(Chat1(), Id(3))) == reason);
    CHECK(data.store->ListChats()->size() == 2);
    data.Close();
    CHECK(data.Read(data.Interaction(2)) == text);  // nothing damaged is rewritten
  };
  std::string flipped = good;
  const std::size_t at = good.find("\"ciphertext\":\"") + 20;
  flipped[at] = flipped[at] == 'A' ? 'B' : 'A';
  check(flipped, "integrity_auth");
  check(good.substr(0, good.size() / 2), "integrity_auth");
  check("", "integrity_auth");
  check("garbage", "integrity_auth");
  check(data.Read(data.Interaction(3)), "integrity_swap");
  check(data.Read(data.ChatJson()), "integrity_swap");
  check(data.Read(InteractionFile(data.root(), *ChatId::Parse("chat2"), Id(2))), "integrity_swap");
  check(DumpJson(ToJson(Sample(2, 1, "two"))), "integrity_plain");
  const Json header = {{"typ", "reprise/interaction"},
                       {"chat_id", "chat1"},
                       {"interaction_id", "int_002"},
                       {"parent_id", "int_001"},
                       {"parent_digest", nullptr}};
  Json next_version = header;
  next_version["ver"] = 2;
  check(*SealJwe(next_version, "{}", *data.keys), "integrity_version");
  Json next_schema = ToJson(Sample(2, 1, "two"));
  next_schema["schema"] = 2;
  Json this_version = header;
  this_version["ver"] = 1;
  check(*SealJwe(this_version, DumpJson(next_schema), *data.keys), "integrity_version");
  check(*SealJwe(this_version, "not json", *data.keys), "integrity_auth");
  check(*SealJwe(this_version, DumpJson(ToJson(Sample(5, 1, "two"))), *data.keys), "integrity_swap");
  check(*SealJwe(this_version, good, *NewKeys()), "integrity_auth");
}

TEST_CASE("FileInteractionStore: a state that was just saved is not used if its file was changed", "[store]") {
  const ChatId chat2 = *ChatId::Parse("chat2");
  const auto check = [&](const std::string& reason, const auto& change) {
    DataFolder data;
    data.SaveThree();
    REQUIRE(data.store->SaveInteraction(Sample(chat2, Id(3), {}, "elsewhere")));
    change(data);
    CHECK(ReasonOf(data.store->LoadFinalState(Chat1(), Id(3))) == reason);
    CHECK(data.store->LoadFinalState(chat2, Id(3)).value() == Sample(chat2, Id(3), {}, "elsewhere").final_agent_state);
  };
  check("integrity_auth", [](DataFolder& data) {
    std::string text = data.Read(data.Interaction(3));
    const std::size_t at = text.find("\"encrypted_key\":\"") + 20;
    text[at] = text[at] == 'A' ? 'B' : 'A';
    data.Write(data.Interaction(3), text);
  });
  check("integrity_swap", [&](DataFolder& data) {
    data.Write(data.Interaction(3), data.Read(InteractionFile(data.root(), chat2, Id(3))));
  });
  check("integrity_missing", [](DataFolder& data) { fs::remove(data.Interaction(3)); });
}

TEST_CASE("FileInteractionStore: a state that was just saved equals its file, even with broken text", "[store]") {
  DataFolder data;
  Interaction broken = Sample(1, {}, "one");
  broken.final_agent_state->messages.push_back({.role = Role::kAssistant, .content = "a\xff"});
  REQUIRE(data.store->SaveInteraction(broken));
  CHECK(data.store->LoadFinalState(Chat1(), Id(1)).value() ==
        data.store->LoadInteraction(Chat1(), Id(1))->final_agent_state);
}

TEST_CASE("FileInteractionStore: the state of a deleted chat is not used for the next one of its name", "[store]") {
  DataFolder data;
  REQUIRE(data.store->SaveInteraction(Sample(1, {}, "one")));
  REQUIRE(data.store->DeleteChat(Chat1()));
  CHECK(data.store->LoadFinalState(Chat1(), Id(1)).error().code == ErrorCode::kNotFound);
  REQUIRE(data.store->SaveInteraction(Sample(1, {}, "another one")));
  CHECK(data.store->LoadFinalState(Chat1(), Id(1)).value() == Sample(1, {}, "another one").final_agent_state);
}

TEST_CASE("FileInteractionStore: an interaction that cannot be saved leaves no folder", "[store]") {
  DataFolder data;
  const ChatId orphan = *ChatId::Parse("orphan");
  CHECK(data.store->SaveInteraction(Sample(orphan, Id(2), Id(1), "two")).error().code == ErrorCode::kNotFound);
  CHECK_FALSE(fs::exists(ChatDirectory(data.root(), orphan)));
}

TEST_CASE("FileInteractionStore: a removed file is missing if the index or another file names it", "[store]") {
  for (const std::uint32_t gone : {1, 2, 3}) {
    DataFolder data;
    data.SaveThree();
    data.Close();
    fs::remove(data.Interaction(gone));
    data.Open();
    CHECK(ReasonOf(data.store->LoadInteraction(Chat1(), Id(gone))) == "integrity_missing");
    CHECK(data.store->LoadInteraction(Chat1(), Id(9)).error().code == ErrorCode::kNotFound);
    const auto chat = data.store->LoadChat(Chat1());
    REQUIRE(chat);
    REQUIRE(chat->damaged.size() == 1);
    CHECK(chat->damaged[0].id == Id(gone));
    CHECK(chat->damaged[0].error.reason == "integrity_missing");
    CHECK(chat->interactions.size() == 2);
    CHECK(data.store->ReserveInteraction(Chat1()) == Id(4));
  }
}

TEST_CASE("FileInteractionStore: another authentic version of a file is noticed", "[store]") {
  for (const std::uint32_t replaced : {1, 3}) {  // a parent, and the leaf that only chat.json knows
    DataFolder data;
    data.SaveThree();
    data.Close();
    DataFolder other(data.keys);
    REQUIRE(other.store->SaveInteraction(Sample(1, {}, "another one")));
    REQUIRE(other.store->SaveInteraction(Sample(2, 1, "another two")));
    REQUIRE(other.store->SaveInteraction(Sample(3, 2, "another three")));
    data.Write(data.Interaction(replaced), other.Read(other.Interaction(replaced)));
    data.Open();
    const auto chat = data.store->LoadChat(Chat1());
    REQUIRE(chat);
    REQUIRE(chat->damaged.size() == 1);
    CHECK(chat->damaged[0].id == Id(replaced));
    CHECK(chat->damaged[0].error.reason == "integrity_rollback");
    if (replaced == 1) CHECK(ReasonOf(data.store->LoadPreviousState(Chat1(), Id(2))) == "integrity_rollback");
  }
}

TEST_CASE("FileInteractionStore: sealed data in a plain folder is named", "[store]") {
  DataFolder sealed, plain(nullptr);
  sealed.SaveThree();
  plain.SaveThree();
  plain.Close();
  plain.Write(plain.Interaction(2), sealed.Read(sealed.Interaction(2)));
  plain.Open();
  CHECK(ReasonOf(plain.store->LoadInteraction(Chat1(), Id(2))) == "integrity_sealed");
  CHECK(plain.store->LoadInteraction(Chat1(), Id(1)));
  plain.Write(plain.Interaction(1), plain.Read(plain.Interaction(3)).substr(0, 50));
  CHECK(ReasonOf(plain.store->LoadInteraction(Chat1(), Id(1))) == "integrity_auth");
}

TEST_CASE("FileInteractionStore: a chat.json that is missing or cut off is rebuilt", "[store]") {
  for (const int cut : {0, 1, 2}) {
    DataFolder data;
    data.SaveThree();
    data.Close();
    const std::string good = data.Read(data.ChatJson());
    if (cut == 0) fs::remove(data.ChatJson());
    if (cut == 1) data.Write(data.ChatJson(), good.substr(0, good.size() / 2));
    if (cut == 2) data.Write(data.ChatJson(), "");
    data.Open();
    const auto summary = data.store->LoadSummary(Chat1());
    REQUIRE(summary);
    CHECK(summary->title == "one");
    CHECK(summary->head == Id(3));
    CHECK(summary->created_at == At(10));
    CHECK(summary->updated_at == At(31));
    REQUIRE(data.store->SaveInteraction(Sample(4, 3, "four")));
    data.Open();
    CHECK(data.store->LoadSummary(Chat1())->head == Id(4));
    CHECK(data.store->LoadChat(Chat1())->damaged.empty());
    // An unreadable index was set aside, not overwritten.
    std::size_t aside = 0;
    for (const auto& entry : fs::directory_iterator(ChatDirectory(data.root(), Chat1()))) {
      aside += entry.path().filename().string().starts_with("chat.json.damaged.") ? 1 : 0;
    }
    CHECK(aside == (cut == 0 ? 0 : 1));
  }
}

TEST_CASE("FileInteractionStore: a chat is as old as its first interaction, with chat.json or without", "[store]") {
  DataFolder data;
  data.Open();
  Interaction first = Sample(1, std::nullopt, "one");
  first.created_at = first.completed_at.emplace(Now() + std::chrono::hours(1));
  REQUIRE(data.store->ReserveInteraction(Chat1()) == Id(1));
  REQUIRE(data.store->SaveInteraction(first));
  CHECK(data.store->LoadSummary(Chat1())->created_at == first.created_at);
  data.Close();
  fs::remove(data.ChatJson());
  data.Open();
  CHECK(data.store->LoadSummary(Chat1())->created_at == first.created_at);
}

TEST_CASE("FileInteractionStore: a damaged chat.json is an error, but its interactions can be read", "[store]") {
  DataFolder data;
  data.SaveThree();
  REQUIRE(data.store->SaveInteraction(Sample(*ChatId::Parse("chat2"), Id(1), {}, "elsewhere")));
  data.Close();
  const std::string good = data.Read(data.ChatJson());
  const auto check = [&](const std::string& text, const std::string& reason) {
    data.Write(data.ChatJson(), text);
    data.Open();
    CHECK(ReasonOf(data.store->LoadSummary(Chat1())) == reason);
    CHECK(ReasonOf(data.store->LoadChat(Chat1())) == reason);
    CHECK(ReasonOf(data.store->ReserveInteraction(Chat1())) == reason);
    CHECK(ReasonOf(data.store->SaveInteraction(Sample(4, 3, "four"))) == reason);
    CHECK(data.store->LoadInteraction(Chat1(), Id(3)) == Sample(3, 2, "three"));
    CHECK(data.store->LoadPreviousState(Chat1(), Id(3)).value() == Sample(2, 1, "two").final_agent_state);
    CHECK(data.store->ListChats()->size() == 1);
    data.Close();
    CHECK(data.Read(data.ChatJson()) == text);
  };
  std::string flipped = good;
  const std::size_t at = good.find("\"ciphertext\":\"") + 20;
  flipped[at] = flipped[at] == 'A' ? 'B' : 'A';
  check(flipped, "integrity_auth");
  check(data.Read(ChatFile(data.root(), *ChatId::Parse("chat2"))), "integrity_swap");
  check(R"({"schema":1})", "integrity_plain");
  data.Open();
  CHECK(data.store->DeleteChat(Chat1()));  // it can still be deleted
  CHECK(data.store->LoadSummary(Chat1()).error().code == ErrorCode::kNotFound);
}

TEST_CASE("FileInteractionStore: an older chat.json is updated from the newer files", "[store]") {
  DataFolder data;
  REQUIRE(data.store->SaveInteraction(Sample(1, {}, "one")));
  data.Open();
  data.Close();
  const std::string old = data.Read(data.ChatJson());
  data.Open();
  REQUIRE(data.store->SaveInteraction(Sample(2, 1, "two")));
  REQUIRE(data.store->SaveInteraction(Sample(3, 1, "edited")));
  data.Close();
  data.Write(data.ChatJson(), old);
  data.Open();
  CHECK(data.store->LoadSummary(Chat1())->head == Id(3));
  CHECK(data.store->LoadSummary(Chat1())->updated_at == At(31));
  CHECK(data.store->LoadChat(Chat1())->damaged.empty());
}

TEST_CASE("FileInteractionStore: a garbage file after the last one does not stop the chat", "[store]") {
  DataFolder data;
  data.SaveThree();
  data.Close();
  data.Write(data.Interaction(7), "garbage");
  data.Open();
  CHECK(data.store->LoadSummary(Chat1())->head == Id(3));
  CHECK(data.store->LoadChat(Chat1())->damaged.size() == 1);
  CHECK(data.store->ReserveInteraction(Chat1()) == Id(8));
  REQUIRE(data.store->SaveInteraction(Sample(8, 3, "goes on")));
  data.Open();
  CHECK(data.store->LoadSummary(Chat1())->head == Id(8));
}

TEST_CASE("FileInteractionStore: leftovers and foreign files are ignored", "[store]") {
  DataFolder data;
  data.SaveThree();
  data.Write(data.root() + "/notes.txt", "mine");
  data.Write(data.root() + "/a-file-like-a-chat", "mine");
  fs::create_directory(data.root() + "/not a chat");
  fs::create_directory(data.root() + "/empty");
  fs::create_directory(data.Interaction(9));
  data.Write(data.root() + "/chat1/interactions/.int_004.json.0011223344556677.tmp", "half");
  data.Write(data.root() + "/chat1/.chat.json.0011223344556677.tmp", "half");
  data.Open();
  CHECK(data.store->ListChats()->size() == 1);
  CHECK(data.store->LoadChat(Chat1())->interactions.size() == 3);
  CHECK(data.store->LoadChat(Chat1())->damaged.empty());
  CHECK(data.store->LoadSummary(*ChatId::Parse("empty")).error().code == ErrorCode::kNotFound);
  CHECK(data.store->CreateChat(*ChatId::Parse("empty"), {.title = "now it is one"}));
  CHECK(fs::exists(data.root() + "/notes.txt"));
}

TEST_CASE("FileInteractionStore: the first turn in a chat removes temporary files of a killed server", "[store]") {
  DataFolder data;
  data.SaveThree();
  const std::string interactions = data.root() + "/chat1/interactions/";
  data.Write(interactions + ".int_004.json.0011223344556677.tmp", "half");
  data.Write(interactions + ".mine", "kept");
  data.Open();
  REQUIRE(data.store->ReserveInteraction(Chat1()) == Id(4));
  REQUIRE(data.store->SaveInteraction(Sample(4, 3, "four")));
  data.Close();
  CHECK_FALSE(fs::exists(interactions + ".int_004.json.0011223344556677.tmp"));
  CHECK(fs::exists(interactions + ".mine"));
}

TEST_CASE("FileInteractionStore: a number that was reserved and never saved leaves nothing behind", "[store]") {
  DataFolder data;
  data.SaveThree();
  REQUIRE(data.store->ReserveInteraction(Chat1()) == Id(4));
  REQUIRE(data.store->ReserveInteraction(Chat1()) == Id(5));
  REQUIRE(data.store->SaveInteraction(Sample(5, 3, "five")));
  data.Close();
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(data.root() + "/chat1/interactions")) {
    names.insert(entry.path().filename());
  }
  CHECK(names == std::set<std::string>{"int_001.json", "int_002.json", "int_003.json", "int_005.json"});
}

TEST_CASE("FileInteractionStore: a deleted chat lies in the trash as it was", "[store]") {
  DataFolder data;
  data.SaveThree();
  const std::string bytes = data.Read(data.Interaction(2));
  REQUIRE(data.store->DeleteChat(Chat1()));
  std::size_t found = 0;
  for (const auto& entry : fs::directory_iterator(TrashDirectory(data.root()))) {
    ++found;
    CHECK(entry.path().filename().string().starts_with("chat1."));
    CHECK(data.Read(entry.path() / "interactions" / "int_002.json") == bytes);
  }
  CHECK(found == 1);
}

TEST_CASE("FileInteractionStore: a call for an unknown chat leaves no trace", "[store]") {
  DataFolder data;
  for (int i = 0; i < 100; ++i) CHECK_FALSE(data.store->LoadSummary(ChatId::Random()));
  CHECK_FALSE(data.store->DeleteChat(Chat1()));
  std::size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(data.root())) ++entries;
  CHECK(entries == 1);  // .lock
}

TEST_CASE("FileInteractionStore: a full disk is storage_full, and the chat continues when there is room", "[store]") {
  MemoryFileSystem disk;
  // In the second save, after the first index.
  FaultyFileSystem faulty(disk, {.at = 25, .code = ErrorCode::kStorageFull});
  const auto store = FileInteractionStore::Open({.root = "/chats",
                                                 .keys = NewKeys(),
                                                 .file_system = faulty,
                                                 .lock = false,
                                                 .index_delay = std::chrono::hours(1)});
  REQUIRE(store);
  std::uint32_t failed = 0, last = 0;
  for (std::uint32_t number = 1; number <= 8; ++number) {
    const auto parent = last == 0 ? std::nullopt : std::optional(last);
    const auto saved = (*store)->SaveInteraction(Sample(number, parent, "text"));
    if (saved) {
      last = number;
    } else {
      ++failed;
      CHECK(saved.error().code == ErrorCode::kStorageFull);
      CHECK(saved.error().reason == "storage_full");
    }
  }
  CHECK(failed == 1);
  CHECK((*store)->LoadSummary(Chat1())->head == Id(8));
  CHECK((*store)->LoadChat(Chat1())->interactions.size() == 7);
}

TEST_CASE("FileInteractionStore: many saves cost few writes of chat.json", "[store]") {
  MemoryFileSystem disk;
  {
    const auto store = FileInteractionStore::Open({.root = "/chats",
                                                   .keys = NewKeys(),
                                                   .file_system = disk,
                                                   .lock = false,
                                                   .index_delay = std::chrono::hours(1)});
    REQUIRE(store);
    for (std::uint32_t n = 1; n <= 50; ++n) REQUIRE((*store)->SaveInteraction(Sample(n, {}, "text")));
  }
  std::size_t writes = 0;
  for (const std::string& call : disk.operations()) writes += call.ends_with(" /chats/chat1/chat.json") ? 1 : 0;
  CHECK(writes >= 1);
  CHECK(writes <= 2);  // the first one at once, so that it exists, and one for all later saves
}

TEST_CASE("ReadRecordFile: it opens a file wherever it lies", "[store]") {
  DataFolder data;
  data.SaveThree();
  const std::string elsewhere = data.folder.File("copy.json");
  fs::copy_file(data.Interaction(2), elsewhere);
  const auto record = ReadRecordFile(elsewhere, data.keys.get(), data.disk);
  REQUIRE(record);
  CHECK(record->plaintext == DumpJson(ToJson(Sample(2, 1, "two"))));
  CHECK(Json::parse(record->protected_header)["interaction_id"] == "int_002");
  CHECK(record->kid == data.keys->current().kid);
  CHECK(ReasonOf(ReadRecordFile(elsewhere, nullptr, data.disk)) == "key_needed");
  CHECK(ReasonOf(ReadRecordFile(elsewhere, NewKeys().get(), data.disk)) == "integrity_auth");
  data.Write(elsewhere, R"({"schema":1})");
  CHECK(ReadRecordFile(elsewhere, nullptr, data.disk)->plaintext == R"({"schema":1})");
  data.Write(elsewhere, "text");
  CHECK(ReadRecordFile(elsewhere, nullptr, data.disk).error().code == ErrorCode::kCorruption);
}

TEST_CASE("FileInteractionStore: Debian's jose opens a checkpoint with the key file", "[store][interop]") {
  if (std::system("command -v jose >/dev/null 2>&1") != 0) {
    WARN("jose is not installed");
    return;
  }
  TempDirectory folder;
  PosixFileSystem disk;
  auto keys = LoadOrCreateKeyFile(folder.File("keys.jwks"), disk);
  REQUIRE(keys);
  DataFolder data(std::make_shared<const KeySet>(*std::move(keys)));
  data.SaveThree();
  const std::string command = "jose jwe dec -i " + data.Interaction(3) + " -k " + folder.File("keys.jwks") + " -O " +
                              folder.File("opened.json");
  REQUIRE(std::system(command.c_str()) == 0);
  CHECK(data.Read(folder.File("opened.json")) == DumpJson(ToJson(Sample(3, 2, "three"))));
}

TEST_CASE("FileInteractionStore: speed", "[.benchmark]") {
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin;
  std::clock_t cpu_begin = 0;
  const auto start = [&] { begin = Clock::now(), cpu_begin = std::clock(); };
  const auto report = [&](const char* what, int runs) {
    const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
    const double cpu = static_cast<double>(std::clock() - cpu_begin) * 1e6 / CLOCKS_PER_SEC;
    std::printf("%-44s %9.1f us, CPU %9.1f us\n", what, took.count() / runs, cpu / runs);
  };
  DataFolder data;
  const std::string kilobyte(1000, 'x');
  REQUIRE(data.store->SaveInteraction(Sample(1, {}, kilobyte)));
  constexpr int kRuns = 500;
  // The cost of the disk alone, as a yardstick for the next two lines.
  start();
  for (int i = 0; i < kRuns; ++i) {
    REQUIRE(ReplaceFile(data.disk, data.folder.File("bare" + std::to_string(i)), std::string(3000, 'x')));
    REQUIRE(data.disk.SyncDirectory(data.folder.path()));
  }
  report("bare durable file of 3 KB", kRuns);
  start();
  for (int i = 2; i < kRuns + 2; ++i) {
    REQUIRE(data.store->SaveInteraction(
        Sample(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i) - 1, kilobyte)));
  }
  report("save into an existing chat, 1 KB", kRuns);
  start();
  for (int i = 0; i < kRuns; ++i) {
    const ChatId chat = *ChatId::Parse("new" + std::to_string(i));
    REQUIRE(data.store->SaveInteraction(Sample(chat, *data.store->ReserveInteraction(chat), {}, kilobyte)));
  }
  report("reserve and save in a new chat, 1 KB", kRuns);
  const ChatId large = *ChatId::Parse("large");
  Interaction big = Sample(large, Id(1), {}, "big");
  for (int i = 0; i < 1000; ++i) {
    big.final_agent_state->messages.push_back(
        {.role = Role::kTool, .content = kilobyte, .tool_calls = {}, .tool_call_id = "call", .name = {}, .extras = {}});
  }
  start();
  REQUIRE(data.store->SaveInteraction(big));
  report("save with a state of 1 MB", 1);
  start();
  for (int i = 0; i < 20; ++i) REQUIRE(data.store->LoadInteraction(large, Id(1)));
  report("load with a state of 1 MB", 20);
  start();
  REQUIRE(data.store->ListChats()->size() == kRuns + 2);
  report("list chats, each (in memory)", kRuns);
  data.Open();
  start();
  REQUIRE(data.store->ListChats()->size() == kRuns + 2);
  report("list chats, each (first time)", kRuns);
}

}  // namespace reprise::file_interaction_store_test
