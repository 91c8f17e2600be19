#include "store/chat_list.h"

#include <atomic>

#include "support/test.h"

namespace reprise::chat_list_test {
namespace {

Timestamp At(int ms) { return Timestamp(std::chrono::milliseconds(ms)); }

// Chats that change behind the list, which counts what it looks at.
struct Folder {
  class Watch final : public DirectoryWatch {
   public:
    explicit Watch(Folder& folder) : folder_(folder) {}
    std::optional<std::vector<Change>> Take() override {
      if (folder_.is_lost) return std::nullopt;
      return std::exchange(folder_.changes, {});
    }

   private:
    Folder& folder_;
  };

  std::map<ChatId, Result<ChatSummary>> chats;
  std::map<ChatId, std::int64_t> versions;
  std::vector<DirectoryWatch::Change> changes;
  bool is_watched = true, is_lost = false, is_there = true;
  int lists = 0;
  std::atomic<int> loads = 0;
  ChatList list{{.list = [this]() -> Result<std::vector<ChatVersion>> {
                   ++lists;
                   if (!is_there) return Fail(ErrorCode::kUnavailable, "the folder is gone");
                   std::vector<ChatVersion> ids;
                   for (const auto& [id, chat] : chats) ids.emplace_back(id, versions[id]);
                   return ids;
                 },
                 .load =
                     [this](const ChatId& id) {
                       ++loads;
                       return chats.at(id);
                     },
                 .watch = [this]() -> std::unique_ptr<DirectoryWatch> {
                   is_lost = false;
                   return is_watched ? std::make_unique<Watch>(*this) : nullptr;
                 }}};

  static ChatId Named(const std::string& name) { return *ChatId::Parse(name); }
  void Put(const std::string& name, int ms) {
    chats.insert_or_assign(Named(name), ChatSummary{.id = Named(name), .title = {}, .updated_at = At(ms)});
  }
  void Appear(const std::string& name, int ms) {
    Put(name, ms);
    changes.push_back({name, true});
  }
  void Vanish(const std::string& name) {
    chats.erase(Named(name));
    changes.push_back({name, false});
  }
  std::string Page(const std::optional<ChatPlace>& after = {}, std::size_t limit = 100) {
    const auto page = list.Page(after, limit, {});
    REQUIRE(page);
    std::string names;
    for (const ChatSummary& each : page->chats) names += each.id.str() + " ";
    return names + (page->more ? "..." : "");
  }
};

}  // namespace

TEST_CASE("ChatList: pages go on behind a place, whether a chat is there or not", "[store]") {
  Folder folder;
  folder.Put("a", 1), folder.Put("b", 3), folder.Put("c", 3), folder.Put("d", 2), folder.Put("running", 0);
  CHECK(folder.Page() == "running b c d a ");
  CHECK(folder.Page({}, 3) == "running b c ...");
  CHECK(folder.Page(ChatPlace{At(3), Folder::Named("c")}, 1) == "d ...");
  CHECK(folder.Page(ChatPlace{At(2), Folder::Named("d")}, 1) == "a ");
  CHECK(folder.Page(ChatPlace{At(2), Folder::Named("gone")}) == "a ");
  CHECK(folder.Page(ChatPlace{At(1), Folder::Named("a")}) == "");
  CHECK(folder.list.All()->size() == 5);
}

TEST_CASE("ChatList: only what has changed is read again", "[store]") {
  Folder folder;
  for (int i = 0; i < 1000; ++i) folder.Put("c" + std::to_string(i), 1000 + i);
  CHECK(folder.Page({}, 2) == "c999 c998 ...");
  CHECK(folder.loads == 1000);
  folder.Put("c0", 5000);
  CHECK(folder.Page({}, 2) == "c999 c998 ...");
  folder.list.Touch(Folder::Named("c0"));
  CHECK(folder.Page({}, 2) == "c0 c999 ...");
  folder.Appear("new", 6000);
  folder.Vanish("c999");
  CHECK(folder.Page({}, 3) == "new c0 c998 ...");
  CHECK(folder.loads == 1002);
  CHECK(folder.lists == 1);
  for (int i = 0; i < 900; ++i) {
    folder.Put("c" + std::to_string(i), 10'000 + i);
    folder.list.Touch(Folder::Named("c" + std::to_string(i)));
  }
  CHECK(folder.Page({}, 2) == "c899 c898 ...");
  CHECK(folder.Page(ChatPlace{At(10'000), Folder::Named("c0")}, 3) == "new c998 c997 ...");
  CHECK(folder.list.All()->size() == 1000);
}

TEST_CASE("ChatList: without a watch, and after changes that it lost, the folder is listed", "[store]") {
  Folder folder;
  folder.is_watched = GENERATE(true, false);
  folder.Put("a", 1), folder.Put("b", 2);
  CHECK(folder.Page() == "b a ");
  folder.chats.erase(Folder::Named("b"));
  folder.Put("c", 3);
  folder.is_lost = true;
  CHECK(folder.Page() == "c a ");
  CHECK(folder.loads == 3);
  folder.is_lost = true;
  folder.is_there = false;
  folder.list.Touch(Folder::Named("a"));
  CHECK_FALSE(folder.list.Page({}, 1, {}));
  folder.is_there = true;
  folder.Put("a", 9);
  CHECK(folder.Page() == "a c ");
}

TEST_CASE("ChatList: without a watch, only chats of another version are read again", "[store]") {
  Folder folder;
  folder.is_watched = false;
  for (int i = 0; i < 5; ++i) folder.Put("c" + std::to_string(i), 10 + i);
  CHECK(folder.Page({}, 2) == "c4 c3 ...");
  CHECK(folder.Page({}, 2) == "c4 c3 ...");
  CHECK(folder.loads == 5);
  folder.Put("c1", 99);
  ++folder.versions[Folder::Named("c1")];
  CHECK(folder.Page({}, 2) == "c1 c4 ...");
  CHECK(folder.Page({}, 2) == "c1 c4 ...");
  CHECK(folder.loads == 6);
  // An older version is another one, too: another chat may have the name now.
  folder.Put("c1", 1);
  --folder.versions[Folder::Named("c1")];
  CHECK(folder.Page(ChatPlace{At(10), Folder::Named("c0")}) == "c1 ");
}

TEST_CASE("ChatList: chats that go, come back and come anew at once are what is there then", "[store]") {
  const int count = GENERATE(4, 2000);
  Folder folder;
  const auto name = [](int i) { return "c" + std::to_string(i); };
  for (int i = 0; i < count; ++i) folder.Put(name(i), 1000 + i);
  CHECK(folder.list.All()->size() == static_cast<std::size_t>(count));
  for (int i = 1; i < count; ++i) folder.Vanish(name(i));
  folder.Appear(name(1), 5);  // another one
  folder.Appear("brief", 9000), folder.Vanish("brief");
  folder.Appear("new", 3);
  CHECK(folder.Page() == "c0 c1 new ");
}

TEST_CASE("ChatList: a chat that cannot be read is tried again", "[store]") {
  Folder folder;
  folder.Put("a", 1);
  folder.chats.insert_or_assign(Folder::Named("bad"), Fail(ErrorCode::kCorruption, "it is damaged"));
  folder.chats.insert_or_assign(Folder::Named("empty"), Fail(ErrorCode::kNotFound, "no such chat"));
  CHECK(folder.Page() == "a ");
  const auto unreadable = folder.list.Unreadable();
  REQUIRE(unreadable->size() == 1);
  CHECK(unreadable->front().id == Folder::Named("bad"));
  folder.Put("bad", 2);
  CHECK(folder.Page() == "bad a ");
  CHECK(folder.list.Unreadable()->empty());
}

}  // namespace reprise::chat_list_test
