#include <nlohmann/json.hpp>

#include "base/atomic_write.h"
#include "base/json.h"
#include "crypto/jwe.h"
#include "domain/codec.h"
#include "store/file_names.h"
#include "store/tenant_files.h"
#include "store/verify.h"
#include "support/faulty_file_system.h"
#include "support/memory_file_system.h"
#include "support/test.h"

namespace reprise::grant_file_test {
namespace {

const std::string kRoot = "/data";

StandingGrant Sample(const std::string& arguments) {
  return {.grant = {"run_shell", ArgumentsDigest(arguments), ArgumentsDigest("terms")},
          .tool_input = arguments,
          .created_at = Now()};
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

TEST_CASE("FileGrantStore: a grant counts after a power loss, a revoked one does not", "[store]") {
  const bool sealed = GENERATE(true, false);
  World world(sealed);
  FileGrantStore store = world.Open();
  CHECK(store.List()->empty());
  REQUIRE(store.Add(Sample(R"({"command":"ls"})")) == true);
  REQUIRE(store.Add(Sample(R"({"command":"ls"})")) == false);
  REQUIRE(store.Add(Sample(R"({"command":"make"})")) == true);
  CHECK(store.Covers({"run_shell", ArgumentsDigest(R"({"command":"ls"})"), ArgumentsDigest("terms")}));
  CHECK_FALSE(store.Covers({"run_shell", ArgumentsDigest(R"({"command":"ls"})"), ArgumentsDigest("other terms")}));
  CHECK_FALSE(store.Covers({"run_shell", ArgumentsDigest(R"({"command": "ls"})"), ArgumentsDigest("terms")}));
  CHECK_FALSE(store.Covers({"run_code", ArgumentsDigest(R"({"command":"ls"})"), ArgumentsDigest("terms")}));

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

TEST_CASE("FileGrantStore: a damaged file grants nothing and is set aside", "[store]") {
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

TEST_CASE("FileGrantStore: a grant without terms, as version 0.1 wrote it, is listed and covers nothing", "[store]") {
  World world(false);
  const std::string digest = ArgumentsDigest("{}");
  const Grant old{"run_shell", digest};
  const std::string text = R"({"schema":1,"grants":[{"tool_name":"run_shell","arguments_digest":")" + digest +
                           R"(","tool_input":"{}","created_at":"2026-01-01T00:00:00.000Z"}]})";
  REQUIRE(ReplaceFile(world.disk, GrantsFile(kRoot), text));
  FileGrantStore store = world.Open();
  const auto grants = store.List();
  REQUIRE(grants);
  REQUIRE(grants->size() == 1);
  CHECK(grants->front().grant == old);
  CHECK_FALSE(store.Covers(old));
  CHECK_FALSE(store.Covers({"run_shell", digest, ArgumentsDigest("terms")}));
  CHECK(store.Remove(GrantId(old)));
}

TEST_CASE("FileGrantStore: if the disk fails, the grants in the file count, and none is lost", "[store]") {
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
    static_cast<void>(after.Remove(GrantId(Sample(R"({"n":2})").grant)));  // it may have been written all the same
  }
}

TEST_CASE("FileGrantStore: an older file revives no grant, and is named", "[store]") {
  const bool sealed = GENERATE(true, false);
  World world(sealed);
  FileGrantStore store = world.Open();
  const auto ls = Sample(R"({"command":"ls"})"), make = Sample(R"({"command":"make"})");
  REQUIRE(store.Add(ls));
  const std::string before = *world.disk.ReadFile(GrantsFile(kRoot), 1 << 20);
  REQUIRE(store.Remove(GrantId(ls.grant)));
  const auto verify = [&] { return VerifyStore(kRoot, world.keys, world.disk)->problems; };
  CHECK(verify().empty());
  REQUIRE(ReplaceFile(world.disk, GrantsFile(kRoot), before));

  REQUIRE(verify().size() == 1);
  CHECK(verify()[0].file == ".grants");
  CHECK(verify()[0].kind == "rollback");
  FileGrantStore again = world.Open();
  CHECK_FALSE(again.Covers(ls.grant));
  CHECK(again.List().error().reason == "integrity_rollback");
  REQUIRE(again.Add(make));
  CHECK(again.Covers(make.grant));
  CHECK_FALSE(again.Covers(ls.grant));
  CHECK(verify().empty());
  // Nor does it later.
  REQUIRE(ReplaceFile(world.disk, GrantsFile(kRoot), before));
  CHECK_FALSE(world.Open().Covers(ls.grant));
  // A missing file grants nothing either, and is named.
  REQUIRE(world.disk.RemoveFile(GrantsFile(kRoot)));
  CHECK_FALSE(world.Open().Covers(make.grant));
  CHECK(verify()[0].kind == "missing");
  FileGrantStore last = world.Open();
  REQUIRE(last.Add(make));
  CHECK(last.Covers(make.grant));
}

TEST_CASE("FileGrantStore: without the head, or with a damaged one, no grant counts", "[store]") {
  World world;
  const auto ls = Sample(R"({"command":"ls"})"), make = Sample(R"({"command":"make"})");
  FileGrantStore store = world.Open();
  REQUIRE(store.Add(ls));
  const std::string before = *world.disk.ReadFile(GrantsFile(kRoot), 1 << 20);
  const bool gone = GENERATE(true, false);
  if (gone) {
    REQUIRE(world.disk.RemoveFile(GrantsHeadFile(kRoot)));
  } else {
    REQUIRE(ReplaceFile(world.disk, GrantsHeadFile(kRoot), "{"));
  }
  const auto problems = VerifyStore(kRoot, world.keys, world.disk)->problems;
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].file == ".grants_head");
  CHECK(problems[0].kind == (gone ? "missing" : "auth"));
  FileGrantStore again = world.Open();
  CHECK_FALSE(again.Covers(ls.grant));
  REQUIRE(again.Add(make));
  CHECK(again.Covers(make.grant));
  REQUIRE(ReplaceFile(world.disk, GrantsFile(kRoot), before));
  CHECK_FALSE(world.Open().Covers(ls.grant));
}

TEST_CASE("FileGrantStore: a power loss between the file and its head does no harm", "[store]") {
  World world;
  const auto ls = Sample(R"({"command":"ls"})"), make = Sample(R"({"command":"make"})");
  REQUIRE(world.Open().Add(ls));
  for (std::size_t at = 1; at < 30; ++at) {
    const auto disk = world.disk.AfterPowerLoss(MemoryFileSystem::Kept::kNothing);
    FaultyFileSystem faulty(*disk, {.at = at, .from_then_on = true});
    const auto added = FileGrantStore(faulty, kRoot, world.keys).Add(make);
    const auto after = disk->AfterPowerLoss(MemoryFileSystem::Kept::kNothing);
    INFO(at);
    CHECK(VerifyStore(kRoot, world.keys, *after)->problems.empty());
    CHECK(FileGrantStore(*after, kRoot, world.keys).Covers(ls.grant));
    if (added) CHECK(FileGrantStore(*after, kRoot, world.keys).Covers(make.grant));
    if (!faulty.fired()) break;
  }
}

}  // namespace reprise::grant_file_test
