#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "app/options.h"
#include "app/trust.h"
#include "crypto/digest.h"
#include "support/fixtures.h"
#include "support/schema_validator.h"
#include "support/test.h"

namespace reprise::test::trusted_files_test {
namespace {

namespace fs = std::filesystem;

const std::string kOne = Sha256Digest({"one"}), kTwo = Sha256Digest({"two"});

}  // namespace

TEST_CASE("TrustedFiles: what is allowed is there for others, as the schema says, until it is taken back", "[app]") {
  const TempDirectory directory;
  const std::string file = directory.File("config/reprise/trusted.json");
  CHECK(TrustedFiles(file).Read() == FileDigests());
  REQUIRE(TrustedFiles(file).Allow({{"/a", kOne}, {"/b", kOne}}));
  REQUIRE(TrustedFiles(file).Allow({{"/b", kTwo}}));
  CHECK(TrustedFiles(file).Read() == FileDigests{{"/a", kOne}, {"/b", kTwo}});
  CHECK(SchemaValidator("trusted").Complaint(ReadText(file)).empty());
  CHECK((fs::status(file).permissions() & fs::perms::all) == fs::perms(0600));
  CHECK(TrustedFiles(file).Revoke("/a") == true);
  CHECK(TrustedFiles(file).Revoke("/a") == false);
  CHECK(TrustedFiles(file).Read() == FileDigests{{"/b", kTwo}});
}

TEST_CASE("TrustedFiles: of several that allow files at once none loses what another has allowed", "[app]") {
  const TempDirectory directory;
  const std::string file = directory.File("trusted.json");
  constexpr int kThreads = 4, kEach = 25;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&file, thread] {
        for (int i = 0; i < kEach; ++i) {
          static_cast<void>(TrustedFiles(file).Allow({{"/" + std::to_string(thread) + "/" + std::to_string(i), kOne}}));
        }
      });
    }
  }
  CHECK(TrustedFiles(file).Read()->size() == kThreads * kEach);
}

TEST_CASE("TrustedFiles: a list that is damaged, a link, or open to others allows nothing and stays", "[app]") {
  const TempDirectory directory;
  const std::string file = directory.File("trusted.json");
  for (const char* text : {"", "[]", "{}", R"({"schema":2,"files":{}})", R"({"schema":1,"files":{"/a":"x"}})",
                           R"({"schema":1,"files":[]})", R"({"schema":1,"files":{"/a":1}})"}) {
    INFO(text);
    directory.Write("trusted.json", text);
    CHECK(TrustedFiles(file).Read().error().code == ErrorCode::kCorruption);
    CHECK_FALSE(TrustedFiles(file).Allow({{"/a", kOne}}));
    CHECK(ReadText(file) == text);
  }
  const std::string whole = R"({"schema":1,"files":{"/a":")" + kOne + "\"}}";
  directory.Write("trusted.json", whole, 0660);
  CHECK(TrustedFiles(file).Read().error().code == ErrorCode::kForbidden);
  fs::remove(file);
  directory.Write("elsewhere.json", whole);
  fs::create_symlink("elsewhere.json", file);
  CHECK(TrustedFiles(file).Read().error().code == ErrorCode::kForbidden);
  CHECK_FALSE(TrustedFiles("").Allow({{"/a", kOne}}));
}

TEST_CASE("PlaceOf: a link is a place of its own, a folder by another name is not", "[app]") {
  const TempDirectory directory;
  fs::create_directory(directory.File("real"));
  fs::create_symlink("real", directory.File("other"));
  directory.Write("real/a", "one");
  fs::create_symlink("a", directory.File("real/b"));
  const std::string real = fs::canonical(directory.File("real"));
  CHECK(PlaceOf(directory.File("other/a")) == real + "/a");
  CHECK(PlaceOf(directory.File("other/../real/./b")) == real + "/b");
  CHECK(PlaceOf(directory.File("gone/c")) == PlaceOf(directory.File("gone/./c")));
}

TEST_CASE("RequireTrust: every file, and as it was allowed", "[app]") {
  const TempDirectory directory;
  Options options;
  options.trust_file = directory.File("trusted.json");
  options.config_file = "named.json";
  REQUIRE(TrustedFiles(options.trust_file).Allow({{"/a", kOne}, {"/b", kOne}}));
  CHECK(RequireTrust(options, {}, /*ask=*/false));
  CHECK(RequireTrust(options, {{"/a", kOne}, {"/b", kOne}}, /*ask=*/false));
  const auto refused = RequireTrust(options, {{"/a", kOne}, {"/b", kTwo}, {"/c", kOne}}, /*ask=*/false);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kForbidden);
  CHECK(refused.error().message.starts_with("/b, /c are new or have changed"));
  CHECK(refused.error().message.find("`reprise trust named.json`") != std::string::npos);
}

}  // namespace reprise::test::trusted_files_test
