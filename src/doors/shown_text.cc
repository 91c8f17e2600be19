#include "doors/shown_text.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "crypto/digest.h"

namespace reprise {
namespace {

constexpr std::string_view kApproval = "**Approval needed:** ";
constexpr std::string_view kQuestion = "**Question:** ";
constexpr std::string_view kNoteEnd = "; this goes on then.";

// The tag of a block that begins here; empty if none does.
std::string_view BlockTag(std::string_view text) {
  constexpr std::array<std::string_view, 5> kTags = {"details", "think", "thinking", "thought", "reasoning"};
  for (const std::string_view tag : kTags) {
    if (text.size() < tag.size() + 2 || text.substr(1, tag.size()) != tag) continue;
    if (const char next = text[tag.size() + 1]; next == '>' || IsSpace(next)) return text.substr(1, tag.size());
  }
  return {};
}

// The length of the block or note with which `text` begins; 0 if it begins with neither.
std::size_t AsideLength(std::string_view text, bool begins_line) {
  const auto through = [&](std::string_view end) {
    const std::size_t at = text.find(end);
    return at == std::string_view::npos ? text.size() : at + end.size();
  };
  if (text.front() == '<') {
    const std::string_view tag = BlockTag(text);
    return tag.empty() ? 0 : through("</" + std::string(tag) + ">");
  }
  if (!begins_line) return 0;
  if (text.starts_with(kApproval) || text.starts_with(kQuestion)) return through(kNoteEnd);
  const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  const bool is_note = line == kApprovedNote || line == kRejectedNote || line == kExpiredNote;
  return is_note ? line.size() : 0;
}

}  // namespace

std::string ApprovalNote(std::string_view tool, std::string_view arguments, std::string_view where) {
  std::string note(kApproval);
  return note.append(tool).append(" with ").append(arguments).append(". Answer ").append(where).append(kNoteEnd);
}

std::string QuestionNote(std::string_view question, std::string_view where) {
  std::string note(kQuestion);
  return note.append(question).append("\n\nAnswer ").append(where).append(kNoteEnd);
}

std::string SpokenText(std::string_view shown) {
  std::string spoken;
  spoken.reserve(shown.size());
  bool begins_line = true;
  while (!shown.empty()) {
    const std::size_t aside = AsideLength(shown, begins_line);
    const char c = shown.front();
    if (aside == 0 && !IsSpace(c)) spoken += c;
    begins_line = c == '\n' || c == '\r' || (begins_line && (aside > 0 || IsSpace(c)));
    shown.remove_prefix(std::max<std::size_t>(aside, 1));
  }
  return spoken;
}

std::string SpokenDigest(std::string_view shown) {
  constexpr std::size_t kFrom = 7, kDigits = 32;  // after "sha256:"
  return Sha256Digest({SpokenText(shown)}).substr(kFrom, kDigits);
}

}  // namespace reprise
