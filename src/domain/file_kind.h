#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "reprise/message.h"

namespace reprise {

// Facts from an image's headers.
struct ImageFacts {
  std::string mime_type{};  // empty if it is not an image type that models take
  std::int64_t width = 0, height = 0;
  // Why no model takes it, for people and models ("it is cut short"); empty if no problem shows without decoding.
  std::string problem{};
};

// Checks the structure of a PNG, JPEG, GIF or WebP without decoding it. Providers reject truncated images, and with
// them the whole request and every later one of the chat.
ImageFacts LookAtImage(std::string_view content);

enum class FileKind {
  kText,    // UTF-8, readable as it is
  kImage,   // a type that models take: PNG, JPEG, GIF, WebP
  kPdf,     // a document that models take
  kOffice,  // a document in a ZIP archive: docx, xlsx, pptx, odt, ods, odp
  kHtml,
  kEncodedText,  // text in UTF-16 or Windows-1252
  kAudio,
  kOther,
};

struct FileNature {
  FileKind kind = FileKind::kOther;
  std::string mime_type{};  // from its bytes, or as the sender declared it if they do not tell
  std::int64_t tokens = 0;  // estimated cost for a model that takes it as it is; 0 if none does
  std::int64_t pages = 0;   // of a PDF; 0 if they cannot be counted without decoding
  std::string problem{};    // why no model takes this image though they take its type; empty if none
};

// Looks at the bytes first, because names can be wrong. Reads a few headers and decodes nothing.
FileNature NatureOf(std::string_view filename, std::string_view mime_type, std::string_view content);

// The usual ending of such a file's name (".jpg"); empty if there is none.
std::string EndingOf(std::string_view mime_type);

inline bool IsDocument(FileKind kind) {
  return kind == FileKind::kPdf || kind == FileKind::kOffice || kind == FileKind::kHtml ||
         kind == FileKind::kEncodedText;
}

// For a PDF known only by its estimate.
inline constexpr std::int64_t kTokensPerPage = 2000;

}  // namespace reprise
