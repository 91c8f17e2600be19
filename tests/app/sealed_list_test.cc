#include "app/sealed_list.h"

#include <nlohmann/json.hpp>

#include "base/atomic_write.h"
#include "base/posix_file_system.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::sealed_list_test {
namespace {

constexpr std::size_t kMost = 1 << 20;

std::shared_ptr<const KeySet> NewKeys() { return std::make_shared<const KeySet>(KeySet::Generate()); }

}  // namespace

TEST_CASE("SealedList: keeps its entries in their order, sealed if there are keys", "[app]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  const auto keys = GENERATE(false, true) ? NewKeys() : std::shared_ptr<const KeySet>();
  SealedList list(kServersList, {disk, folder.path(), keys});
  CHECK(list.entries().empty());
  CHECK(list.is_sealed() == (keys != nullptr));
  REQUIRE(list.Write({{"b", {{"url", "a-secret-word"}}}, {"a", Json::object()}}));
  CHECK((disk.ReadFile(folder.File(".added_servers"), kMost)->find("a-secret-word") == std::string::npos) ==
        (keys != nullptr));
  const SealedList again(kServersList, {disk, folder.path(), keys});
  CHECK(again.entries() == list.entries());
  CHECK(again.entries().begin().key() == "b");
  CHECK(SealedList(kRulesList, {disk, folder.path(), keys}).entries().empty());
}

TEST_CASE("SealedList: a file that cannot be read counts as empty and is never written over", "[app]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  const auto keys = NewKeys();
  REQUIRE(SealedList(kRulesList, {disk, folder.path(), keys}).Write({{"r1", {{"tool", "echo"}}}}));
  const std::string path = folder.File(".added_rules"), whole = *disk.ReadFile(path, kMost);
  const auto check = [&](const std::shared_ptr<const KeySet>& with) {
    const std::string before = *disk.ReadFile(path, kMost);
    SealedList list(kRulesList, {disk, folder.path(), with});
    CHECK(list.entries().empty());
    CHECK(list.CheckWritable().error().code == ErrorCode::kConflict);
    CHECK(list.Write(Json::object()).error().code == ErrorCode::kConflict);
    CHECK(*disk.ReadFile(path, kMost) == before);
  };
  check(NewKeys());
  check(nullptr);
  for (const std::string& text : {std::string(), std::string("{}"), whole.substr(0, whole.size() - 9)}) {
    REQUIRE(ReplaceFile(disk, path, text));
    check(keys);
  }
  // Another list in its place.
  REQUIRE(SealedList(kServersList, {disk, folder.path(), keys}).Write({{"s", Json::object()}}));
  REQUIRE(ReplaceFile(disk, path, *disk.ReadFile(folder.File(".added_servers"), kMost)));
  check(keys);
}

TEST_CASE("SealedList: holds no more than fifty entries", "[app]") {
  const TempDirectory folder;
  PosixFileSystem disk;
  SealedList list(kProvidersList, {disk, folder.path(), nullptr});
  Json entries = Json::object();
  for (int i = 0; i < 50; ++i) entries[std::to_string(i)] = Json::object();
  REQUIRE(list.Write(entries));
  entries["more"] = Json::object();
  CHECK(list.Write(entries).error().Is(Reason::kInvalidMember));
  CHECK(list.entries().size() == 50);
}

TEST_CASE("SealedList: all lists are copied, and sealed by other keys", "[app]") {
  const TempDirectory from, to;
  PosixFileSystem disk;
  const auto before = NewKeys(), after = NewKeys();
  for (const auto& kind : {kProvidersList, kServersList, kRulesList}) {
    REQUIRE(SealedList(kind, {disk, from.path(), before}).Write({{kind.member, Json::object()}}));
  }
  REQUIRE(CopySealedLists(disk, from.path(), before.get(), to.path(), after.get()));
  for (const auto& kind : {kProvidersList, kServersList, kRulesList}) {
    CHECK(SealedList(kind, {disk, to.path(), after}).entries().contains(kind.member));
  }
  CHECK_FALSE(CopySealedLists(disk, from.path(), after.get(), to.path(), after.get()));
}

}  // namespace reprise::sealed_list_test
