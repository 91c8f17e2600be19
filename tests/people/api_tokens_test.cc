#include "people/api_tokens.h"

#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/json.h"
#include "support/schema_validator.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::api_tokens_test {
namespace {

const Principal kAlice{.role = Principal::Role::kUser, .org = "acme", .user = "alice"};

std::string TextOf(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("ApiTokenFile: returns a token once and stores only digests", "[people]") {
  const TempDirectory folder;
  const std::string path = folder.File("new/tokens.json");
  ApiTokenFile file(path);
  CHECK(file.Look() == ApiTokenFile::Version());
  CHECK(file.Read()->tokens.empty());
  const auto made = file.Add(kAlice, "backup", Timestamp(std::chrono::hours(24)));
  REQUIRE(made);
  CHECK(made->text.starts_with("reprise_"));
  CHECK(made->text.size() == 8 + 43);
  CHECK(made->text != file.Add(kAlice, "", std::nullopt)->text);
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  const std::string text = TextOf(path);
  CHECK(text.find(made->text) == std::string::npos);
  CHECK(text.find(made->text.substr(8)) == std::string::npos);
  CHECK(test::SchemaValidator("api_tokens").Complaint(text) == "");

  const auto content = file.Read();
  REQUIRE(content);
  REQUIRE(content->tokens.size() == 2);
  const ApiToken& token = content->tokens.front();
  CHECK(token.id == made->token.id);
  CHECK(token.name == "backup");
  Principal alice = kAlice;
  alice.token_id = token.id;
  CHECK(token.principal == alice);
  CHECK(token.digest == DigestOfToken(made->text));
  CHECK(token.expires_at == Timestamp(std::chrono::hours(24)));
  CHECK(content->version == file.Look());
}

TEST_CASE("ApiTokenFile: revoking removes a token, and each change is another version", "[people]") {
  const TempDirectory folder;
  ApiTokenFile file(folder.File("tokens.json"));
  CHECK(file.Revoke("token_000000000000").error().code == ErrorCode::kNotFound);
  const auto kept = file.Add(kAlice, "", std::nullopt), revoked = file.Add(kAlice, "", std::nullopt);
  const auto before = file.Look();
  CHECK(file.Revoke(revoked->token.id)->id == revoked->token.id);
  CHECK_FALSE(file.Look() == before);
  CHECK(file.Revoke(revoked->token.id).error().code == ErrorCode::kNotFound);
  REQUIRE(file.Read()->tokens.size() == 1);
  CHECK(file.Read()->tokens.front().id == kept->token.id);
}

TEST_CASE("ApiTokenFile: concurrent additions lose nothing", "[people]") {
  const TempDirectory folder;
  constexpr int kEach = 10;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      ApiTokenFile file(folder.File("tokens.json"));
      for (int i = 0; i < kEach; ++i) static_cast<void>(file.Add(kAlice, "", std::nullopt));
    });
  }
  threads.clear();
  CHECK(ApiTokenFile(folder.File("tokens.json")).Read()->tokens.size() == 4 * kEach);
}

TEST_CASE("ApiTokenFile: a damaged file, or one that others could write, counts for nothing", "[people]") {
  const TempDirectory folder;
  ApiTokenFile file(folder.File("tokens.json"));
  REQUIRE(file.Add(kAlice, "", std::nullopt));
  const Json good = *ParseJson(TextOf(folder.File("tokens.json")));
  const auto code = [&](const Json& json) {
    folder.Write("tokens.json", DumpJson(json));
    const auto read = file.Read();
    return read ? ErrorCode::kInternal : read.error().code;
  };
  CHECK(code(good) == ErrorCode::kInternal);  // it is read
  for (const char* member : {"id", "org", "user", "role", "digest", "created_at", "expires_at"}) {
    Json bad = good;
    bad["tokens"][0][member] = 7;
    INFO(member);
    CHECK(code(bad) == ErrorCode::kCorruption);
    bad["tokens"][0].erase(member);
    CHECK(code(bad) == ErrorCode::kCorruption);
  }
  CHECK(code(Json::array()) == ErrorCode::kCorruption);
  CHECK(code({{"schema", 2}, {"tokens", Json::array()}}) == ErrorCode::kCorruption);
  folder.Write("tokens.json", DumpJson(good), 0666);
  ::chmod(folder.File("tokens.json").c_str(), 0666);
  CHECK(file.Read().error().code == ErrorCode::kForbidden);
  CHECK_FALSE(file.Add(kAlice, "", std::nullopt));
}

TEST_CASE("ApiTokenFile: names are short and plain", "[people]") {
  const TempDirectory folder;
  ApiTokenFile file(folder.File("tokens.json"));
  for (const std::string& bad : {std::string(), std::string("a\nb"), std::string(256, 'a'), std::string("\xff")}) {
    CHECK(file.Add({.org = "acme", .user = bad}, "", std::nullopt).error().code == ErrorCode::kInvalidArgument);
    CHECK(file.Add({.org = bad, .user = "alice"}, "", std::nullopt).error().code == ErrorCode::kInvalidArgument);
  }
  CHECK(file.Add(kAlice, "a\nb", std::nullopt).error().code == ErrorCode::kInvalidArgument);
  CHECK(file.Look() == ApiTokenFile::Version());
}

TEST_CASE("TokenUses: a round trip changes nothing", "[people]") {
  const TempDirectory folder;
  const std::string path = folder.File("uses");
  CHECK(ApiTokenFile("", path).ReadUses().empty());
  const TokenUses uses{{"token_1", Timestamp(std::chrono::hours(1))}};
  REQUIRE(ApiTokenFile("", path).WriteUses(uses));
  CHECK(ApiTokenFile("", path).ReadUses() == uses);
  folder.Write("uses", "[]");
  CHECK(ApiTokenFile("", path).ReadUses().empty());
}

}  // namespace reprise::api_tokens_test
