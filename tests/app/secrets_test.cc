#include "app/secrets.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "support/test.h"

namespace reprise::secrets_test {
namespace {

using Texts = std::vector<std::string>;

const char* const kNothing[] = {nullptr};

Texts SecretsOfServer(McpServerOptions server) {
  Options options;
  options.mcp_servers.push_back(std::move(server));
  return SecretsOf(options, kNothing);
}

}  // namespace

TEST_CASE("NamesSecret: what is called like a key, a token or a password", "[app]") {
  for (const char* name :
       {"OPENAI_API_KEY", "openai_apikey", "MY_PRIVATE_KEY", "ENCRYPTION_KEY", "STRIPE_KEY", "key", "GITHUB_TOKEN",
        "CLIENT_SECRET", "PASSWORD", "DB_PASSWD", "DB_PWD", "MYSQL_PWD", "PASSPHRASE", "AWS_CREDENTIALS",
        "CREDENTIAL_1", "Authorization", "Proxy-Authorization", "X-Auth-Key", "X-Api-Key"}) {
    INFO(name);
    CHECK(NamesSecret(name));
  }
  for (const char* name : {"", "PATH", "HOME", "PWD", "OLDPWD", "PASSWORD_STORE_DIR", "KEY_PATH", "TOKEN_URL",
                           "API_KEY_FILE", "KEYBOARD", "MONKEY", "KEY_ID", "SSH_AUTH_SOCK", "Cookie", "Accept"}) {
    INFO(name);
    CHECK_FALSE(NamesSecret(name));
  }
}

TEST_CASE("SecretsOf: the environment's, by name", "[app]") {
  const char* const environment[] = {"MY_PRIVATE_KEY=abcdefgh=1",
                                     "PASSWORD_STORE_DIR=/home/me/.password-store",
                                     "PWD=/home/me/project",
                                     "DB_PWD=correct-horse",
                                     "EMPTY_KEY=",
                                     "NO_VALUE_KEY",
                                     "SHORT_KEY=main",
                                     nullptr};
  Options options;
  options.providers.push_back({.name = "p", .type = "openai", .base_url = "", .api_key = "sk-provider"});
  const Texts secrets = SecretsOf(options, environment);
  CHECK(secrets == Texts{"sk-provider", "abcdefgh=1", "correct-horse", "", "main"});
  // Short ones are left alone.
  CHECK(Redactor(secrets).Redacted("int main, abcdefgh=1, /home/me/.password-store") ==
        "int main, [redacted], /home/me/.password-store");
}

TEST_CASE("SecretsOf: what providers are sent, by name", "[app]") {
  const char* const environment[] = {nullptr};
  Options options;
  options.providers.push_back({.name = "p",
                               .type = "openai",
                               .base_url = "",
                               .api_key = "sk-provider",
                               .headers = {{"X-Route", "a long word, no secret"}, {"X-Api-Key", "k-12345678"}},
                               .query = {{"api-version", "2024-10-21-preview"}, {"token", "a%2Fb"}}});
  CHECK(SecretsOf(options, environment) == Texts{"sk-provider", "k-12345678", "a%2Fb", "a/b"});
}

TEST_CASE("SecretsOf: what signs for the bucket", "[app]") {
  const char* const environment[] = {nullptr};
  Options options;
  options.bucket = BucketOptions{.endpoint = "https://s3", .bucket = "b", .access_key = "me", .secret_key = "c/d+e"};
  CHECK(SecretsOf(options, environment) == Texts{"c/d+e"});
}

TEST_CASE("SecretsOf: what a log-in at an MCP server is done with", "[app]") {
  CHECK(SecretsOfServer({.name = "s",
                         .command = "",
                         .url = "https://x",
                         .auth = McpAuthOptions{.client_id = "me", .client_secret = "hidden"}}) == Texts{"hidden"});
}

TEST_CASE("WithoutPassword: wherever libpq takes one", "[app]") {
  CHECK(WithoutPassword("postgresql://u:p%40ss@db:5432/x") == "postgresql://u:***@db:5432/x");
  CHECK(WithoutPassword("postgresql://u@db/x?sslmode=require&password=hidden12") ==
        "postgresql://u@db/x?sslmode=require&password=***");
  CHECK(WithoutPassword("host=db password = 'hid den' user=u") == "host=db password = '***' user=u");
  CHECK(WithoutPassword("host=db password=hid\\ den") == "host=db password=***");
  CHECK(WithoutPassword("host=db user=u") == "host=db user=u");
}

TEST_CASE("SecretsOf: passwords of the database and of Redis", "[app]") {
  const char* const environment[] = {nullptr};
  Options options;
  options.store = {.type = StoreOptions::Type::kPostgres,
                   .url = "postgresql://u:for-the-database@h/d",
                   .listen_url = "postgresql://u:for-listening@h/d"};
  options.redis.urls = {"redis://:word%2Fone@h", "rediss://u:word-two@h:1/2"};
  const Texts secrets = SecretsOf(options, environment);
  for (const char* word : {"for-the-database", "for-listening", "word%2Fone", "word/one", "word-two"}) {
    CAPTURE(word);
    CHECK(std::find(secrets.begin(), secrets.end(), word) != secrets.end());
  }
}

TEST_CASE("SecretsOf: what MCP servers are sent", "[app]") {
  CHECK(SecretsOfServer({.name = "s",
                         .command = "c",
                         .environment = {{"STRIPE_KEY", "sk_live_1"}, {"LOG_LEVEL", "a long value of no interest"}}}) ==
        Texts{"sk_live_1"});
  CHECK(SecretsOfServer({.name = "s",
                         .command = "",
                         .headers = {{"Authorization", "Bearer abc.def"},
                                     {"X-Auth-Key", "k-12345678"},
                                     {"X-Session", "0123456789abcdef"},
                                     {"X-Stage", "production"},
                                     {"Accept-Language", "en-GB, en;q=0.8, de;q=0.5"},
                                     {"Content-Type", "application/json"},
                                     {"Cookie", "session=fedcba9876543210; theme=dark-mode; csrf_token=t-12345"}}}) ==
        Texts{"abc.def", "k-12345678", "0123456789abcdef", "fedcba9876543210", "t-12345"});
  CHECK(SecretsOfServer({.name = "s",
                         .command = "",
                         .url = "https://e.org/mcp?key=k%2B123456&mode=readonly&flag&s=0123456789abcdef#x?key=no"}) ==
        Texts{"k%2B123456", "k+123456", "0123456789abcdef", "0123456789abcdef"});
  CHECK(SecretsOfServer({.name = "s", .command = "", .url = "https://e.org/mcp"}).empty());
  CHECK(SecretsOfServer({.name = "s", .command = "", .url = "https://e.org/mcp?"}).empty());
}

}  // namespace reprise::secrets_test
