#include "terminal/file_text.h"

#include <cstdint>

#include "base/terminal_text.h"

namespace reprise {
namespace {

std::string SizeText(std::uint64_t bytes) {
  constexpr std::uint64_t kKilo = 1000, kMega = 1000 * 1000;
  if (bytes < kKilo) return std::to_string(bytes) + " bytes";
  if (bytes < kMega) return std::to_string((bytes + kKilo / 2) / kKilo) + " KB";
  return std::to_string(bytes / kMega) + "." + std::to_string(bytes % kMega / (kMega / 10)) + " MB";
}

}  // namespace

std::string FileText(const Attachment& file) {
  const std::string kind = file.mime_type.starts_with("image/") ? "image " : "";
  std::string text = "[" + kind + VisibleLine(file.filename) + ", " + SizeText(file.size_bytes) + "]";
  if (!file.note.empty()) text += " " + VisibleLine(file.note);
  return text;
}

}  // namespace reprise
