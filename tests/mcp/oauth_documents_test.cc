#include "mcp/oauth_documents.h"

#include "support/test.h"

namespace reprise::oauth_documents_test {
namespace {

const UrlParts kServer = *ParseUrl("https://mcp.example/a/mcp");

}  // namespace

TEST_CASE("ParseChallenge: the Bearer challenge among others", "[mcp]") {
  const auto found = ParseChallenge(
      R"(Basic realm="a, Bearer scope=\"x\"", Bearer resource_metadata="https://m.example/p", scope="a b", error=x, Digest q=1)");
  REQUIRE(found.has_value());
  CHECK(*found == OAuthChallenge{.resource_metadata = "https://m.example/p", .scope = "a b", .error = "x"});
  CHECK(ParseChallenge("bearer") == OAuthChallenge{});
  CHECK_FALSE(ParseChallenge("Basic realm=\"x\"").has_value());
  CHECK_FALSE(ParseChallenge("").has_value());
  CHECK(ParseChallenge("Bearer scope=\"\x01\"")->scope.empty());
  CHECK(ParseChallenge("Bearer scope=\"unclosed")->scope == "unclosed");
  CHECK(ParseChallenge("\xff Bearer ===\"\\")->scope.empty());
}

TEST_CASE("ParseUrl: ambiguous URLs are rejected", "[mcp]") {
  CHECK(ParseUrl("HTTPS://Example:443/P?q")->origin() == "https://example");
  CHECK(ParseUrl("https://example")->path == "/");
  CHECK(ParseUrl("http://[::1]:80/")->origin() == "http://[::1]");
  for (const char* bad : {"", "example", "ftp://x/", "https://", "https:///x", "https://user@x/", "https://x/#f",
                          "https://x\\y/", "https://x/a b", "https://x/\n", "https://:1/", "file:///etc/passwd"}) {
    INFO(bad);
    CHECK_FALSE(ParseUrl(bad).has_value());
  }
  CHECK(IsSafeOAuthUrl("https://x/"));
  CHECK(IsSafeOAuthUrl("http://127.0.0.1:9/"));
  for (const char* bad : {"http://x/", "http://localhost.evil/", "http://127.0.0.1.evil/", "http://127.0.0.1@evil/"}) {
    INFO(bad);
    CHECK_FALSE(IsSafeOAuthUrl(bad));
  }
}

TEST_CASE("Metadata URLs are in the order of the specification", "[mcp]") {
  CHECK(ResourceMetadataUrls(kServer) ==
        std::vector<std::string>{"https://mcp.example/.well-known/oauth-protected-resource/a/mcp",
                                 "https://mcp.example/.well-known/oauth-protected-resource"});
  CHECK(ServerMetadataUrls("https://as.example/t1") ==
        std::vector<std::string>{"https://as.example/.well-known/oauth-authorization-server/t1",
                                 "https://as.example/.well-known/openid-configuration/t1",
                                 "https://as.example/t1/.well-known/openid-configuration"});
  CHECK(ServerMetadataUrls("https://as.example/") ==
        std::vector<std::string>{"https://as.example/.well-known/oauth-authorization-server",
                                 "https://as.example/.well-known/openid-configuration"});
}

TEST_CASE("ReadResourceMetadata: only for the server itself, or a resource above it", "[mcp]") {
  const std::string own = ResourceMetadataUrls(kServer).front(), root = ResourceMetadataUrls(kServer).back();
  const auto read = [&](const std::string& resource, const std::string* from = nullptr) {
    return ReadResourceMetadata(
        R"({"resource":")" + resource + R"(","authorization_servers":["ftp://x","https://as.example"]})", kServer,
        from ? *from : own);
  };
  for (const char* good :
       {"https://mcp.example/a/mcp", "https://mcp.example/a", "https://mcp.example", "https://MCP.example:443/a/"}) {
    INFO(good);
    REQUIRE(read(good).has_value());
    CHECK(read(good)->authorization_servers == std::vector<std::string>{"https://as.example"});
    // A token for the whole origin: only for the origin itself.
    const bool is_origin = ParseUrl(good)->path == "/";
    CHECK(read(good)->resource == (is_origin ? "https://mcp.example/a/mcp" : good));
    CHECK(read(good, &root)->resource == good);
  }
  for (const char* bad : {"https://evil.example/a/mcp", "http://mcp.example/a/mcp", "https://mcp.example/a/mc",
                          "https://mcp.example/b", "https://mcp.example:8443/a/mcp", ""}) {
    INFO(bad);
    CHECK_FALSE(read(bad).has_value());
  }
  CHECK_FALSE(ReadResourceMetadata(R"({"resource":"https://mcp.example"})", kServer, own).has_value());
  CHECK_FALSE(ReadResourceMetadata(
                  R"({"resource":"https://mcp.example","authorization_servers":["http://as.example"]})", kServer, own)
                  .has_value());
}

TEST_CASE("ReadServerMetadata: only the issuer's, with PKCE and safe endpoints", "[mcp]") {
  const auto read = [](const std::string& more, const std::string& issuer = "https://as.example") {
    return ReadServerMetadata(
        R"({"issuer":"https://as.example","authorization_endpoint":"https://as.example/a",)" + more, issuer);
  };
  const std::string rest = R"("token_endpoint":"https://as.example/t","code_challenge_methods_supported":["S256"]})";
  REQUIRE(read(rest).has_value());
  CHECK_FALSE(read(rest)->says_issuer);
  CHECK_FALSE(read(rest, "https://as.example/").has_value());
  CHECK_FALSE(read(R"("token_endpoint":"https://as.example/t","code_challenge_methods_supported":["plain"]})"));
  CHECK_FALSE(read(R"("token_endpoint":"https://as.example/t"})").has_value());
  CHECK_FALSE(read(R"("token_endpoint":"http://as.example/t","code_challenge_methods_supported":["S256"]})"));
  CHECK_FALSE(read("").has_value());
}

TEST_CASE("Forms and scopes", "[mcp]") {
  CHECK(FormText({{"a b", "ü&="}, {"c", ""}}) == "a%20b=%C3%BC%26%3D&c=");
  const auto form = ParseForm("a+b=%C3%BC&c&&d=1=2");
  REQUIRE(form.has_value());
  CHECK(*form == std::vector<std::pair<std::string, std::string>>{{"a b", "ü"}, {"c", ""}, {"d", "1=2"}});
  for (const char* bad : {"a=1&a=2", "a=%", "a=%4", "a=%zz", "a=%ff"}) {
    INFO(bad);
    CHECK_FALSE(ParseForm(bad).has_value());
  }
  CHECK(ScopeUnion("a b", " b  c ") == "a b c");
}

}  // namespace reprise::oauth_documents_test
