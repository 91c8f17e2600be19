#include "mcp/oauth_flow.h"

#include <future>
#include <map>
#include <string>
#include <vector>

#include "base/posix_file_system.h"
#include "mcp/oauth_authorizer.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::oauth_flow_test {
namespace {

// Answers by the URL, with 404 where there is nothing, and keeps what it was asked.
class Web final : public Transport {
 public:
  void Send(HttpRequest request, HttpResponseHandler& handler, std::stop_token, Done done) override {
    const auto found = pages.find(request.url);
    requests.push_back(std::move(request));
    handler.OnHead(found == pages.end() ? 404 : 200, {{"content-type", "application/json"}});
    if (found != pages.end()) handler.OnData(found->second);
    handler.OnBatchEnd();
    done({});
  }

  std::map<std::string, std::string> pages;
  std::vector<HttpRequest> requests;
};

constexpr const char* kServer = "https://mcp.example/mcp";
constexpr const char* kRedirect = "http://127.0.0.1:7/mcp/callback";

struct World {
  explicit World(const std::string& issuer = "https://auth.example") {
    web.pages["https://mcp.example/.well-known/oauth-protected-resource/mcp"] =
        R"({"resource":"https://mcp.example/mcp","authorization_servers":[")" + issuer + R"("]})";
    web.pages[issuer + "/.well-known/oauth-authorization-server"] =
        R"({"issuer":")" + issuer + R"(","authorization_endpoint":")" + issuer + R"(/authorize","token_endpoint":")" +
        issuer + R"(/token","code_challenge_methods_supported":["S256"]})";
  }

  Result<OAuthAttempt> Begin(OAuthClientOptions options = {.client_id = "us"}) {
    return OAuthFlow(web, kServer, std::move(options)).Begin({}, kRedirect, {}, "", {});
  }

  Web web;
};

}  // namespace

TEST_CASE("OAuthFlow: the two halves of a log-in", "[mcp]") {
  World world;
  world.web.pages["https://auth.example/token"] =
      R"({"access_token":"abc","token_type":"bearer","refresh_token":"def","expires_in":60})";
  const OAuthFlow flow(world.web, kServer, {.client_id = "us", .client_secret = "s&s"});
  const auto attempt = flow.Begin({}, kRedirect, {}, "", {});
  REQUIRE(attempt.has_value());
  CHECK(attempt->url.starts_with("https://auth.example/authorize?response_type=code&client_id=us&"));
  const auto tokens = flow.Finish(*attempt, "code=c&state=" + attempt->state, {});
  REQUIRE(tokens.has_value());
  CHECK(tokens->access_token == "abc");
  CHECK(tokens->resource == kServer);
  const HttpRequest& asked = world.web.requests.back();
  CHECK(asked.body.find("code_verifier=" + attempt->verifier) != std::string::npos);
  CHECK(asked.body.find("resource=https%3A%2F%2Fmcp.example%2Fmcp") != std::string::npos);
  CHECK(asked.body.find("client_secret") == std::string::npos);  // it is in a header, both parts encoded
}

TEST_CASE("OAuthFlow: a server elsewhere can name only public addresses", "[mcp]") {
  World world("https://10.0.0.1");
  REQUIRE(world.Begin().has_value());
  for (const HttpRequest& request : world.web.requests)
    CHECK(request.public_addresses_only == !request.url.starts_with("https://mcp.example/"));
}

TEST_CASE("OAuthFlow: a server elsewhere cannot direct log-ins to this machine", "[mcp]") {
  for (const char* issuer : {"http://127.0.0.1:9", "https://localhost", "http://[::1]:9"}) {
    World world(issuer);
    const auto attempt = world.Begin();
    REQUIRE_FALSE(attempt.has_value());
    CHECK(attempt.error().message == "the server sends log-ins to this machine");
    CHECK(world.web.requests.size() == 1);
  }
}

TEST_CASE("OAuthFlow: an invalid answer does not use up the code", "[mcp]") {
  World world;
  const OAuthFlow flow(world.web, kServer, {.client_id = "us"});
  const auto attempt = flow.Begin({}, kRedirect, {}, "", {});
  REQUIRE(attempt.has_value());
  const std::size_t before = world.web.requests.size();
  const std::string state = "&state=" + attempt->state;
  for (const std::string& answer :
       {"code=c&iss=https%3A%2F%2Fother.example" + state, "code=c&iss=https%3A%2F%2Fauth.example%2F" + state,
        std::string("code=c&state=x"), std::string("code=c"), std::string(), "code=c&code=d" + state, "code=" + state,
        "code=%" + state, "error=access_denied" + state}) {
    CHECK_FALSE(flow.Finish(*attempt, answer, {}).has_value());
  }
  CHECK(world.web.requests.size() == before);
}

TEST_CASE("OAuthFlow: each authorization server has its own redirect URI", "[mcp]") {
  World one, other("https://other.example");
  const auto first = one.Begin(), second = other.Begin();
  REQUIRE((first && second));
  CHECK(first->redirect_uri != second->redirect_uri);
  CHECK(first->redirect_uri.starts_with(std::string(kRedirect) + "/"));
  CHECK(first->url.find(FormText({{"redirect_uri", first->redirect_uri}})) != std::string::npos);
  // A configured issuer has the plain address, so that its operator can be told it.
  const auto named = one.Begin({.client_id = "us", .issuer = "https://auth.example"});
  REQUIRE(named.has_value());
  CHECK(named->redirect_uri == kRedirect);
}

TEST_CASE("OAuthFlow: a server of 2025-03-26, which has no metadata", "[mcp]") {
  Web web;
  const OAuthFlow flow(web, kServer, {});
  SECTION("its authorization server describes itself") {
    for (const char* issuer : {"https://mcp.example", "https://mcp.example/"}) {
      web.pages["https://mcp.example/.well-known/oauth-authorization-server"] =
          R"({"issuer":")" + std::string(issuer) +
          R"(","authorization_endpoint":"https://mcp.example/a","token_endpoint":"https://mcp.example/t",)"
          R"("registration_endpoint":"https://mcp.example/r","code_challenge_methods_supported":["S256"]})";
      web.pages["https://mcp.example/r"] = R"({"client_id":"new"})";
      const auto attempt = flow.Begin({}, kRedirect, {}, "", {});
      REQUIRE(attempt.has_value());
      CHECK(attempt->url.starts_with("https://mcp.example/a?response_type=code&client_id=new&"));
      CHECK(attempt->url.find("resource=") == std::string::npos);
      CHECK(attempt->server.issuer == issuer);
    }
  }
  SECTION("or has its endpoints where that revision says") {
    web.pages["https://mcp.example/register"] = R"({"client_id":"new"})";
    web.pages["https://mcp.example/token"] = R"({"access_token":"abc","token_type":"bearer","refresh_token":"def"})";
    const auto attempt = flow.Begin({}, kRedirect, {}, "", {});
    REQUIRE(attempt.has_value());
    CHECK(attempt->url.starts_with("https://mcp.example/authorize?"));
    const auto tokens = flow.Finish(*attempt, "code=c&state=" + attempt->state, {});
    REQUIRE(tokens.has_value());
    CHECK(flow.Refresh(*tokens, {attempt->registration}, {}).has_value());
    for (const HttpRequest& request : web.requests) CHECK(request.body.find("resource=") == std::string::npos);
  }
  SECTION("but one that says where its metadata is must have it there") {
    CHECK_FALSE(
        flow.Begin({.resource_metadata = "https://mcp.example/m", .scope = {}, .error = {}}, kRedirect, {}, "", {})
            .has_value());
  }
}

TEST_CASE("OAuthFlow: a client registers for each log-in, because the server may have forgotten it", "[mcp]") {
  World world;
  std::string& metadata = world.web.pages["https://auth.example/.well-known/oauth-authorization-server"];
  metadata.insert(metadata.size() - 1, R"(,"registration_endpoint":"https://auth.example/register")");
  world.web.pages["https://auth.example/register"] = R"({"client_id":"new"})";
  const auto first = world.Begin({});
  REQUIRE(first.has_value());
  OAuthRegistration old = first->registration;
  old.client_id = "old";
  const OAuthFlow flow(world.web, kServer, {});
  CHECK(flow.Begin({}, kRedirect, {old}, "", {})->registration.client_id == "new");
  world.web.pages.erase("https://auth.example/register");  // it accepts no more registrations
  CHECK(flow.Begin({}, kRedirect, {old}, "", {})->registration.client_id == "old");
}

TEST_CASE("OAuthAuthorizer: a refresh names the client that logged in, as the server wants it", "[mcp]") {
  World world;
  std::string& server = world.web.pages["https://auth.example/.well-known/oauth-authorization-server"];
  server.pop_back();
  world.web.pages["https://auth.example/r"] = R"({"client_id":"new"})";
  world.web.pages["https://auth.example/token"] =
      R"({"access_token":"abc","token_type":"bearer","refresh_token":"def"})";
  OAuthClientOptions options;
  std::string expected;
  SECTION("with its secret in the form") {
    server += R"(,"token_endpoint_auth_methods_supported":["client_secret_post"]})";
    options = {.client_id = "us", .client_secret = "s"};
    expected = "&client_id=us&client_secret=s";
  }
  SECTION("with its registration, if the server takes no URL for it") {
    server += R"(,"registration_endpoint":"https://auth.example/r"})";
    options = {.client_metadata_url = "https://us.example/client.json"};
    expected = "&client_id=new";
  }
  SECTION("with the URL of its metadata") {
    server += R"(,"client_id_metadata_document_supported":true})";
    options = {.client_metadata_url = "https://us.example/client.json"};
    expected = "&" + FormText({{"client_id", "https://us.example/client.json"}});
  }
  const TempDirectory directory;
  PosixFileSystem disk;
  OAuthCredentials credentials(disk, directory.File("logins"), nullptr);
  const auto browser = [](const OAuthAttempt& attempt, const std::stop_token&) {
    return Result<std::string>("code=c&state=" + attempt.state);
  };
  for (const bool logs_in : {true, false}) {
    OAuthAuthorizer authorizer({.transport = world.web,
                                .credentials = credentials,
                                .server = "s",
                                .url = kServer,
                                .options = options,
                                .redirect_uri = kRedirect,
                                .browser = logs_in ? OAuthBrowser(browser) : nullptr});
    std::promise<Result<void>> renewed;
    authorizer.Renew({}, logs_in ? "" : "abc", /*is_second=*/false,
                     [&](Result<void> result) { renewed.set_value(std::move(result)); });
    CHECK(renewed.get_future().get().has_value());
  }
  const std::string& body = world.web.requests.back().body;
  CHECK(body.find("grant_type=refresh_token") != std::string::npos);
  CHECK(body.find(expected) != std::string::npos);
}

TEST_CASE("OAuthFlow: a configured client id belongs to the configured issuer", "[mcp]") {
  World world;
  CHECK(world.Begin({.client_id = "us", .issuer = "https://auth.example"}).has_value());
  CHECK_FALSE(world.Begin({.client_id = "us", .issuer = "https://else.example"}).has_value());
}

}  // namespace reprise::oauth_flow_test
