#include "tools/files/patch.h"

#include <re2/re2.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "tools/text_file.h"

namespace reprise {
namespace {

constexpr std::string_view kBegin = "*** Begin Patch", kEnd = "*** End Patch";
constexpr std::string_view kAdd = "*** Add File: ", kDelete = "*** Delete File: ", kUpdate = "*** Update File: ";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kMove = "*** Move to: ", kAtEnd = "*** End of File";

class PatchParser {
 public:
  explicit PatchParser(std::string_view text) : left_(text) { Next(); }

  Result<std::vector<FilePatch>> Parse() {
    // Models put it into a fence or a here-document.
    while (!done_ && Trimmed(line_) != kBegin) Next();
    if (done_) return Wrong("it must begin with the line \"*** Begin Patch\"");
    Next();
    std::vector<FilePatch> files;
    for (; !done_ && Trimmed(line_) != kEnd;) {
      if (IsBlank(line_)) {
        Next();
        continue;
      }
      files.push_back(TRY(File()));
    }
    if (done_) return Wrong("its last line, \"*** End Patch\", is missing");
    if (files.empty()) return Wrong("it changes no file");
    return files;
  }

 private:
  void Next() {
    done_ = left_.empty();
    const std::size_t end = std::min(left_.find('\n'), left_.size());
    line_ = left_.substr(0, end);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    left_.remove_prefix(std::min(end + 1, left_.size()));
    ++number_;
  }
  tl::unexpected<Error> Wrong(const std::string& what) const {
    return Fail(ErrorCode::kInvalidArgument, "the patch cannot be read: " + what);
  }
  tl::unexpected<Error> WrongLine(const std::string& what) const {
    return Wrong("line " + std::to_string(number_) + " (" + QuotedPath(line_.substr(0, 80)) + ") " + what);
  }

  bool EndsFile() const { return done_ || (line_.starts_with("*** ") && line_ != kAtEnd); }
  // The rest of the line, if it begins so.
  std::optional<std::string> Take(std::string_view head) {
    if (!line_.starts_with(head)) return std::nullopt;
    std::string rest(Trimmed(line_.substr(head.size())));
    Next();
    return rest;
  }

  Result<FilePatch> File() {
    FilePatch file;
    if (auto path = Take(kAdd)) {
      file = {.kind = FilePatch::Kind::kAdd, .path = *std::move(path), .new_path = {}, .content = {}, .hunks = {}};
      for (; !EndsFile(); Next()) {
        if (!line_.starts_with('+') && !IsBlank(line_)) return WrongLine("must begin with + in a new file");
        const bool separates = !line_.starts_with('+') && IsBlank(left_.substr(0, left_.find("*** ")));
        if (!separates) file.content.append(line_.starts_with('+') ? line_.substr(1) : line_).append("\n");
      }
    } else if (auto deleted = Take(kDelete)) {
      file = {
          .kind = FilePatch::Kind::kDelete, .path = *std::move(deleted), .new_path = {}, .content = {}, .hunks = {}};
    } else if (auto updated = Take(kUpdate)) {
      file.path = *std::move(updated);
      if (auto moved = Take(kMove)) file.new_path = *std::move(moved);
      while (!EndsFile()) TRY(AddHunk(file.hunks));
      if (file.hunks.empty() && file.new_path.empty()) return Wrong("it changes nothing in " + QuotedPath(file.path));
    } else {
      return WrongLine("must be \"*** Add File: PATH\", \"*** Update File: PATH\" or \"*** Delete File: PATH\"");
    }
    if (file.path.empty()) return Wrong("a path is missing");
    return file;
  }

  // "@@ line", or "@@ -1,2 +1,3 @@ line" as in unified diffs.
  static std::string Anchor(std::string_view line) {
    line.remove_prefix(2);
    re2::StringPiece rest(line.data(), line.size());
    static const RE2 kNumbers(R"(\s*-\d+(,\d+)? \+\d+(,\d+)? @@)");
    RE2::Consume(&rest, kNumbers);
    return std::string(Trimmed({rest.data(), rest.size()}));
  }

  Result<void> AddHunk(std::vector<PatchHunk>& hunks) {
    PatchHunk hunk;
    while (!EndsFile() && line_.starts_with("@@")) {
      if (std::string anchor = Anchor(line_); !anchor.empty()) hunk.anchors.push_back(std::move(anchor));
      Next();
    }
    bool changes = false;
    for (; !EndsFile() && !line_.starts_with("@@"); Next()) {
      if (line_ == kAtEnd) {
        hunk.at_end = true;
        Next();
        break;
      }
      const char kind = line_.empty() ? ' ' : line_.front();  // some leave the blank of an empty line out
      const std::string text = std::string(line_.empty() ? line_ : line_.substr(1)) + "\n";
      if (kind != ' ' && kind != '-' && kind != '+') return WrongLine("must begin with a blank, - or +");
      if (kind != '+') hunk.old_text += text;
      if (kind != '-') hunk.new_text += text;
      changes = changes || kind != ' ';
    }
    // What separates hunks or files is not one.
    if (changes || !IsBlank(hunk.old_text)) hunks.push_back(std::move(hunk));
    return {};
  }

  std::string_view left_, line_;
  std::size_t number_ = 0;
  bool done_ = false;
};

// The starts of the lines below those that are the anchor's, from `from` on. Lines that only begin with it count if no
// line is it.
std::vector<std::size_t> Below(std::string_view text, const std::string& anchor, std::size_t from) {
  std::vector<std::size_t> same, beginning;
  for (std::size_t at = from; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = Trimmed(text.substr(at, end - at));
    if (line == anchor) same.push_back(std::min(end + 1, text.size()));
    if (line.starts_with(anchor)) beginning.push_back(std::min(end + 1, text.size()));
    at = end + 1;
  }
  return same.empty() ? beginning : same;
}

// Where a hunk may begin, according to its anchors.
std::vector<std::size_t> StartsOf(std::string_view text, const PatchHunk& hunk, std::size_t from) {
  std::vector<std::size_t> starts{from};
  for (const std::string& anchor : hunk.anchors) {
    if (starts.empty()) break;
    starts = Below(text, anchor, starts.front());
  }
  return starts;
}

// The places where the old lines are: without anchors all, with them the first below each.
TextMatches PlacesOf(std::string_view text, const PatchHunk& hunk, std::size_t from) {
  const bool is_whole = hunk.anchors.empty();
  TextMatches found;
  std::set<std::size_t> seen;
  for (const std::size_t start : StartsOf(text, hunk, from)) {
    TextMatches matches = FindText(text, hunk.old_text, /*whole_lines=*/true, start);
    if (hunk.at_end) {
      std::erase_if(matches.places, [&](const TextPlace& place) { return !IsBlank(text.substr(place.end)); });
    }
    if (matches.places.empty()) continue;
    if (found.places.empty()) found.likeness = matches.likeness;
    for (const TextPlace& place : matches.places) {
      if (matches.likeness == found.likeness && seen.insert(place.begin).second) found.places.push_back(place);
      if (!is_whole) break;
    }
    if (seen.size() > kMostPlaces) break;
  }
  return found;
}

Error Unfit(std::string message) { return MakeError(ErrorCode::kInvalidArgument, std::move(message)); }

// Adds lines below the anchors, or at the end of the file. Returns the end of what was added.
Result<std::size_t> AddLines(std::string& text, const PatchHunk& hunk, std::size_t from) {
  std::size_t at = text.size();
  if (!hunk.anchors.empty()) {
    const auto starts = StartsOf(text, hunk, from);
    if (starts.size() != 1) {
      return Fail(Unfit("the line " + QuotedPath(hunk.anchors.back()) + " behind @@ is there " +
                        std::to_string(starts.size()) + " times: give lines of context, with a blank in front"));
    }
    at = starts.front();
  }
  const bool needs_end = at == text.size() && !text.empty() && !text.ends_with('\n');
  const std::string added = (needs_end ? "\n" : "") + hunk.new_text;
  text.insert(at, added);
  return at + added.size();
}

// Makes one change. Returns where its new lines end, which is where the next hunk is looked for first.
Result<std::size_t> ApplyHunk(EditedText& edited, PatchHunk hunk, std::size_t from, Quoting quoting) {
  std::string& text = edited.text;
  for (std::string* lines : {&hunk.old_text, &hunk.new_text}) {
    if (lines->starts_with(kByteOrderMark)) lines->erase(0, kByteOrderMark.size());
  }
  if (hunk.old_text.empty()) return AddLines(text, hunk, from);
  TextMatches found = PlacesOf(text, hunk, from);
  if (found.places.empty() && from > 0) found = PlacesOf(text, hunk, 0);  // hunks in another order
  if (found.places.empty() && hunk.old_text.ends_with("\n\n") && hunk.new_text.ends_with("\n\n")) {
    hunk.old_text.pop_back(), hunk.new_text.pop_back();  // an empty line that only ends the hunk
    found = PlacesOf(text, hunk, 0);
  }
  if (found.places.empty()) {
    const bool has_anchors = !StartsOf(text, hunk, 0).empty();
    const std::string why = has_anchors ? "its lines are not there" : "no line is " + QuotedPath(hunk.anchors.back());
    return Fail(Unfit(why + ". " + NearestPlace(text, hunk.old_text, "the patch", quoting)));
  }
  if (found.places.size() > 1) {
    return Fail(Unfit("its lines are there " + std::to_string(found.places.size()) + " times, " +
                      PlacesNamed(text, found.places, quoting) +
                      ": give more lines of context, or behind @@ the line that they are below"));
  }
  const TextPlace place = found.places.front();
  const auto made = ReplacementAt(text, place, found.likeness, hunk.old_text, hunk.new_text);
  if (!made)
    return Fail(Unfit("its lines cannot be indented as the file is. " +
                      NearestPlace(text, hunk.old_text, "the patch", quoting)));
  if (found.likeness != Likeness::kExact) {
    edited.notes.push_back("took " + LinesAt(text, place) + " in spite of differences in " +
                           DifferenceAt(text, place, hunk.old_text));
  }
  text.replace(made->place.begin, made->place.end - made->place.begin, made->text);
  // At the start of a line, as FindText wants it.
  const std::size_t end = made->place.begin + made->text.size() + (place.end - made->place.end);
  const std::size_t line = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
  return line == std::string::npos ? 0 : line + 1;
}

}  // namespace

Result<std::vector<FilePatch>> ParsePatch(std::string_view text) { return PatchParser(text).Parse(); }

std::vector<std::string> PathsInPatch(std::string_view arguments) {
  const auto given = ParseJson(arguments);
  const auto files = ParsePatch(given ? TextMember(*given, "input") : "");
  std::vector<std::string> paths;
  if (!files) return paths;
  for (const FilePatch& file : *files) {
    for (const std::string& path : {file.path, file.new_path}) {
      if (!path.empty() && std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
    }
  }
  return paths;
}

Result<EditedText> ApplyHunks(std::string text, const std::vector<PatchHunk>& hunks, Quoting quoting) {
  // Models do not see a byte order mark, and so write the first line without it.
  const bool is_marked = text.starts_with(kByteOrderMark);
  if (is_marked) text.erase(0, kByteOrderMark.size());
  EditedText edited{.text = std::move(text), .notes = {}};
  std::size_t from = 0;
  for (std::size_t i = 0; i < hunks.size(); ++i) {
    const auto end = ApplyHunk(edited, hunks[i], from, quoting);
    if (!end) {
      return Fail(Unfit("change " + std::to_string(i + 1) + " of " + std::to_string(hunks.size()) +
                        " does not fit: " + end.error().message));
    }
    from = *end;
  }
  if (is_marked) edited.text.insert(0, kByteOrderMark);
  return edited;
}

}  // namespace reprise
