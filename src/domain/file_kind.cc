#include "domain/file_kind.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "reprise/file_store.h"

namespace reprise {
namespace {

constexpr std::int64_t kMostPages = 20'000;
constexpr std::int64_t kBytesPerPage = 50'000;  // of a PDF whose pages cannot be counted
// https://platform.claude.com/docs/en/build-with-claude/vision: a token for 750 pixels, up to about 1600; others count
// likewise.
constexpr std::int64_t kPixelsPerToken = 750, kLeastImage = 100, kMostImage = 1600;
constexpr std::int64_t kAudioBytesPerToken = 1000;  // recordings are mostly compressed

std::int64_t Number(std::string_view bytes, std::size_t at, std::size_t count, bool big_endian) {
  if (at + count > bytes.size()) return 0;
  std::int64_t number = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t next = big_endian ? at + i : at + count - 1 - i;
    number = number << 8 | static_cast<unsigned char>(bytes[next]);
  }
  return number;
}

struct Size {
  std::int64_t width = 0, height = 0;
};

// The first frame header (SOF) among a JPEG's segments.
Size JpegSize(std::string_view bytes) {
  for (std::size_t at = 2; at + 9 < bytes.size() && static_cast<unsigned char>(bytes[at]) == 0xff;) {
    const auto marker = static_cast<unsigned char>(bytes[at + 1]);
    if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
      return {Number(bytes, at + 7, 2, true), Number(bytes, at + 5, 2, true)};
    }
    at += marker == 0xff ? 1 : 2 + static_cast<std::size_t>(Number(bytes, at + 2, 2, true));
  }
  return {};
}

Size WebpSize(std::string_view bytes) {
  const std::string_view form = bytes.substr(12, 4);
  if (form == "VP8X") return {Number(bytes, 24, 3, false) + 1, Number(bytes, 27, 3, false) + 1};
  if (form == "VP8 ") return {Number(bytes, 26, 2, false) & 0x3fff, Number(bytes, 28, 2, false) & 0x3fff};
  if (form == "VP8L") {
    const std::int64_t bits = Number(bytes, 21, 4, false);
    return {(bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1};
  }
  return {};
}

FileNature Image(const char* type, Size size) {
  std::int64_t tokens = kMostImage;
  if (size.width > 0 && size.height > 0) tokens = size.width * size.height / kPixelsPerToken + 1;
  return {FileKind::kImage, type, std::clamp(tokens, kLeastImage, kMostImage)};
}

// Counted by the objects that say to be a page; those in compressed streams are not seen.
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
  if (pages == 0) pages = static_cast<std::int64_t>(pdf.size()) / kBytesPerPage + 1;
  return std::min(pages, kMostPages);
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

const OfficeType* OfficeTypeOf(std::string_view suffix, std::string_view mime_type) {
  for (const OfficeType& each : kOffice) {
    if (each.mime_type == mime_type || each.suffix == suffix) return &each;
  }
  return nullptr;
}

FileNature Audio(std::string_view type, std::size_t bytes) {
  return {FileKind::kAudio, std::string(type), static_cast<std::int64_t>(bytes) / kAudioBytesPerToken + 1};
}

}  // namespace

FileNature NatureOf(std::string_view filename, std::string_view mime_type, std::string_view content) {
  const auto begins = [&](std::string_view with) { return content.starts_with(with); };
  const std::string suffix = LowerSuffix(filename);
  if (begins("\x89PNG\r\n\x1a\n")) {
    return Image("image/png", {Number(content, 16, 4, true), Number(content, 20, 4, true)});
  }
  if (begins("\xff\xd8\xff")) return Image("image/jpeg", JpegSize(content));
  if (begins("GIF87a") || begins("GIF89a")) {
    return Image("image/gif", {Number(content, 6, 2, false), Number(content, 8, 2, false)});
  }
  const bool riff = begins("RIFF") && content.size() > 16;
  if (riff && content.substr(8, 4) == "WEBP") return Image("image/webp", WebpSize(content));
  if (riff && content.substr(8, 4) == "WAVE") return Audio("audio/wav", content.size());
  // Readers look for the mark in the first kilobyte.
  if (content.substr(0, 1024).find("%PDF-") != std::string_view::npos) {
    const std::int64_t pages = PagesOf(content);
    return {FileKind::kPdf, "application/pdf", pages * kTokensPerPage, pages};
  }
  const OfficeType* const office = OfficeTypeOf(suffix, mime_type);
  if (office != nullptr) return {FileKind::kOffice, std::string(office->mime_type)};
  if (begins("ID3") || (mime_type == "audio/mp3" && !IsText(content))) return Audio("audio/mpeg", content.size());
  if (mime_type.starts_with("audio/") && !IsText(content)) return Audio(mime_type, content.size());
  const bool html = mime_type == "text/html" || mime_type == "application/xhtml+xml" || suffix == "html" ||
                    suffix == "htm" || suffix == "xhtml";
  if (html) return {FileKind::kHtml, "text/html"};
  if (IsText(content)) return {FileKind::kText, std::string(mime_type)};
  return {FileKind::kOther, std::string(mime_type)};
}

}  // namespace reprise
