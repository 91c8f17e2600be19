#include "support/test.h"
#include "tools/tool_fixture.h"

namespace reprise::http_get_tool_test {
namespace {

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }
constexpr const char* kCall = R"({"url":"https://example.org/x"})";

}  // namespace

TEST_CASE_METHOD(ToolFixture, "http_get: shows status, content type and text", "[tools]") {
  transport.chunks = {"hel", "lo"};
  const auto outcome = Run("http_get", kCall);
  CHECK_FALSE(outcome.is_error);
  CHECK(outcome.output == "HTTP status 200\ncontent-type: text/plain\n\nhello");
}

TEST_CASE_METHOD(ToolFixture, "http_get: asks for public addresses only, within limits", "[tools]") {
  Run("http_get", kCall);
  CHECK(transport.last_request.method == "GET");
  CHECK(transport.last_request.url == "https://example.org/x");
  CHECK(transport.last_request.public_addresses_only);
  CHECK(transport.last_request.max_redirects == 5);
  CHECK(transport.last_request.total_timeout == std::chrono::milliseconds(20'000));
  Run("http_get", kCall, Within(std::chrono::milliseconds(700)));
  CHECK(transport.last_request.total_timeout == std::chrono::milliseconds(700));
  auto options = Options();
  options.http.allow_private_addresses = true;
  Rebuild(std::move(options));
  Run("http_get", kCall);
  CHECK_FALSE(transport.last_request.public_addresses_only);
}

TEST_CASE_METHOD(ToolFixture, "http_get: sends nothing for other URLs", "[tools]") {
  for (const char* url : {"file:///etc/passwd", "ftp://a", "example.org", "http://a b", "gopher://x", " http://a",
                          "http://a\\r\\nX: y"}) {
    INFO(url);
    CHECK(Run("http_get", std::string(R"({"url":")") + url + "\"}").is_error);
  }
  CHECK(transport.requests == 0);
  CHECK_FALSE(Run("http_get", R"({"url":"HTTP://EXAMPLE.ORG"})").is_error);
}

TEST_CASE_METHOD(ToolFixture, "http_get: a long body is cut and the transfer ended", "[tools]") {
  transport.chunks.assign(100, std::string(64 * 1024, 'x'));
  const auto outcome = Run("http_get", kCall);
  CHECK(Has(outcome.output, "(cut: the body has more than 1048576 bytes)"));
  CHECK(outcome.output.size() < 1024 * 1024 + 200);
  CHECK(transport.chunks_taken == 17);
}

TEST_CASE_METHOD(ToolFixture, "http_get: describes a body that is not text", "[tools]") {
  transport.chunks = {std::string("\x89PNG\0", 5)};
  transport.headers = {{"content-type", "image/png"}};
  CHECK(Has(Run("http_get", kCall).output, "(the body is not text and is not shown: 5 bytes)"));
  transport.headers = {{"content-type", "text/plain"}};
  CHECK(Has(Run("http_get", kCall).output, "not text"));
  transport.chunks = {"{}"};
  transport.headers = {{"content-type", "application/problem+json; charset=utf-8"}};
  CHECK(Has(Run("http_get", kCall).output, "\n\n{}"));
  transport.chunks = {"\xff\xfe"};
  transport.headers = {{"content-type", "text/html"}};
  CHECK(Has(Run("http_get", kCall).output, "\xef\xbf\xbd\xef\xbf\xbd"));
}

TEST_CASE_METHOD(ToolFixture, "http_get: failures are results the model reads", "[tools]") {
  transport.status = 404;
  const auto missing = Run("http_get", kCall);
  CHECK(missing.is_error);
  CHECK(Has(missing.output, "HTTP status 404"));
  transport.failure = MakeError(ErrorCode::kForbidden, "the address is not allowed");
  CHECK(Run("http_get", kCall).output == "cannot fetch the url: the address is not allowed");
  CHECK_FALSE(Run("http_get", kCall).transient);
  transport.failure->reason = "connection_failed";
  CHECK(Run("http_get", kCall).transient);
  transport.failure->reason = "total_timeout";
  CHECK_FALSE(Run("http_get", kCall).transient);
  transport.failure = MakeError(ErrorCode::kCancelled, "x");
  CHECK(Run("http_get", kCall).output == "cancelled");
}

}  // namespace reprise::http_get_tool_test
