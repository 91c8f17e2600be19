#include "terminal/file_text.h"

#include <cstdint>
#include <nlohmann/json.hpp>

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

std::string FileText(const Json& file) {
  const auto size = file.find("size_bytes");
  const std::string kind = TextMember(file, "mime_type").starts_with("image/") ? "image " : "";
  std::string text = "[" + kind + VisibleLine(TextMember(file, "filename"));
  if (size != file.end() && size->is_number_unsigned()) text += ", " + SizeText(size->get<std::uint64_t>());
  text += "]";
  if (const std::string note = TextMember(file, "note"); !note.empty()) text += " " + VisibleLine(note);
  return text;
}

}  // namespace reprise
