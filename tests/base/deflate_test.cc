#include "base/deflate.h"

#include "support/test.h"

namespace reprise::deflate_test {

constexpr std::size_t kRoom = std::size_t{1} << 20;

TEST_CASE("Deflate: what is packed is read again", "[base]") {
  std::string mixed;
  for (unsigned i = 0, x = 1; i < 100'000; ++i) mixed += static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
  for (const std::string& text : {std::string(), std::string("a"), std::string(70'000, 'a'), mixed}) {
    const std::string packed = Deflate(text);
    CAPTURE(text.size());
    CHECK(Inflate(packed, Packing::kDeflate, text.size()) == text);
    if (!text.empty()) CHECK_FALSE(Inflate(packed, Packing::kDeflate, text.size() - 1));
    CHECK_FALSE(Inflate(packed + "x", Packing::kDeflate, kRoom));
    CHECK_FALSE(Inflate(packed, Packing::kGzip, kRoom));
    for (std::size_t cut = 0; cut < packed.size(); cut += packed.size() / 50 + 1) {
      CHECK_FALSE(Inflate(std::string_view(packed).substr(0, cut), Packing::kDeflate, kRoom));
    }
  }
}

TEST_CASE("Deflate: reads what gzip wrote", "[base]") {
  // printf 'abc' | gzip -n
  const std::string_view gzip("\x1f\x8b\x08\0\0\0\0\0\0\x03KLJ\x06\0\xc2\x41\x24\x35\x03\0\0\0", 23);
  CHECK(Inflate(gzip, Packing::kGzip, kRoom) == "abc");
  CHECK_FALSE(Inflate(gzip, Packing::kDeflate, kRoom));
  CHECK_FALSE(Inflate(gzip.substr(0, 20), Packing::kGzip, kRoom));
}

}  // namespace reprise::deflate_test
