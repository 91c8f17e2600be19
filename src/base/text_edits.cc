#include "base/text_edits.h"

#include <string.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "base/try.h"

namespace reprise {
namespace {

constexpr std::size_t kMostReplaced = 16u << 20;  // bytes
constexpr std::size_t kMostNamedPlaces = 5;
constexpr std::size_t kMostQuoted = 80;

Error Wrong(std::string message) { return MakeError(ErrorCode::kInvalidArgument, std::move(message)); }

bool IsTrue(const Json& value) { return value.is_boolean() && value.get<bool>(); }

TextEdit EditIn(const Json& object) {
  return {.old_text = TextMember(object, "old_text"),
          .new_text = TextMember(object, "new_text"),
          .replace_all = IsTrue(MemberOf(object, "replace_all"))};
}

// Replaces every occurrence that does not overlap the one before. kTooLarge: the text would grow beyond all measure.
Result<std::string> ReplaceAll(std::string_view text, std::string_view old_text, std::string_view new_text) {
  std::string replaced;
  for (;;) {
    const void* const found = ::memmem(text.data(), text.size(), old_text.data(), old_text.size());
    if (found == nullptr) return replaced.append(text);
    const auto at = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
    replaced.append(text.substr(0, at)).append(new_text);
    text.remove_prefix(at + old_text.size());
    if (replaced.size() > kMostReplaced) return Fail(ErrorCode::kTooLarge, "the file would become too large");
  }
}

Error Ambiguous(const std::string& text, const TextMatches& matches, Quoting quoting) {
  const std::string count =
      (matches.places.size() == kMostPlaces ? "at least " : "") + std::to_string(matches.places.size());
  const bool is_exact = matches.likeness == Likeness::kExact;
  return Wrong((is_exact ? "old_text occurs " + count + " times in the file, "
                         : "old_text occurs 0 times in the file; " + count + " places are like it, ") +
               PlacesNamed(text, matches.places, quoting) +
               "; it must occur exactly once: add lines above or below until it is unique" +
               (is_exact ? ", or set replace_all" : ", exactly as they stand in the file"));
}

Result<void> Apply(EditedText& edited, const TextEdit& edit, Quoting quoting) {
  std::string& text = edited.text;
  if (edit.old_text.empty()) return Fail(Wrong("old_text is empty"));
  if (edit.old_text == edit.new_text) return Fail(Wrong("old_text and new_text are the same: nothing would change"));
  const TextMatches matches = FindText(text, edit.old_text);
  const bool is_exact = matches.likeness == Likeness::kExact;
  if (matches.places.empty()) {
    return Fail(Wrong("old_text occurs 0 times in the file; it must occur exactly once. " +
                      NearestPlace(text, edit.old_text, "old_text", quoting)));
  }
  const bool replaces_all = edit.replace_all && is_exact;
  if (matches.places.size() > 1 && !replaces_all) return Fail(Ambiguous(text, matches, quoting));
  const TextPlace& place = matches.places.front();
  const auto made = ReplacementAt(text, place, matches.likeness, edit.old_text, edit.new_text);
  if (!made) {
    return Fail(Wrong("old_text occurs 0 times in the file, and new_text cannot be indented as the file is. " +
                      NearestPlace(text, edit.old_text, "old_text", quoting)));
  }
  if (!is_exact) {
    edited.notes.push_back("took " + LinesAt(text, place) + " for old_text, in spite of differences in " +
                           DifferenceAt(text, place, edit.old_text) + "; new_text was fitted in likewise");
  } else if (made->text != edit.new_text) {
    edited.notes.emplace_back("gave the lines of new_text the line ends of the file (CRLF)");
  }
  if (replaces_all) {
    text = TRY(ReplaceAll(text, edit.old_text, made->text));
  } else {
    text.replace(made->place.begin, made->place.end - made->place.begin, made->text);
  }
  return {};
}

}  // namespace

std::string PlacesNamed(std::string_view text, const std::vector<TextPlace>& places, Quoting quoting) {
  std::string named;
  const std::size_t count = std::min(places.size(), kMostNamedPlaces);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view before = text.substr(0, places[i].begin);
    const auto number = std::ranges::count(before, '\n') + 1;
    named += (i == 0 ? "in line " : i + 1 == places.size() ? " and " : ", ") + std::to_string(number);
    const std::size_t line = before.rfind('\n');
    if (quoting == Quoting::kForbidden || line == std::string_view::npos) continue;
    const std::size_t start = line == 0 ? std::string_view::npos : before.rfind('\n', line - 1);
    const std::string_view above = Trimmed(before.substr(start + 1, line - (start + 1)));
    if (above.empty()) continue;
    named += " (below `" + std::string(Utf8Prefix(ToValidUtf8(above), kMostQuoted)) + "`)";
  }
  return places.size() > count ? named + " and more" : named;
}

Result<std::vector<TextEdit>> EditsIn(const Json& arguments) {
  const Json& several = MemberOf(arguments, "edits");
  const bool has_one = MemberOf(arguments, "old_text").is_string();
  if (!several.is_array() || several.empty()) {
    if (!has_one || !MemberOf(arguments, "new_text").is_string()) {
      return Fail(Wrong("it needs old_text and new_text, or edits with at least one edit"));
    }
    return std::vector{EditIn(arguments)};
  }
  if (has_one) return Fail(Wrong("it has old_text beside edits: put that edit into edits too"));
  std::vector<TextEdit> edits;
  for (const Json& each : several) edits.push_back(EditIn(each));
  return edits;
}

Result<EditedText> ApplyEdits(std::string text, const std::vector<TextEdit>& edits, Quoting quoting) {
  EditedText edited{.text = std::move(text), .notes = {}};
  for (std::size_t i = 0; i < edits.size(); ++i) {
    const std::string name =
        edits.size() == 1 ? "" : "edit " + std::to_string(i + 1) + " of " + std::to_string(edits.size());
    const std::size_t notes = edited.notes.size();
    if (const auto applied = Apply(edited, edits[i], quoting); !applied) {
      if (name.empty()) return Fail(applied.error());
      return Fail(Wrong(name + (i == 0 ? "" : ", after those before it") + ": " + applied.error().message +
                        (applied.error().message.ends_with('.') ? "" : ".") + "\nNone of the edits was made."));
    }
    if (!name.empty() && edited.notes.size() > notes) edited.notes.back().insert(0, name + " ");
  }
  return edited;
}

}  // namespace reprise
