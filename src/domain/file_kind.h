#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "reprise/message.h"

namespace reprise {

// What an image says of itself.
struct ImageFacts {
  std::string mime_type{};  // empty: it is no image of a type that models take
  std::int64_t width = 0, height = 0;
  // Why no model takes it, for people and models: "it is cut short"; empty: nothing that can be seen without decoding.
  std::string problem{};
};

// Goes through the parts of a PNG, JPEG, GIF or WebP, and decodes nothing: models refuse what is cut, and a request
// with it fails as a whole, as would all that follow in the chat.
ImageFacts LookAtImage(std::string_view content);

// What a file is.
enum class FileKind {
  kText,    // UTF-8, to be read as it is
  kImage,   // of a type that models take: PNG, JPEG, GIF, WebP
  kPdf,     // likewise a document
  kOffice,  // a document in a ZIP archive: docx, xlsx, pptx, odt, ods, odp
  kHtml,
  kEncodedText,  // text in UTF-16 or Windows-1252
  kAudio,
  kOther,
};

struct FileNature {
  FileKind kind = FileKind::kOther;
  std::string mime_type{};  // by its bytes; what its giver said where they do not tell
  std::int64_t tokens = 0;  // an estimate of what it costs a model that takes it as it is; 0: none does
  std::int64_t pages = 0;   // of a PDF; 0: they cannot be counted from without
  std::string problem{};    // of an image: why no model takes it, though they take its type; empty: there is none
};

// Looks at the bytes first: what a file is called is not what it is. It reads a few headers, and nothing is decoded.
FileNature NatureOf(std::string_view filename, std::string_view mime_type, std::string_view content);

inline bool IsDocument(FileKind kind) {
  return kind == FileKind::kPdf || kind == FileKind::kOffice || kind == FileKind::kHtml ||
         kind == FileKind::kEncodedText;
}

// Of a PDF that is known by its estimate alone.
inline constexpr std::int64_t kTokensPerPage = 2000;

}  // namespace reprise
