#include "crypto/jwe.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/posix_file_system.h"
#include "base/text.h"
#include "crypto/key_set.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::jwe_test {
namespace {

const Json kMembers = {{"typ", "reprise/test"}, {"ver", 1}};

std::string Seal(const KeySet& keys, std::string_view plaintext) {
  auto text = SealJwe(kMembers, plaintext, keys);
  REQUIRE(text);
  return *std::move(text);
}

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string Member(const std::string& text, const char* name) { return Json::parse(text)[name].get<std::string>(); }

void CheckRefused(const std::string& text, const KeySet& keys) {
  const auto opened = OpenJwe(text, keys);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == ErrorCode::kCorruption);
  CHECK(opened.error().reason == "integrity_auth");
}

std::string WithHeader(const std::string& text, const Json& header) {
  return Replaced(text, Member(text, "protected"), EncodeBase64Url(header.dump()));
}

bool HasJose() { return std::system("command -v jose >/dev/null 2>&1") == 0; }

}  // namespace

TEST_CASE("JWE: a sealed text opens again, with its header and kid", "[crypto]") {
  const KeySet keys = KeySet::Generate();
  for (const std::size_t size : {0, 1, 2, 3, 15, 16, 17, 1000, 100'000}) {
    const std::string plaintext(size, 'x');
    const auto opened = OpenJwe(Seal(keys, plaintext), keys);
    REQUIRE(opened);
    CHECK(opened->plaintext == plaintext);
    CHECK(opened->kid == keys.current().kid);
    CHECK(opened->protected_header == R"({"alg":"A256KW","enc":"A256GCM","typ":"reprise/test","ver":1})");
  }
}

TEST_CASE("JWE: the members stand in the documented order and nothing of the plaintext shows", "[crypto]") {
  const KeySet keys = KeySet::Generate();
  const std::string text = Seal(keys, "a secret");
  std::vector<std::string> names;
  const Json json = Json::parse(text);
  for (const auto& [name, value] : json.items()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"protected", "header", "encrypted_key", "iv", "ciphertext", "tag"});
  CHECK(text.find("secret") == std::string::npos);
  CHECK(text.find(EncodeBase64Url(keys.current().secret.bytes())) == std::string::npos);
}

TEST_CASE("JWE: each write has its own content key and IV", "[crypto]") {
  const KeySet keys = KeySet::Generate();
  std::set<std::string> wrapped, ivs, ciphertexts;
  for (int i = 0; i < 100; ++i) {
    const std::string text = Seal(keys, "the same");
    wrapped.insert(Member(text, "encrypted_key"));
    ivs.insert(Member(text, "iv"));
    ciphertexts.insert(Member(text, "ciphertext"));
  }
  CHECK(wrapped.size() == 100);
  CHECK(ivs.size() == 100);
  CHECK(ciphertexts.size() == 100);
}

TEST_CASE("JWE: every flipped bit is refused", "[crypto]") {
  const KeySet keys = KeySet::Generate();
  const std::string text = Seal(keys, "some text that matters");
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      CAPTURE(at, bit);
      REQUIRE_FALSE(OpenJwe(flipped, keys));
    }
  }
}

TEST_CASE("JWE: every truncation and every appended byte is refused", "[crypto]") {
  const KeySet keys = KeySet::Generate();
  const std::string text = Seal(keys, "some text that matters");
  for (std::size_t size = 0; size < text.size(); ++size) REQUIRE_FALSE(OpenJwe(text.substr(0, size), keys));
  CheckRefused(text + "x", keys);
  CheckRefused(text + text, keys);
  CHECK(OpenJwe(text + "\n", keys));  // white space between tokens is no content
}

TEST_CASE("JWE: refuses missing, duplicate, unknown and mistyped members", "[crypto]") {
  const KeySet keys = KeySet::Generate();
  const std::string text = Seal(keys, "text");
  const std::string tag = Member(text, "tag");
  CheckRefused(Replaced(text, ",\"tag\":\"" + tag + "\"", ""), keys);
  CheckRefused(text.substr(0, text.size() - 1) + ",\"tag\":\"" + tag + "\"}", keys);
  CheckRefused(text.substr(0, text.size() - 1) + ",\"aad\":\"eA\"}", keys);
  CheckRefused(Replaced(text, "\"" + tag + "\"", "7"), keys);
  CheckRefused(Replaced(text, "\"" + tag + "\"", "null"), keys);
  CheckRefused(Replaced(text, "\"header\":{", "\"header\":{\"alg\":\"dir\","), keys);
  CheckRefused(Replaced(text, tag, tag.substr(0, tag.size() - 2)), keys);  // a shorter tag
  CheckRefused(Replaced(text, tag, tag + "AA"), keys);
  CheckRefused(Replaced(text, Member(text, "iv"), Member(text, "iv") + "AAAA"), keys);
  CheckRefused(Replaced(text, tag, tag + "=="), keys);
}

TEST_CASE("JWE: other algorithms, crit, zip and a kid in the protected header are refused", "[crypto]") {
  const KeySet keys = KeySet::Generate();
  const std::string text = Seal(keys, "text");
  const std::vector<std::pair<const char*, Json>> changes = {{"alg", "dir"},     {"alg", "A128KW"}, {"alg", nullptr},
                                                             {"enc", "A128GCM"}, {"enc", 1},        {"crit", {"exp"}},
                                                             {"zip", "DEF"},     {"kid", "x"}};
  for (const auto& [name, value] : changes) {
    Json header = {{"alg", "A256KW"}, {"enc", "A256GCM"}};
    header[name] = value;
    const auto opened = OpenJwe(WithHeader(text, header), keys);
    REQUIRE_FALSE(opened);
    CAPTURE(header.dump());
    // Refused for the header itself, not only because the tag no longer matches.
    CHECK(opened.error().message.find("tag") == std::string::npos);
    CHECK_FALSE(ReadJweHeader(WithHeader(text, header)));
  }
  CheckRefused(WithHeader(text, {{"alg", "A256KW"}, {"enc", "A256GCM"}, {"ver", 2}}), keys);
}

TEST_CASE("JWE: a key that is not in the set is named as the reason", "[crypto]") {
  const KeySet keys = KeySet::Generate(), others = KeySet::Generate();
  const auto opened = OpenJwe(Seal(keys, "text"), others);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().message == "sealed by a key that is not in the key file");
}

TEST_CASE("JWE: the digest survives rewrapping and no other change", "[crypto]") {
  const KeySet keys = KeySet::Generate();
  const std::string text = Seal(keys, "text"), other = Seal(keys, "text");
  const auto digest = RecordDigest(text);
  REQUIRE(digest);
  CHECK(digest->size() == 7 + 64);
  CHECK(digest->starts_with("sha256:"));
  CHECK(RecordDigest(Replaced(text, Member(text, "encrypted_key"), Member(other, "encrypted_key"))) == *digest);
  CHECK(RecordDigest(Replaced(text, keys.current().kid, "another")) == *digest);
  for (const char* name : {"protected", "iv", "tag"}) {
    CHECK(RecordDigest(Replaced(text, Member(text, name), "AAAA")) != *digest);
  }
  CHECK(RecordDigest(other) != *digest);
  CHECK(RecordDigest("{}").error().code == ErrorCode::kCorruption);
}

TEST_CASE("JWE: the header can be read without a key", "[crypto]") {
  const auto header = ReadJweHeader(Seal(KeySet::Generate(), "text"));
  REQUIRE(header);
  CHECK((*header)["typ"] == "reprise/test");
  CHECK(LooksLikeJwe(Seal(KeySet::Generate(), "text")));
  CHECK_FALSE(LooksLikeJwe(R"({"schema":1})"));
}

TEST_CASE("JWE: Debian's jose opens what we seal", "[crypto][interop]") {
  if (!HasJose()) {
    WARN("jose is not installed");
    return;
  }
  const TempDirectory folder;
  PosixFileSystem disk;
  const auto keys = LoadOrCreateKeyFile(folder.File("keys.jwks"), disk);
  REQUIRE(keys);
  std::string plaintext;
  for (int i = 0; i < 5000; ++i) plaintext += "line " + std::to_string(i) + " \xc3\xbc\n";
  std::ofstream(folder.File("sealed.json")) << Seal(*keys, plaintext);
  const std::string command = "jose jwe dec -i " + folder.File("sealed.json") + " -k " + folder.File("keys.jwks") +
                              " -O " + folder.File("opened");
  REQUIRE(std::system(command.c_str()) == 0);
  CHECK(disk.ReadFile(folder.File("opened"), 1 << 20) == plaintext);
}

TEST_CASE("JWE: we open what Debian's jose seals", "[crypto][interop]") {
  if (!HasJose()) {
    WARN("jose is not installed");
    return;
  }
  const TempDirectory folder;
  PosixFileSystem disk;
  const auto keys = LoadOrCreateKeyFile(folder.File("keys.jwks"), disk);
  REQUIRE(keys);
  const Json jwk_set = Json::parse(*disk.ReadFile(folder.File("keys.jwks"), 1 << 20));
  std::ofstream(folder.File("key.jwk")) << jwk_set["keys"][0].dump();
  std::ofstream(folder.File("text")) << "from jose";
  const std::string form = R"({"protected":{"alg":"A256KW","enc":"A256GCM","typ":"reprise/test"}})";
  const std::string recipient = R"({"header":{"kid":")" + keys->current().kid + R"("}})";
  const std::string command = "jose jwe enc -i '" + form + "' -r '" + recipient + "' -k " + folder.File("key.jwk") +
                              " -I " + folder.File("text") + " -o " + folder.File("sealed.json");
  REQUIRE(std::system(command.c_str()) == 0);
  const auto opened = OpenJwe(*disk.ReadFile(folder.File("sealed.json"), 1 << 20), *keys);
  REQUIRE(opened);
  CHECK(opened->plaintext == "from jose");
}

TEST_CASE("JWE: speed of a megabyte", "[.benchmark]") {
  const KeySet keys = KeySet::Generate();
  const std::string plaintext(1 << 20, 'x');
  const auto begin = std::chrono::steady_clock::now();
  constexpr int kRuns = 50;
  for (int i = 0; i < kRuns; ++i) REQUIRE(OpenJwe(*SealJwe(kMembers, plaintext, keys), keys));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  std::printf("seal+open of 1 MiB: %.2f ms\n", took.count() / kRuns);
}

TEST_CASE("JWE: rewrapping changes only the kid and the wrapped key", "[crypto]") {
  const KeySet old = KeySet::Generate();
  const KeySet keys = old.WithNewKey(), fresh = keys.WithoutOldKeys();
  const std::string sealed = Seal(old, "content");
  const auto rewrapped = RewrapJwe(sealed, keys);
  REQUIRE(rewrapped);
  CHECK(Json::parse(*rewrapped)["header"]["kid"] == fresh.current().kid);
  for (const char* name : {"protected", "iv", "ciphertext", "tag"})
    CHECK(Member(*rewrapped, name) == Member(sealed, name));
  CHECK(Member(*rewrapped, "encrypted_key") != Member(sealed, "encrypted_key"));
  CHECK(*RecordDigest(*rewrapped) == *RecordDigest(sealed));
  CHECK(OpenJwe(*rewrapped, fresh)->plaintext == "content");
  CheckRefused(*rewrapped, old);
  CHECK(*RewrapJwe(*rewrapped, keys) == *rewrapped);
}

TEST_CASE("JWE: rewrapping keeps spaces and the order of members", "[crypto]") {
  const KeySet old = KeySet::Generate();
  const KeySet keys = old.WithNewKey();
  const Json sealed = Json::parse(Seal(old, "content"));
  Json turned = Json::object();
  for (const char* name : {"tag", "encrypted_key", "ciphertext", "header", "iv", "protected"})
    turned[name] = sealed[name];
  const auto rewrapped = RewrapJwe(turned.dump(3) + "\n", keys);
  REQUIRE(rewrapped);
  Json expected = turned;
  expected["header"] = Json::parse(*rewrapped)["header"];
  expected["encrypted_key"] = Json::parse(*rewrapped)["encrypted_key"];
  CHECK(*rewrapped == expected.dump(3) + "\n");
  CHECK(OpenJwe(*rewrapped, keys.WithoutOldKeys())->plaintext == "content");
}

TEST_CASE("JWE: damaged and foreign records are not rewrapped", "[crypto]") {
  const KeySet old = KeySet::Generate();
  const KeySet keys = old.WithNewKey();
  const std::string sealed = Seal(old, "content");
  for (const char* name : {"protected", "encrypted_key", "iv", "ciphertext", "tag"}) {
    std::string value = Member(sealed, name);
    value[3] = value[3] == 'A' ? 'B' : 'A';
    CAPTURE(name);
    CHECK_FALSE(RewrapJwe(Replaced(sealed, Member(sealed, name), value), keys));
  }
  CHECK_FALSE(RewrapJwe(sealed, KeySet::Generate()));
  CHECK_FALSE(RewrapJwe(sealed.substr(0, sealed.size() - 1), keys));
  CHECK_FALSE(RewrapJwe("", keys));
}

TEST_CASE("JWE: a tenant's record opens only for that tenant", "[crypto]") {
  const KeySet keys = KeySet::Generate();
  const KeySet a = keys.BoundTo("a"), b = keys.BoundTo("b");
  CHECK(a.current().kid == keys.current().kid);
  CHECK(a.WithNewKey().tenant() == "a");
  CHECK(a.WithoutOldKeys().tenant() == "a");
  const std::string of_a = Seal(a, "text"), of_nobody = Seal(keys, "text");
  CHECK(OpenJwe(of_a, a)->plaintext == "text");
  CHECK((*ReadJweHeader(of_a))["tenant"] == "a");
  CHECK_FALSE(ReadJweHeader(of_nobody)->contains("tenant"));
  const auto reason = [](const std::string& text, const KeySet& by) {
    const auto opened = OpenJwe(text, by);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == ErrorCode::kCorruption);
    return opened.error().reason;
  };
  CHECK(reason(of_a, b) == "integrity_swap");
  CHECK(reason(of_a, keys) == "integrity_swap");
  CHECK(reason(of_nobody, a) == "integrity_swap");
  CHECK(reason(Replaced(of_a, Member(of_a, "protected"), Member(Seal(b, "text"), "protected")), b) == "integrity_auth");
  CHECK(OpenJwe(*RewrapJwe(of_a, a.WithNewKey()), a.WithNewKey()).has_value() == false);  // another new key
  const KeySet renewed = a.WithNewKey();
  CHECK(OpenJwe(*RewrapJwe(of_a, renewed), renewed)->plaintext == "text");
}

}  // namespace reprise::jwe_test
