#include "domain/file_kind.h"

#include <string>

#include "support/test.h"

namespace reprise::file_kind_test {
namespace {

std::string Png(int width, int height) {
  const auto number = [](int n) {
    return std::string{static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8),
                       static_cast<char>(n)};
  };
  return std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16) + number(width) + number(height) + std::string(5, '\0');
}

}  // namespace

TEST_CASE("NatureOf: the bytes say what a file is, whatever it is called", "[domain]") {
  const FileNature image = NatureOf("x.txt", "text/plain", Png(750, 1000));
  CHECK((image.kind == FileKind::kImage && image.mime_type == "image/png" && image.tokens == 1001));
  CHECK(NatureOf("x", "", Png(100'000, 100'000)).tokens == 1600);
  CHECK(NatureOf("x", "", Png(1, 1)).tokens == 100);
  CHECK(NatureOf("x", "", std::string("\xff\xd8\xff\xe0\0\4ab\xff\xc0\0\x11\x08\0\x40\0\x40\0\0\0", 20)).mime_type ==
        "image/jpeg");
  CHECK(NatureOf("x", "", "GIF89a\1").mime_type == "image/gif");
  CHECK(NatureOf("x.png", "image/png", "plain words").kind == FileKind::kText);
  CHECK(NatureOf("x.png", "image/png", std::string("\0", 1)).kind == FileKind::kOther);
  CHECK(NatureOf("x.docx", "", "anything").kind == FileKind::kOffice);
  CHECK(NatureOf("x.HTM", "", "<p>").kind == FileKind::kHtml);
  CHECK(NatureOf("x.mp3", "audio/mpeg", std::string("ID3\4\0", 5)).kind == FileKind::kAudio);
}

TEST_CASE("NatureOf: headers that are cut anywhere are no harm", "[domain]") {
  const std::string whole[] = {Png(3, 3), "\xff\xd8\xff\xe0\xff\xff",
                               std::string("RIFF\0\0\0\0WEBPVP8X", 16) + "0123456789abcd", "GIF89a\1\2\3\4",
                               "%PDF-1.7 /Type /Page"};
  for (const std::string& each : whole) {
    for (std::size_t size = 0; size <= each.size(); ++size) CHECK(NatureOf("f", "", each.substr(0, size)).tokens >= 0);
  }
}

TEST_CASE("NatureOf: pages of a PDF are counted, those that cannot be seen by its size", "[domain]") {
  const FileNature two = NatureOf("x", "", "%PDF-1.4 << /Type /Pages >> << /Type /Page >> <</Type/Page/Parent 1 0 R>>");
  CHECK((two.kind == FileKind::kPdf && two.pages == 2 && two.tokens == 2 * kTokensPerPage));
  CHECK(NatureOf("x", "", "%PDF-1.5 " + std::string(120'000, 'x')).pages == 3);
}

}  // namespace reprise::file_kind_test
