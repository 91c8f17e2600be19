#include "base/text.h"
#include "support/test.h"

namespace reprise::base64url_test {

TEST_CASE("Base64Url: the vectors of RFC 4648 without padding", "[base]") {
  const std::pair<std::string, std::string> vectors[] = {
      {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},          {"foo", "Zm9v"},
      {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}, {"\xfb\xff\xfe", "-__-"}};
  for (const auto& [bytes, text] : vectors) {
    CHECK(EncodeBase64Url(bytes) == text);
    CHECK(DecodeBase64Url(text) == bytes);
  }
}

TEST_CASE("Base64Url: refuses non-canonical text", "[base]") {
  for (const char* text : {"Zg==", "Zh", "Zm9", "Z", "Zm9v\n", "Zm 9v", "+/+/", "Zm9vY", "Zm\"v"}) {
    CAPTURE(text);
    CHECK_FALSE(DecodeBase64Url(text));
  }
}

TEST_CASE("Base64: is written padded, and read as others write it", "[base]") {
  for (const auto& [bytes, text] : std::vector<std::pair<std::string, std::string>>{
           {"", ""}, {"f", "Zg=="}, {"foob", "Zm9vYg=="}, {"\xfb\xff", "+/8="}}) {
    CHECK(EncodeBase64(bytes) == text);
    CHECK(DecodeBase64(text) == bytes);
  }
  for (const char* const text : {"-_8", "+/8", "+/\r\n8=\n"}) CHECK(DecodeBase64(text) == "\xfb\xff");
  for (const char* const text : {"Zg==Zg==", "Z", "Zm9v*A=="}) CHECK_FALSE(DecodeBase64(text));
}

TEST_CASE("Joined: puts the separator between texts", "[base]") {
  CHECK(Joined(std::vector<std::string>{}, ", ").empty());
  CHECK(Joined(std::vector<std::string>{"a", "", "b"}, ", ") == "a, , b");
  CHECK(Joined(std::vector<std::string>{"", "a"}, "\n") == "a");
}

TEST_CASE("Base64Url: every text of up to three characters decodes to bytes that encode to it, or not at all",
          "[base]") {
  std::size_t accepted = 0;
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::string two{static_cast<char>(a), static_cast<char>(b)};
      if (const auto bytes = DecodeBase64Url(two)) {
        ++accepted;
        REQUIRE(EncodeBase64Url(*bytes) == two);
      }
      const std::string four = "A" + two + "A";
      if (const auto bytes = DecodeBase64Url(four)) REQUIRE(EncodeBase64Url(*bytes) == four);
      const std::string three = "A" + two;
      if (const auto bytes = DecodeBase64Url(three)) REQUIRE(EncodeBase64Url(*bytes) == three);
    }
  }
  CHECK(accepted == 256);
}

}  // namespace reprise::base64url_test
