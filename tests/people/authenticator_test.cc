#include "people/authenticator.h"

#include <future>
#include <thread>

#include "people/issued_tokens.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::authenticator_test {
namespace {

const Principal kAlice{.role = Principal::Role::kUser, .org = "default", .user = "alice"};

using Outcome = std::shared_ptr<std::promise<Result<Principal>>>;

// The answer, at once or later.
Result<Principal> Ask(Authenticator& people, std::string_view token, bool* at_once = nullptr) {
  const auto later = std::make_shared<std::promise<Result<Principal>>>();
  auto now = people.Identify(token, [later](Result<Principal> who) { later->set_value(std::move(who)); });
  if (at_once != nullptr) *at_once = now.has_value();
  Result<Principal> who = now ? *now : later->get_future().get();
  if (who) who->until.reset();  // when the token ends
  return who;
}
std::string ReasonOf(const Result<Principal>& who) { return who ? "" : who.error().reason; }

Result<std::vector<IssuerKey>> AllKeys(std::stop_token) {
  return ReadIssuerKeys(std::string(R"({"keys":[)") + issued::kRs256Key + "," + issued::kEs256Key + "," +
                        issued::kEdDsaKey + "]}");
}
Authenticator::Options OidcOptions(const TempDirectory& folder) {
  return {.tokens = std::make_shared<ApiTokenFile>(folder.File("tokens.json")),
          .issuer = IssuerOptions{.issuer = "https://issuer.example", .audience = "reprise"},
          .fetch_keys = AllKeys};
}

}  // namespace

TEST_CASE("Authenticator: accepts a token of each algorithm, the second time at once", "[people]") {
  const TempDirectory folder;
  Authenticator people(OidcOptions(folder));
  for (const char* token : {issued::kRs256Token, issued::kEs256Token, issued::kEdDsaToken}) {
    bool at_once = true;
    CHECK(Ask(people, token, &at_once) == kAlice);
    CHECK_FALSE(at_once);
    CHECK(Ask(people, token, &at_once) == kAlice);
    CHECK(at_once);
  }
}

TEST_CASE("Authenticator: refuses a token with another token's signature, header or content", "[people]") {
  const TempDirectory folder;
  Authenticator people(OidcOptions(folder));
  const std::string rsa = issued::kRs256Token, ec = issued::kEs256Token;
  const auto header = [](const std::string& token) { return token.substr(0, token.find('.')); };
  const auto rest = [](const std::string& token) { return token.substr(token.find('.')); };
  std::string changed = rsa;
  changed[changed.find('.') + 10] = changed[changed.find('.') + 10] == 'A' ? 'B' : 'A';
  for (const std::string& token : {header(rsa) + rest(ec), header(ec) + rest(rsa), changed, rsa + "A", std::string("x"),
                                   std::string(), std::string(100'000, 'x')}) {
    CHECK(ReasonOf(Ask(people, token)) == "invalid_token");
  }
}

TEST_CASE("Authenticator: added and revoked API tokens take effect at once", "[people]") {
  const TempDirectory folder;
  ApiTokenFile file(folder.File("tokens.json"));
  Authenticator people({.tokens = std::make_shared<ApiTokenFile>(folder.File("tokens.json"), folder.File("uses"))});
  CHECK(ReasonOf(Ask(people, "reprise_nobody")) == "invalid_token");
  const auto alice = file.Add(kAlice, "", std::nullopt);
  const auto past = file.Add(kAlice, "", Now() - std::chrono::seconds(1));
  CHECK(Ask(people, alice->text) == alice->token.principal);
  bool at_once = false;
  CHECK(Ask(people, alice->text, &at_once) == alice->token.principal);
  CHECK(at_once);
  CHECK(ReasonOf(Ask(people, past->text)) == "invalid_token");
  REQUIRE(file.Revoke(alice->token.id));
  CHECK(ReasonOf(Ask(people, alice->text)) == "invalid_token");
  people.Stop();
  CHECK(ApiTokenFile("", folder.File("uses")).ReadUses().contains(alice->token.id));
}

TEST_CASE("Authenticator: notices changes without a request", "[people]") {
  const TempDirectory folder;
  ApiTokenFile file(folder.File("tokens.json"));
  const auto alice = file.Add(kAlice, "", std::nullopt);
  Authenticator people({.tokens = std::make_shared<ApiTokenFile>(folder.File("tokens.json"))});
  CHECK(Ask(people, alice->text));
  CHECK(people.Counts(alice->token.id));
  REQUIRE(file.Revoke(alice->token.id));
  people.Refresh();
  while (people.Counts(alice->token.id)) std::this_thread::yield();
  CHECK_FALSE(people.Counts("token_000000000000"));
}

TEST_CASE("Authenticator: a damaged file of tokens lets nobody in", "[people]") {
  const TempDirectory folder;
  ApiTokenFile file(folder.File("tokens.json"));
  const auto alice = file.Add(kAlice, "", std::nullopt);
  Authenticator people({.tokens = std::make_shared<ApiTokenFile>(folder.File("tokens.json"))});
  CHECK(Ask(people, alice->text) == alice->token.principal);
  folder.Write("tokens.json", "damaged");
  CHECK(ReasonOf(Ask(people, alice->text)) == "invalid_token");
}

TEST_CASE("Authenticator: waiting for the issuer blocks no other request", "[people]") {
  const TempDirectory folder;
  ApiTokenFile file(folder.File("tokens.json"));
  const auto alice = file.Add(kAlice, "", std::nullopt);
  std::promise<void> asked, answer;
  auto options = OidcOptions(folder);
  options.fetch_keys = [&](std::stop_token stop) {
    asked.set_value();
    answer.get_future().wait();
    return AllKeys(stop);
  };
  Authenticator people(std::move(options));
  auto waiting = std::async(std::launch::async, [&] { return Ask(people, issued::kRs256Token); });
  asked.get_future().wait();
  CHECK(Ask(people, alice->text) == alice->token.principal);
  CHECK(ReasonOf(Ask(people, "a.b.c")) == "invalid_token");
  answer.set_value();
  CHECK(waiting.get() == kAlice);
}

TEST_CASE("Authenticator: a stop answers all callers, and nothing is fetched after it", "[people]") {
  const TempDirectory folder;
  std::promise<void> asked;
  auto options = OidcOptions(folder);
  options.fetch_keys = [&](const std::stop_token& stop) -> Result<std::vector<IssuerKey>> {
    std::promise<void> stopped;
    const std::stop_callback on_stop(stop, [&] { stopped.set_value(); });
    asked.set_value();
    stopped.get_future().wait();
    return Fail(ErrorCode::kCancelled, "stopped");
  };
  Authenticator people(std::move(options));
  auto waiting = std::async(std::launch::async, [&] { return Ask(people, issued::kRs256Token); });
  asked.get_future().wait();
  people.Stop();
  CHECK(ReasonOf(waiting.get()) == "issuer_unreachable");
  CHECK(ReasonOf(Ask(people, issued::kEs256Token)) == "stopping");
  people.Stop();
}

}  // namespace reprise::authenticator_test
