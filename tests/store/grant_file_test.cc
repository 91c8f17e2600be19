#include "store/grant_file.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "crypto/jwe.h"
#include "domain/codec.h"
#include "store/file_names.h"
#include "store/verify.h"
#include "support/faulty_file_system.h"
#include "support/memory_file_system.h"
#include "support/test.h"

namespace reprise {
namespace {

const std::string kRoot = "/data";

StandingGrant Sample(const std::string& arguments) {
  return {.grant = {"run_shell", ArgumentsDigest(arguments)}, .tool_input = arguments, .created_at = Now()};
}

struct World {
  MemoryFileSystem disk;
  std::shared_ptr<const KeySet> keys;
  explicit World(bool sealed = true) {
    if (sealed) keys = std::make_shared<const KeySet>(KeySet::Generate());
    REQUIRE(disk.CreateDirectory(kRoot));
    REQUIRE(disk.SyncDirectory("/"));
  }
  FileGrantStore Open() { return {disk, kRoot, keys}; }
};

}  // namespace

TEST_CASE("FileGrantStore: what was granted counts after a power loss, what was revoked does not", "[store]") {
  const bool sealed = GENERATE(true, false);
  World world(sealed);
  FileGrantStore store = world.Open();
  CHECK(store.List()->empty());
  REQUIRE(store.Add(Sample(R"({"command":"ls"})")) == true);
  REQUIRE(store.Add(Sample(R"({"command":"ls"})")) == false);
  REQUIRE(store.Add(Sample(R"({"command":"make"})")) == true);
  CHECK(store.Covers({"run_shell", ArgumentsDigest(R"({"command":"ls"})")}));
  CHECK_FALSE(store.Covers({"run_shell", ArgumentsDigest(R"({"command": "ls"})")}));
  CHECK_FALSE(store.Covers({"run_code", ArgumentsDigest(R"({"command":"ls"})")}));

  const auto after = world.disk.AfterPowerLoss(MemoryFileSystem::Kept::kNothing);
  FileGrantStore again(*after, kRoot, world.keys);
  const auto grants = again.List();
  REQUIRE(grants);
  REQUIRE(grants->size() == 2);
  CHECK(grants->at(1).tool_input == R"({"command":"make"})");
  const std::string id = GrantId(grants->at(0).grant);
  REQUIRE(again.Remove(id));
  CHECK(again.Remove(id).error().code == ErrorCode::kNotFound);
  const auto later = after->AfterPowerLoss(MemoryFileSystem::Kept::kNothing);
  FileGrantStore last(*later, kRoot, world.keys);
  CHECK_FALSE(last.Covers(grants->at(0).grant));
  CHECK(last.Covers(grants->at(1).grant));
  CHECK(LooksLikeJwe(*later->ReadFile(GrantsFile(kRoot), 1 << 20)) == sealed);
}

TEST_CASE("FileGrantStore: a file that is not what it should be grants nothing and is set aside", "[store]") {
  World world;
  REQUIRE(world.Open().Add(Sample("{}")));
  const std::string path = GrantsFile(kRoot);
  const std::string whole = *world.disk.ReadFile(path, 1 << 20);
  const std::string other = *SealJwe({{"typ", "reprise/chat"}, {"ver", 1}}, R"({"schema":1,"grants":[]})", *world.keys);
  const auto stranger = KeySet::Generate();
  const std::vector<std::pair<std::string, std::string>> cases = {
      {whole.substr(0, whole.size() / 2), "auth"},
      {"", "auth"},
      {R"({"schema":1,"grants":[]})", "plain"},
      {other, "swap"},
      {*SealJwe({{"typ", "reprise/grants"}, {"ver", 2}}, "{}", *world.keys), "version"},
      {*SealJwe({{"typ", "reprise/grants"}, {"ver", 1}}, R"({"schema":1,"grants":[{"tool_name":7}]})", *world.keys),
       "auth"},
      {*SealJwe({{"typ", "reprise/grants"}, {"ver", 1}}, R"({"schema":1,"grants":[]})", stranger), "auth"}};
  const std::size_t which = GENERATE(range<std::size_t>(0, 7));
  REQUIRE(cases.size() == 7);
  const auto& [content, kind] = cases[which];
  world.disk.Overwrite(path, content);
  FileGrantStore store = world.Open();
  CHECK_FALSE(store.Covers(Sample("{}").grant));
  const auto listed = store.List();
  REQUIRE_FALSE(listed);
  CHECK(listed.error().reason == "integrity_" + kind);
  CHECK(store.Remove("grant_0").error().code == ErrorCode::kCorruption);
  const auto report = VerifyStore(kRoot, world.keys, world.disk);
  REQUIRE(report);
  REQUIRE(report->problems.size() == 1);
  CHECK(report->problems[0].file == ".grants");
  CHECK(report->problems[0].kind == kind);

  REQUIRE(store.Add(Sample("{}")) == true);
  CHECK(store.List()->size() == 1);
  std::size_t aside = 0;
  const auto entries = world.disk.ListDirectory(kRoot);
  for (const auto& entry : *entries) aside += entry.name.starts_with(".grants.damaged.") ? 1 : 0;
  CHECK(aside == 1);
}

TEST_CASE("FileGrantStore: a disk that fails grants what the file says, and loses nothing", "[store]") {
  World world;
  REQUIRE(world.Open().Add(Sample(R"({"n":1})")));
  for (std::size_t fail_at = 1;; ++fail_at) {
    FaultyFileSystem faulty(world.disk, {.at = fail_at, .reads = true});
    FileGrantStore store(faulty, kRoot, world.keys);
    const auto added = store.Add(Sample(R"({"n":2})"));
    FileGrantStore after = world.Open();
    CHECK(after.Covers(Sample(R"({"n":1})").grant));
    if (added) CHECK(after.Covers(Sample(R"({"n":2})").grant));
    if (!faulty.fired()) break;
    static_cast<void>(after.Remove(GrantId(Sample(R"({"n":2})").grant)));  // it may have come that far
  }
}

}  // namespace reprise
