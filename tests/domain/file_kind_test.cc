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

// The texts are in octal, byte by byte.
TEST_CASE("NatureOf: text in Windows-1252 is read, other code pages are not guessed", "[domain]") {
  const auto kind = [](const std::string& content) { return NatureOf("x.txt", "text/plain", content).kind; };
  for (const std::string text : {"M\374ller caf\351 na\357ve \223quoted\224 \226 100 \200 ",
                                 "Gr\374\337e aus K\366ln: \202Stra\337e\221 \226 5 \260C\205",
                                 "L\222\351t\351, on a \253d\351j\340\273 vu \340 l\222\234uvre les \351l\350ves",
                                 "Se\361or \277qu\351? \241Ol\351!", "hyv\344\344 p\344\344\366ljy\344 kaikille",
                                 "it\222s", "name;price\012caf\351;5 \200"}) {
    INFO(text);
    std::string many;
    for (int i = 0; i < 100; ++i) many += text;
    CHECK(kind(text) == FileKind::kEncodedText);
    CHECK(kind(many) == FileKind::kEncodedText);
    CHECK(kind(text + '\1') == FileKind::kOther);
    CHECK(kind(text + '\0') == FileKind::kOther);
    CHECK(kind(text + "\x81") == FileKind::kOther);
  }
  // In Windows-1251, KOI8-R, Shift-JIS, GB18030, Windows-1253 and Windows-1255; the last is half English.
  for (const std::string text :
       {"\321\372\345\370\374 \346\345 \345\371\270 \375\362\350\365 \354\377\343\352\350\365 "
        "\364\360\340\355\366\363\347\361\352\350\365 \341\363\353\356\352, \344\340 \342\373\357\345\351 "
        "\367\340\376. ",
        "\320\322\311\327\305\324 \315\311\322",
        "\223\372\226{\214\352\202\314\203e\203X\203g\225\266\217\315\202\305\202\267\201B",
        "\326\320\316\304\262\342\312\324\316\304\325\302", "\312\341\353\347\354\335\361\341 \352\374\363\354\345",
        "\371\354\345\355 \362\345\354\355",
        "Use the menu \324\340\351\353 and \317\360\340\342\352\340, then press the button "
        "\321\356\365\360\340\355\350\362\374"}) {
    INFO(text);
    CHECK(kind(text) == FileKind::kOther);
  }
  // Bytes by chance, even without control characters.
  std::uint32_t state = 1;
  for (int size = 8; size < 400; ++size) {
    std::string noise;
    while (noise.size() < static_cast<std::size_t>(size)) {
      state = state * 1664525 + 1013904223;
      const auto c = static_cast<unsigned char>(state >> 24);
      if (c >= 0x20 && c != 0x7f) noise += static_cast<char>(c);
    }
    CHECK(kind(noise) == FileKind::kOther);
  }
}

TEST_CASE("EndingOf: a file without a name gets the usual ending of its type, or none", "[domain]") {
  CHECK(EndingOf("image/png") == ".png");
  CHECK(EndingOf("image/jpeg") == ".jpg");
  CHECK(EndingOf("image/svg+xml") == ".svg");
  CHECK(EndingOf("text/markdown") == ".md");
  CHECK(EndingOf("png") == ".png");
  for (const char* const none : {"", "image/", "application/octet-stream", "a/../b"}) CHECK(EndingOf(none).empty());
}

}  // namespace reprise::file_kind_test
