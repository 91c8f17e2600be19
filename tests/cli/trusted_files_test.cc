#include "cli/trusted_files.h"

#include <filesystem>

#include "cli/fixtures.h"
#include "cli/options.h"
#include "cli/schema_validator.h"
#include "cli/trust.h"
#include "crypto/digest.h"
#include "support/test.h"

namespace reprise::test::trusted_files_test {
namespace {

namespace fs = std::filesystem;

const std::string kOne = Sha256Digest({"one"}), kTwo = Sha256Digest({"two"});

}  // namespace

TEST_CASE("TrustedFiles: what is allowed is there for others, as the schema says, until it is taken back", "[cli]") {
  const TempDirectory directory;
  const std::string file = directory.path("config/reprise/trusted.json");
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

TEST_CASE("TrustedFiles: a list that is damaged, a link, or open to others allows nothing and stays", "[cli]") {
  const TempDirectory directory;
  const std::string file = directory.path("trusted.json");
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

TEST_CASE("PlaceOf: a link is a place of its own, a folder by another name is not", "[cli]") {
  const TempDirectory directory;
  fs::create_directory(directory.path("real"));
  fs::create_symlink("real", directory.path("other"));
  directory.Write("real/a", "one");
  fs::create_symlink("a", directory.path("real/b"));
  const std::string real = fs::canonical(directory.path("real"));
  CHECK(PlaceOf(directory.path("other/a")) == real + "/a");
  CHECK(PlaceOf(directory.path("other/../real/./b")) == real + "/b");
  CHECK(PlaceOf(directory.path("gone/c")) == PlaceOf(directory.path("gone/./c")));
}

TEST_CASE("RequireTrust: every file, and as it was allowed", "[cli]") {
  const TempDirectory directory;
  Options options;
  options.trust_file = directory.path("trusted.json");
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
