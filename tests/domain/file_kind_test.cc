#include "domain/file_kind.h"

#include <string>

#include "support/test.h"

namespace reprise::file_kind_test {
namespace {

using namespace std::string_literals;

std::string Png(int width, int height) {
  const auto number = [](int n) {
    return std::string{static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8),
                       static_cast<char>(n)};
  };
  return std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16) + number(width) + number(height) + std::string(9, '\0') +
         std::string("\0\0\0\0IEND\xae\x42\x60\x82", 12);
}

}  // namespace

TEST_CASE("NatureOf: judges a file by its bytes, not by its name", "[domain]") {
  const FileNature image = NatureOf("x.txt", "text/plain", Png(750, 1000));
  CHECK((image.kind == FileKind::kImage && image.mime_type == "image/png" && image.tokens == 1001));
  CHECK(NatureOf("x", "", Png(8000, 8000)).tokens == 1600);
  CHECK(NatureOf("x", "", Png(1, 1)).tokens == 100);
  CHECK(NatureOf("x", "", std::string("\xff\xd8\xff\xe0\0\4ab\xff\xc0\0\x11\x08\0\x40\0\x40\0\0\0", 20)).mime_type ==
        "image/jpeg");
  CHECK(NatureOf("x", "", "GIF89a\1").mime_type == "image/gif");
  CHECK(NatureOf("x.png", "image/png", "plain words").kind == FileKind::kText);
  CHECK(NatureOf("x.png", "image/png", std::string("\0", 1)).kind == FileKind::kOther);
  CHECK(NatureOf("x.docx", "", "words").kind == FileKind::kText);
  CHECK(NatureOf("x.docx", "", "\xd0\xcf\x11\xe0").kind == FileKind::kOffice);
  CHECK(NatureOf("x.docx", "", "").kind == FileKind::kText);
  CHECK(NatureOf("x", "", std::string("PK\3\4\0 xl/workbook.xml", 21)).mime_type.ends_with("spreadsheetml.sheet"));
  CHECK(NatureOf("x.zip", "application/zip", std::string("PK\3\4\0 x.txt", 11)).kind == FileKind::kOther);
  CHECK(NatureOf("x.HTM", "", "<p>").kind == FileKind::kHtml);
  CHECK(NatureOf("x.mp3", "audio/mpeg", std::string("ID3\4\0", 5)).kind == FileKind::kAudio);
  CHECK(NatureOf("x", "", std::string("OggS\0", 5)).mime_type == "audio/ogg");
  CHECK(NatureOf("x.md", "", "A PDF begins with %PDF-1.7").kind == FileKind::kText);
  CHECK(NatureOf("x.md", "", "\n%PDF-1.7").kind == FileKind::kPdf);
}

TEST_CASE("NatureOf: an image that no model takes says why", "[domain]") {
  const auto problem = [](const std::string& content) { return NatureOf("x", "", content).problem; };
  CHECK(problem(Png(8000, 1)).empty());
  CHECK(problem(Png(8001, 1)) == "it has 8001 x 1 pixels, and models take images of up to 8000 a side");
  CHECK(problem(Png(-1, -1)).starts_with("it has 4294967295 x 4294967295 pixels"));
  CHECK(problem(Png(0, 1)) == "it is damaged");
  CHECK(problem(Png(1, 1).substr(0, 40)) == "it is cut short");
  const std::string jpeg = "\xff\xd8\xff\xe0\0\4ab\xff\xc0\0\x0b\x08\0\x40\0\x40\1\1\1\1\xff\xda\0\2data\xff\xd9"s;
  CHECK(problem(jpeg).empty());
  for (std::size_t size = 3; size < jpeg.size(); ++size) CHECK(problem(jpeg.substr(0, size)) == "it is cut short");
  const std::string gif = "GIF89a\x8\0\x8\0\0\0\0!\xf9\4\0\0\0\0\0,\0\0\0\0\x8\0\x8\0\0\2\2aa\0;"s;
  CHECK(problem(gif).empty());
  for (std::size_t size = 6; size < gif.size(); ++size) CHECK(problem(gif.substr(0, size)) == "it is cut short");
  const std::string webp = std::string("RIFF\x16\0\0\0WEBPVP8X", 16) + std::string(14, '\0');
  CHECK(problem(webp).empty());
  CHECK(problem(webp.substr(0, 29)) == "it is cut short");
}

TEST_CASE("NatureOf: survives headers cut at any byte", "[domain]") {
  const std::string whole[] = {Png(3, 3), "\xff\xd8\xff\xe0\xff\xff",
                               std::string("RIFF\0\0\0\0WEBPVP8X", 16) + "0123456789abcd", "GIF89a\1\2\3\4",
                               "%PDF-1.7 /Type /Page"};
  for (const std::string& each : whole) {
    for (std::size_t size = 0; size <= each.size(); ++size) CHECK(NatureOf("f", "", each.substr(0, size)).tokens >= 0);
  }
}

TEST_CASE("NatureOf: counts the pages of a PDF, or estimates them from its size", "[domain]") {
  const FileNature two = NatureOf("x", "", "%PDF-1.4 << /Type /Pages >> << /Type /Page >> <</Type/Page/Parent 1 0 R>>");
  CHECK((two.kind == FileKind::kPdf && two.pages == 2 && two.tokens == 2 * kTokensPerPage));
  const FileNature unseen = NatureOf("x", "", "%PDF-1.5 " + std::string(120'000, 'x'));
  CHECK((unseen.pages == 0 && unseen.tokens == 3 * kTokensPerPage));
  CHECK(NatureOf("x", "", "%PDF-1.4 <</Type/Page>> <</Encrypt 4 0 R>>").tokens == 0);
}

}  // namespace reprise::file_kind_test
