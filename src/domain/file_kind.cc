#include "domain/file_kind.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/text.h"
#include "reprise/file_store.h"

namespace reprise {

namespace {

constexpr std::int64_t kMostPixelsASide = 8000;  // Anthropic's limit; other providers scale down smaller images
constexpr const char* kCut = "it is cut short";
constexpr const char* kDamaged = "it is damaged";

// Reads numbers from an image's bytes. Those past the end are 0, and the object remembers that they were read.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}
  std::size_t size() const { return bytes_.size(); }
  std::uint8_t At(std::size_t at) const { return at < bytes_.size() ? static_cast<std::uint8_t>(bytes_[at]) : 0; }
  std::int64_t Big(std::size_t at, std::size_t count) const {
    std::int64_t number = 0;
    for (std::size_t i = 0; i < count; ++i) number = number << 8 | At(at + i);
    return number;
  }
  std::int64_t Little(std::size_t at, std::size_t count) const {
    std::int64_t number = 0;
    for (std::size_t i = count; i-- > 0;) number = number << 8 | At(at + i);
    return number;
  }
  bool Has(std::size_t at, std::string_view text) const {
    return at <= bytes_.size() && bytes_.substr(at).starts_with(text);
  }
  bool HasLater(std::size_t at, std::string_view text) const { return bytes_.find(text, at) != std::string_view::npos; }

 private:
  const std::string_view bytes_;
};

// https://www.w3.org/TR/png-3/#5DataRep: chunks of length, type, data and checksum, from IHDR to IEND.
ImageFacts LookAtPng(const Bytes& png) {
  ImageFacts facts{.mime_type = "image/png", .width = png.Big(16, 4), .height = png.Big(20, 4)};
  if (png.size() >= 16 && !png.Has(12, "IHDR")) facts.problem = kDamaged;
  for (std::size_t at = 8; facts.problem.empty() && !png.Has(at + 4, "IEND");) {
    at += 12 + static_cast<std::size_t>(png.Big(at, 4));
    if (at + 12 > png.size()) facts.problem = kCut;
  }
  return facts;
}

// ITU T.81, B.1: markers, most with a length. The frame header (SOF) has the size; the data lies between the first scan
// (SOS) and the end (EOI).
ImageFacts LookAtJpeg(const Bytes& jpeg) {
  ImageFacts facts{.mime_type = "image/jpeg"};
  for (std::size_t at = 2;;) {
    if (at + 4 > jpeg.size()) {
      facts.problem = kCut;
      return facts;
    }
    const std::uint8_t marker = jpeg.At(at + 1);
    const auto length = static_cast<std::size_t>(jpeg.Big(at + 2, 2));
    if (marker == 0xff) {  // fills
      ++at;
      continue;
    }
    if (jpeg.At(at) != 0xff || length < 2) {
      facts.problem = kDamaged;
      return facts;
    }
    if (marker == 0xda) {
      if (!jpeg.HasLater(at, "\xff\xd9")) facts.problem = kCut;
      return facts;
    }
    if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
      facts.height = jpeg.Big(at + 5, 2);
      facts.width = jpeg.Big(at + 7, 2);
    }
    at += 2 + length;
  }
}

// https://www.w3.org/Graphics/GIF/spec-gif89a.txt: blocks, to the trailer.
ImageFacts LookAtGif(const Bytes& gif) {
  ImageFacts facts{.mime_type = "image/gif", .width = gif.Little(6, 2), .height = gif.Little(8, 2)};
  const auto colours = [&](std::size_t flags) {
    return (gif.At(flags) & 0x80) == 0 ? std::size_t{0} : std::size_t{3} << ((gif.At(flags) & 7) + 1);
  };
  const auto after_data = [&](std::size_t at) {
    while (gif.At(at) != 0) at += 1 + std::size_t{gif.At(at)};
    return at + 1;
  };
  for (std::size_t at = 13 + colours(10);;) {
    if (at >= gif.size()) {
      facts.problem = kCut;
      return facts;
    }
    switch (gif.At(at)) {
      case 0x3b:
        return facts;
      case 0x21:
        at = after_data(at + 2);
        break;
      case 0x2c:
        at = after_data(at + 10 + colours(at + 9) + 1);
        break;
      default:
        facts.problem = kDamaged;
        return facts;
    }
  }
}

// https://developers.google.com/speed/webp/docs/riff_container
ImageFacts LookAtWebp(const Bytes& webp) {
  ImageFacts facts{.mime_type = "image/webp"};
  if (webp.Has(12, "VP8X")) {
    facts.width = webp.Little(24, 3) + 1;
    facts.height = webp.Little(27, 3) + 1;
  } else if (webp.Has(12, "VP8 ")) {
    facts.width = webp.Little(26, 2) & 0x3fff;
    facts.height = webp.Little(28, 2) & 0x3fff;
  } else if (webp.Has(12, "VP8L")) {
    const std::int64_t bits = webp.Little(21, 4);
    facts.width = (bits & 0x3fff) + 1;
    facts.height = (bits >> 14 & 0x3fff) + 1;
  }
  if (static_cast<std::size_t>(webp.Little(4, 4)) + 8 > webp.size()) facts.problem = kCut;
  return facts;
}

ImageFacts LookByType(std::string_view content) {
  const Bytes bytes(content);
  if (bytes.Has(0, "\x89PNG\r\n\x1a\n")) return LookAtPng(bytes);
  if (bytes.Has(0, "\xff\xd8\xff")) return LookAtJpeg(bytes);
  if (bytes.Has(0, "GIF87a") || bytes.Has(0, "GIF89a")) return LookAtGif(bytes);
  if (bytes.Has(0, "RIFF") && bytes.Has(8, "WEBP")) return LookAtWebp(bytes);
  return {};
}

}  // namespace

ImageFacts LookAtImage(std::string_view content) {
  ImageFacts facts = LookByType(content);
  if (facts.mime_type.empty() || !facts.problem.empty()) return facts;
  if (facts.width == 0 || facts.height == 0) {
    facts.problem = kDamaged;
  } else if (facts.width > kMostPixelsASide || facts.height > kMostPixelsASide) {
    facts.problem = "it has " + std::to_string(facts.width) + " x " + std::to_string(facts.height) +
                    " pixels, and models take images of up to " + std::to_string(kMostPixelsASide) + " a side";
  }
  return facts;
}

namespace {

constexpr std::int64_t kMostPages = 20'000;
constexpr std::int64_t kBytesPerPage = 50'000;  // for a PDF whose pages cannot be counted
// https://platform.claude.com/docs/en/build-with-claude/vision: a token per 750 pixels, up to about 1600; other
// providers count alike.
constexpr std::int64_t kPixelsPerToken = 750, kLeastImage = 100, kMostImage = 1600;
constexpr std::int64_t kAudioBytesPerToken = 1000;  // recordings are mostly compressed

FileNature Image(ImageFacts image) {
  std::int64_t tokens = kMostImage;
  if (image.problem.empty()) tokens = image.width * image.height / kPixelsPerToken + 1;
  return {.kind = FileKind::kImage,
          .mime_type = std::move(image.mime_type),
          .tokens = std::clamp(tokens, kLeastImage, kMostImage),
          .problem = std::move(image.problem)};
}

// Counts the objects of type Page; misses those in compressed streams.
std::int64_t PagesOf(std::string_view pdf) {
  std::int64_t pages = 0;
  constexpr std::string_view kType = "/Type";
  for (std::size_t at = pdf.find(kType); at != std::string_view::npos; at = pdf.find(kType, at)) {
    at += kType.size();
    const std::size_t name = pdf.find_first_not_of(" \r\n\t", at);
    if (name == std::string_view::npos || !pdf.substr(name).starts_with("/Page")) continue;
    const std::string_view after = pdf.substr(name + 5, 1);
    const bool is_page =
        after.empty() || !((after[0] >= 'a' && after[0] <= 'z') || (after[0] >= 'A' && after[0] <= 'Z'));
    if (is_page) ++pages;
  }
  return std::min(pages, kMostPages);
}

// Readers look for the mark in the first kilobyte. A text may mention it.
bool IsPdf(std::string_view content) {
  constexpr std::string_view kMark = "%PDF-";
  const std::size_t at = content.substr(0, 1024).find(kMark);
  if (at == std::string_view::npos) return false;
  return content.find_first_not_of("\xef\xbb\xbf \t\r\n") == at || !IsText(content);
}

FileNature Pdf(std::string_view content) {
  const std::int64_t pages = PagesOf(content);
  const auto estimate = std::min(static_cast<std::int64_t>(content.size()) / kBytesPerPage + 1, kMostPages);
  FileNature nature{.kind = FileKind::kPdf,
                    .mime_type = "application/pdf",
                    .tokens = (pages > 0 ? pages : estimate) * kTokensPerPage,
                    .pages = pages};
  if (content.find("/Encrypt") != std::string_view::npos) nature.tokens = 0;  // models refuse it
  return nature;
}

std::string LowerSuffix(std::string_view filename) {
  const std::size_t dot = filename.rfind('.');
  std::string suffix(dot == std::string_view::npos ? std::string_view() : filename.substr(dot + 1));
  for (char& c : suffix) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return suffix;
}

struct OfficeType {
  std::string_view suffix, mime_type;
};
constexpr std::array<OfficeType, 6> kOffice{{
    {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    {"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
    {"odt", "application/vnd.oasis.opendocument.text"},
    {"ods", "application/vnd.oasis.opendocument.spreadsheet"},
    {"odp", "application/vnd.oasis.opendocument.presentation"},
}};

// Decides by the names of the archive's entries, which are not compressed.
const OfficeType* OfficeTypeIn(std::string_view archive) {
  if (!archive.starts_with("PK\3\4")) return nullptr;
  constexpr std::array<std::string_view, 3> kEntries = {"word/document.xml", "xl/workbook.xml", "ppt/presentation.xml"};
  for (std::size_t i = 0; i < kEntries.size(); ++i) {
    if (archive.find(kEntries[i]) != std::string_view::npos) return &kOffice[i];
  }
  constexpr std::string_view kFirst = "mimetype";  // the first entry of an OpenDocument, not compressed
  const std::string_view first = archive.substr(std::min<std::size_t>(30, archive.size()), 200);
  if (!first.starts_with(kFirst)) return nullptr;
  for (const OfficeType& each : kOffice) {
    if (first.substr(kFirst.size()).find(each.mime_type) != std::string_view::npos) return &each;
  }
  return nullptr;
}

const OfficeType* OfficeTypeOf(std::string_view suffix, std::string_view mime_type, std::string_view content) {
  if (const OfficeType* found = OfficeTypeIn(content)) return found;
  if (IsText(content)) return nullptr;  // whatever its name says
  for (const OfficeType& each : kOffice) {
    if (each.mime_type == mime_type || each.suffix == suffix) return &each;
  }
  return nullptr;
}

FileNature Audio(std::string_view type, std::size_t bytes) {
  return {.kind = FileKind::kAudio,
          .mime_type = std::string(type),
          .tokens = static_cast<std::int64_t>(bytes) / kAudioBytesPerToken + 1};
}

// 0x80 to 0x9f of Windows-1252: 'A' is a letter, '-' another sign, '!' no character.
constexpr std::string_view kHighControls = "-!-A------A-A!A!!---------A-A!AA";

// Judges by the beginning whether it is text in UTF-16, or in Windows-1252: mostly ASCII letters, with accented ones
// that stand alone among them, and a few signs. In other scripts the letters beyond ASCII stand side by side. Their
// code pages cannot be told apart, so such text would be a guess.
bool IsEncodedText(std::string_view content) {
  if (content.starts_with("\xff\xfe") || content.starts_with("\xfe\xff")) return true;
  content = content.substr(0, 64 * 1024);
  std::array<std::size_t, 2> zeros{};  // at even and odd offsets
  std::size_t letters = 0, accented = 0, pairs_accented = 0, signs = 0, control = 0;
  bool was_accented = false;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const auto c = static_cast<unsigned char>(content[i]);
    if (c == 0) ++zeros[i % 2];
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f') || c == 0x7f) ++control;
    const char kind = c < 0x80                             ? ' '
                      : c < 0xa0                           ? kHighControls[c - 0x80u]
                      : c < 0xc0 || c == 0xd7 || c == 0xf7 ? '-'
                                                           : 'A';
    if (kind == '!') ++control;
    if (kind == '-') ++signs;
    if (kind == 'A') ++accented;
    if (kind == 'A' && was_accented) ++pairs_accented;
    was_accented = kind == 'A';
    if (IsAsciiLetter(content[i])) ++letters;
  }
  const std::size_t pairs = content.size() / 2;
  if (pairs > 1 && (zeros[0] == 0 || zeros[1] == 0) && std::max(zeros[0], zeros[1]) * 10 >= pairs * 9) return true;
  return control == 0 && accented + signs > 0 && accented * 2 <= letters && signs * 3 <= letters &&
         pairs_accented * 2 <= accented;
}

// Empty if the bytes do not look like audio.
std::string_view AudioTypeOf(std::string_view content) {
  const auto has = [&](std::size_t at, std::string_view text) {
    return content.size() > at && content.substr(at).starts_with(text);
  };
  if (has(0, "RIFF") && has(8, "WAVE")) return "audio/wav";
  if (has(0, "ID3") || has(0, "\xff\xfb") || has(0, "\xff\xf3") || has(0, "\xff\xf2")) return "audio/mpeg";
  if (has(0, "OggS")) return "audio/ogg";
  if (has(0, "fLaC")) return "audio/flac";
  if (has(4, "ftypM4A")) return "audio/mp4";
  return {};
}

}  // namespace

FileNature NatureOf(std::string_view filename, std::string_view mime_type, std::string_view content) {
  if (ImageFacts image = LookAtImage(content); !image.mime_type.empty()) return Image(std::move(image));
  if (IsPdf(content)) return Pdf(content);
  const std::string suffix = LowerSuffix(filename);
  if (const OfficeType* const office = OfficeTypeOf(suffix, mime_type, content)) {
    return {.kind = FileKind::kOffice, .mime_type = std::string(office->mime_type)};
  }
  const bool is_text = IsText(content);
  if (!is_text) {
    if (const std::string_view type = AudioTypeOf(content); !type.empty()) return Audio(type, content.size());
    if (mime_type.starts_with("audio/")) return Audio(mime_type, content.size());
  }
  const bool html = mime_type == "text/html" || mime_type == "application/xhtml+xml" || suffix == "html" ||
                    suffix == "htm" || suffix == "xhtml";
  if (html && !content.empty()) return {.kind = FileKind::kHtml, .mime_type = "text/html"};
  if (is_text) return {.kind = FileKind::kText, .mime_type = std::string(mime_type)};
  if (IsEncodedText(content)) return {.kind = FileKind::kEncodedText, .mime_type = std::string(mime_type)};
  return {.kind = FileKind::kOther, .mime_type = std::string(mime_type)};
}

std::string EndingOf(std::string_view mime_type) {
  constexpr std::array<std::array<std::string_view, 2>, 5> kOwn{{{"image/jpeg", ".jpg"},
                                                                 {"image/svg+xml", ".svg"},
                                                                 {"text/plain", ".txt"},
                                                                 {"text/markdown", ".md"},
                                                                 {"audio/mpeg", ".mp3"}}};
  for (const auto& [type, ending] : kOwn) {
    if (type == mime_type) return std::string(ending);
  }
  const std::string kind(mime_type.substr(mime_type.find('/') + 1));
  const bool is_plain = kind.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") == kind.npos;
  return is_plain && !kind.empty() ? "." + kind : "";
}

}  // namespace reprise
