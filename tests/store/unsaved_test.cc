#include "store/unsaved.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/posix_file_system.h"
#include "store/data_folder.h"
#include "store/file_interaction_store.h"
#include "store/file_names.h"
#include "store/memory_interaction_store.h"
#include "store/sample.h"
#include "support/memory_file_system.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::unsaved_test {
namespace fs = std::filesystem;

TEST_CASE("Unsaved: a fallback that is never needed leaves no litter", "[store]") {
  const TempDirectory temp;
  PosixFileSystem disk;
  const auto store = OpenUnsavedStore(temp.File("unsaved"), nullptr, disk);
  CHECK(store->LoadSummary(Chat1()).error().code == ErrorCode::kNotFound);
  CHECK(store->ListChats()->empty());
  CHECK(fs::is_empty(temp.path()));
}

TEST_CASE("Unsaved: an interaction is accepted without its parent and brought home", "[store]") {
  const TempDirectory temp;
  PosixFileSystem disk;
  const std::string folder = temp.File("state/unsaved");
  const auto keys = std::make_shared<const KeySet>(KeySet::Generate());
  MemoryInteractionStore home;
  REQUIRE(home.SaveInteraction(Sample(1, {}, "one")));
  {
    const auto unsaved = OpenUnsavedStore(folder, keys, disk);
    REQUIRE(unsaved->SaveInteraction(Sample(2, 1, "two")));
    REQUIRE(unsaved->SaveInteraction(Sample(3, 2, "three")));
    CHECK(unsaved->LoadInteraction(Chat1(), Id(2)) == Sample(2, 1, "two"));
  }
  const auto brought = BringHome(folder, keys, disk, home);
  REQUIRE(brought);
  CHECK(brought->moved == 2);
  CHECK(brought->left == 0);
  CHECK(home.LoadChat(Chat1())->interactions ==
        std::vector{Sample(1, {}, "one"), Sample(2, 1, "two"), Sample(3, 2, "three")});
  CHECK(home.LoadSummary(Chat1())->head == Id(3));
  CHECK(fs::is_empty(folder));
  CHECK(BringHome(folder, keys, disk, home)->moved == 0);
}

TEST_CASE("Unsaved: an interaction that is at home already can be brought home again", "[store]") {
  const TempDirectory temp;
  PosixFileSystem disk;
  const std::string folder = temp.File("unsaved");
  MemoryInteractionStore home;
  REQUIRE(home.SaveInteraction(Sample(1, {}, "one")));
  REQUIRE(OpenUnsavedStore(folder, nullptr, disk)->SaveInteraction(Sample(1, {}, "one")));
  CHECK(BringHome(folder, nullptr, disk, home)->moved == 1);
  CHECK(home.LoadChat(Chat1())->interactions.size() == 1);
}

TEST_CASE("Unsaved: an interaction that comes home late does not become the head", "[store]") {
  const TempDirectory temp;
  PosixFileSystem disk;
  const std::string folder = temp.File("unsaved");
  MemoryInteractionStore home;
  REQUIRE(home.SaveInteraction(Sample(1, {}, "one")));
  REQUIRE(home.SaveInteraction(Sample(3, 1, "later")));
  REQUIRE(OpenUnsavedStore(folder, nullptr, disk)->SaveInteraction(Sample(2, 1, "two")));
  CHECK(BringHome(folder, nullptr, disk, home)->moved == 1);
  CHECK(home.LoadSummary(Chat1())->head == Id(3));
  CHECK(home.LoadInteraction(Chat1(), Id(2)));
}

TEST_CASE("Unsaved: an interaction that comes home does not undo a move of the head", "[store]") {
  const TempDirectory temp;
  PosixFileSystem disk;
  const std::string folder = temp.File("unsaved");
  MemoryInteractionStore home;
  REQUIRE(home.SaveInteraction(Sample(1, {}, "one")));
  REQUIRE(home.SaveInteraction(Sample(2, 1, "two")));
  REQUIRE(OpenUnsavedStore(folder, nullptr, disk)->SaveInteraction(Sample(3, 2, "three")));
  REQUIRE(home.MoveHead(Chat1(), Id(1)));
  CHECK(BringHome(folder, nullptr, disk, home)->moved == 1);
  CHECK(home.LoadSummary(Chat1())->head == Id(1));
  CHECK(home.LoadInteraction(Chat1(), Id(3)));
}

TEST_CASE("Unsaved: an interaction that reached the disk after all, too late, does not stay", "[store]") {
  const TempDirectory temp;
  PosixFileSystem disk;
  const std::string folder = temp.File("unsaved");
  MemoryInteractionStore home;
  const Interaction saved = Sample(1, {}, "one");
  REQUIRE(home.SaveInteraction(saved));
  Interaction reported = saved;
  reported.status = InteractionStatus::kFailed;
  reported.error = InteractionError{"save_timeout", "the checkpoint could not be written in time", false};
  reported.events.push_back({.seq = 3,
                             .round_index = 0,
                             .at = saved.created_at,
                             .payload = event::Failed{.code = "save_timeout", .message = "late", .retryable = false}});
  REQUIRE(OpenUnsavedStore(folder, nullptr, disk)->SaveInteraction(reported));
  const auto brought = BringHome(folder, nullptr, disk, home);
  REQUIRE(brought);
  CHECK(brought->left == 0);
  CHECK(fs::is_empty(folder));
  CHECK(home.LoadInteraction(Chat1(), Id(1)) == saved);
}

TEST_CASE("Unsaved: an interaction that cannot be placed stays", "[store]") {
  const TempDirectory temp;
  PosixFileSystem disk;
  const std::string folder = temp.File("unsaved");
  MemoryInteractionStore home;
  REQUIRE(home.SaveInteraction(Sample(1, {}, "one")));
  const auto unsaved = OpenUnsavedStore(folder, nullptr, disk);
  REQUIRE(unsaved->SaveInteraction(Sample(1, {}, "the number was used again")));
  REQUIRE(unsaved->SaveInteraction(Sample(9, 8, "its parent is gone")));
  const auto brought = BringHome(folder, nullptr, disk, home);
  REQUIRE(brought);
  CHECK(brought->moved == 0);
  CHECK(brought->left == 2);
  CHECK(fs::exists(InteractionFile(folder, Chat1(), Id(1))));
  CHECK(fs::exists(InteractionFile(folder, Chat1(), Id(9))));
  CHECK(home.LoadInteraction(Chat1(), Id(1)) == Sample(1, {}, "one"));
}

TEST_CASE("Unsaved: a folder that everybody may change is not used", "[store]") {
  const TempDirectory temp;
  PosixFileSystem disk;
  const std::string open = temp.File("open");
  REQUIRE(::mkdir(open.c_str(), 0777) == 0);
  REQUIRE(::chmod(open.c_str(), 0777) == 0);
  const auto saved = OpenUnsavedStore(open + "/unsaved", nullptr, disk)->SaveInteraction(Sample(1, {}, "one"));
  REQUIRE_FALSE(saved);
  CHECK(saved.error().reason == "folder_not_private");
  CHECK_FALSE(fs::exists(open + "/unsaved"));
  // The same for one that another user may have made.
  REQUIRE(fs::create_directory(open + "/unsaved"));
  MemoryInteractionStore home;
  CHECK(BringHome(open + "/unsaved", nullptr, disk, home).error().reason == "folder_not_private");
  REQUIRE(::chmod(open.c_str(), 01777) == 0);  // as /tmp is
  CHECK(CheckPrivateDirectory(open + "/unsaved"));
}

TEST_CASE("Unsaved: each data folder has fallback folders of its own", "[store]") {
  const auto a = UnsavedFolders("/data/a"), b = UnsavedFolders("/data/b");
  CHECK(a[0] != b[0]);
  CHECK(a[1] != b[1]);
  CHECK(a[0] != a[1]);
  CHECK(a == UnsavedFolders("/data/../data/a"));
  CHECK(a[0].find("/reprise/unsaved/") != std::string::npos);
  CHECK(a[1].find("/reprise-" + std::to_string(::getuid()) + "/unsaved/") != std::string::npos);
}

TEST_CASE("Unsaved: a missing folder has nothing to bring home", "[store]") {
  MemoryFileSystem disk;
  MemoryInteractionStore home;
  const auto brought = BringHome("/nowhere/unsaved", nullptr, disk, home);
  REQUIRE(brought);
  CHECK(brought->moved == 0);
}

}  // namespace reprise::unsaved_test
