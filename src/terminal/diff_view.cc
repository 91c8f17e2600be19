#include "terminal/diff_view.h"

#include <algorithm>
#include <dtl/dtl.hpp>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/terminal_text.h"
#include "base/text.h"
#include "terminal/code_colours.h"
#include "terminal/wrapped_text.h"

namespace reprise {
namespace {

// In the worst case (all lines in another order) dtl takes 12 ms for each 500 lines, and 75 MB whatever their number.
constexpr std::size_t kMostComparedLines = 40'000;
// Of one line, if not everything is shown.
constexpr std::size_t kMostRowsOfLine = 5;
constexpr std::size_t kLongestShownLine = 1'000;  // characters

using FileLines = std::vector<std::string_view>;  // each with its line end

FileLines FileLinesOf(std::string_view text) {
  FileLines lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end == std::string_view::npos ? end : end + 1));
    text.remove_prefix(lines.back().size());
  }
  return lines;
}

bool IsUtf8Text(std::string_view bytes) { return bytes.find('\0') == std::string_view::npos && IsUtf8(bytes); }

// Consecutive lines that are in both files, or in one. `before` and `after` are its positions.
struct DiffRun {
  enum class Kind { kCommon, kRemoved, kAdded } kind;
  std::size_t before, after, count;
};

class RunList {
 public:
  void AddCommon(std::size_t count) { Add(DiffRun::Kind::kCommon, count), before_ += count, after_ += count; }
  void AddRemoved(std::size_t count) { Add(DiffRun::Kind::kRemoved, count), before_ += count; }
  void AddAdded(std::size_t count) { Add(DiffRun::Kind::kAdded, count), after_ += count; }

  std::size_t before() const { return before_; }
  std::size_t after() const { return after_; }
  std::vector<DiffRun> Take() { return std::move(runs_); }

 private:
  void Add(DiffRun::Kind kind, std::size_t count) {
    if (count == 0) return;
    if (!runs_.empty() && runs_.back().kind == kind) {
      runs_.back().count += count;
    } else {
      runs_.push_back({kind, before_, after_, count});
    }
  }

  std::size_t before_ = 0, after_ = 0;
  std::vector<DiffRun> runs_;
};

// Lines of one file that are in the other too: their positions and numbers.
struct Candidates {
  std::vector<std::size_t> at;
  std::vector<int> line;
};

// Pairs of equal lines in order, as many as possible. Lines without an equal in the other file are not compared.
std::vector<std::pair<std::size_t, std::size_t>> EqualLines(const FileLines& before, const FileLines& after,
                                                            std::size_t from, std::size_t before_end,
                                                            std::size_t after_end) {
  struct Seen {
    int number;
    bool in_after;
  };
  std::unordered_map<std::string_view, Seen> seen;
  for (std::size_t i = from; i < before_end; ++i)
    seen.try_emplace(before[i], Seen{static_cast<int>(seen.size()), false});
  Candidates old_lines, new_lines;
  for (std::size_t i = from; i < after_end; ++i) {
    const auto found = seen.find(after[i]);
    if (found == seen.end()) continue;
    found->second.in_after = true;
    new_lines.at.push_back(i);
    new_lines.line.push_back(found->second.number);
  }
  for (std::size_t i = from; i < before_end; ++i) {
    const Seen& line = seen.find(before[i])->second;
    if (!line.in_after) continue;
    old_lines.at.push_back(i);
    old_lines.line.push_back(line.number);
  }
  if (old_lines.at.size() + new_lines.at.size() > kMostComparedLines) return {};

  dtl::Diff<int, std::vector<int>> diff(old_lines.line, new_lines.line);
  diff.compose();
  std::vector<std::pair<std::size_t, std::size_t>> equal;
  std::size_t i = 0, j = 0;
  for (const auto& [line, edit] : diff.getSes().getSequence()) {
    if (edit.type == dtl::SES_COMMON) equal.emplace_back(old_lines.at[i], new_lines.at[j]);
    if (edit.type != dtl::SES_ADD) ++i;
    if (edit.type != dtl::SES_DELETE) ++j;
  }
  return equal;
}

std::vector<DiffRun> Compare(const FileLines& before, const FileLines& after) {
  std::size_t prefix = 0;
  const std::size_t shorter = std::min(before.size(), after.size());
  while (prefix < shorter && before[prefix] == after[prefix]) ++prefix;
  std::size_t suffix = 0;
  while (suffix < shorter - prefix && before[before.size() - 1 - suffix] == after[after.size() - 1 - suffix]) ++suffix;

  RunList runs;
  runs.AddCommon(prefix);
  const std::size_t before_end = before.size() - suffix, after_end = after.size() - suffix;
  for (const auto& [i, j] : EqualLines(before, after, prefix, before_end, after_end)) {
    runs.AddRemoved(i - runs.before());
    runs.AddAdded(j - runs.after());
    runs.AddCommon(1);
  }
  runs.AddRemoved(before_end - runs.before());
  runs.AddAdded(after_end - runs.after());
  runs.AddCommon(suffix);
  return runs.Take();
}

// Nearby changes with the lines around them.
using Hunk = std::vector<DiffRun>;

std::vector<Hunk> HunksOf(const std::vector<DiffRun>& runs, std::size_t context) {
  std::vector<Hunk> hunks;
  for (std::size_t n = 0; n < runs.size(); ++n) {
    const DiffRun& run = runs[n];
    const bool is_first = n == 0, is_last = n + 1 == runs.size();
    if (run.kind != DiffRun::Kind::kCommon) {
      if (is_first) hunks.emplace_back();
      hunks.back().push_back(run);
      continue;
    }
    const std::size_t around = (is_first ? 0 : context) + (is_last ? 0 : context);
    if (!is_first && !is_last && run.count <= around) {
      hunks.back().push_back(run);
      continue;
    }
    const std::size_t kept = std::min(run.count, context);
    if (!is_first && kept > 0) hunks.back().push_back({run.kind, run.before, run.after, kept});
    if (is_last) continue;
    hunks.emplace_back();
    const std::size_t skipped = run.count - kept;
    if (kept > 0) hunks.back().push_back({run.kind, run.before + skipped, run.after + skipped, kept});
  }
  return hunks;
}

std::string LineRange(std::size_t begin, std::size_t count) {
  // As diff does: an empty range names the line before it.
  const std::string first = std::to_string(count == 0 ? begin : begin + 1);
  return count == 1 ? first : first + "," + std::to_string(count);
}

std::string Lines(std::size_t count) { return Counted(count, "line"); }

bool AllEndWithCrLf(const FileLines& lines) {
  return std::ranges::all_of(lines, [](std::string_view line) { return line.ends_with("\r\n"); });
}

// Paints a line of a diff: `sign` is '+', '-' or ' '. `part` is what has changed in it, in characters.
class DiffLinePainter {
 public:
  DiffLinePainter(const std::string& path, const Style& style)
      : style_(style), code_(path, style.has_backgrounds() ? style : Style(Colour::kNever)) {}

  std::string Paint(char sign, const std::string& text, std::optional<TextSpan> part = std::nullopt) {
    const std::string line = std::string(1, sign) + code_.Paint(text);
    if (sign == ' ') return line;
    const bool is_added = sign == '+';
    const std::string painted = style_.Paint(is_added ? Style::kAddedLine : Style::kRemovedLine, line);
    if (!part) return painted;
    const TextSpan behind_sign{part->begin + 1, part->end + 1};
    return WithPaintOn(painted, behind_sign, style_.Sequence(is_added ? Style::kAddedPart : Style::kRemovedPart));
  }

 private:
  const Style& style_;
  CodeColours code_;
};

// What differs between two lines, without what they begin and end with in common; nullopt if too little is in common.
std::optional<std::pair<TextSpan, TextSpan>> ChangedParts(std::string_view before, std::string_view after) {
  const std::vector<std::string_view> old = CharactersOf(before), now = CharactersOf(after);
  const std::size_t shorter = std::min(old.size(), now.size());
  std::size_t prefix = 0, suffix = 0;
  while (prefix < shorter && old[prefix] == now[prefix]) ++prefix;
  while (suffix < shorter - prefix && old[old.size() - 1 - suffix] == now[now.size() - 1 - suffix]) ++suffix;
  if ((prefix + suffix) * 3 < std::max(old.size(), now.size())) return std::nullopt;
  return std::pair(TextSpan{prefix, old.size() - suffix}, TextSpan{prefix, now.size() - suffix});
}

// "12 ", for a line of a file; three digits at least.
std::string NumberText(std::size_t number, const Style& style) {
  std::string digits = std::to_string(number);
  digits.insert(0, digits.size() < 4 ? 4 - digits.size() : 0, ' ');
  return style.Paint(Style::kDim, digits + " ");
}

// Writes a diff, and counts the lines that do not fit.
class DiffWriter {
 public:
  DiffWriter(const FileLines& before, const FileLines& after, const Style& style, const DiffOptions& options)
      : before_(before), after_(after), style_(style), options_(options), painter_(options.path, style) {
    if (options.max_lines > 0) room_ = static_cast<std::size_t>(std::max(options.max_lines, 10) - 1);  // less a note
    without_cr_ = AllEndWithCrLf(before) && AllEndWithCrLf(after) && !(before.empty() && after.empty());
  }

  void WriteHead(bool was_there, bool is_there) {
    const std::string path = VisibleLine((options_.path.starts_with('/') ? "" : "/") + options_.path);
    Put(style_.Paint(Style::kBold, "--- " + (was_there ? "a" + path : "/dev/null")));
    Put(style_.Paint(Style::kBold, "+++ " + (is_there ? "b" + path : "/dev/null")));
    if (without_cr_) Put(style_.Paint(Style::kDim, "(each line ends with a carriage return and a line feed)"));
  }

  void WriteNote(std::string_view note) { Put(style_.Paint(Style::kDim, note)); }

  void Write(const Hunk& hunk) {
    WriteHunkHead(hunk);
    for (std::size_t n = 0; n < hunk.size(); ++n) {
      const bool is_pair =
          n + 1 < hunk.size() && hunk[n].kind == DiffRun::Kind::kRemoved && hunk[n + 1].kind == DiffRun::Kind::kAdded;
      if (is_pair && RowsOf(hunk[n]) + RowsOf(hunk[n + 1]) > room_) {
        WriteBeginnings(hunk[n], hunk[n + 1]);
        ++n;
      } else if (is_pair && hunk[n].count == hunk[n + 1].count) {
        MarkChanges(hunk[n], hunk[n + 1]);
        WriteLines(hunk[n]);
        WriteLines(hunk[++n]);
        marks_.clear();
      } else {
        WriteLines(hunk[n]);
      }
    }
  }

  Diff Finish() {
    const bool cut = !left_out_.empty() || has_cut_lines_;
    if (cut) {
      std::string note = "… not shown: ";
      if (!left_out_.empty()) {
        note += Lines(left_out_.removed) + " removed, " + Lines(left_out_.added) + " added";
        if (left_out_.common > 0) note += ", " + Lines(left_out_.common) + " around them";
      }
      if (has_cut_lines_) note += std::string(left_out_.empty() ? "" : ", ") + "the rest of long lines";
      for (std::string& row : InRows(style_.Paint(Style::kWarning, note))) lines_.push_back(std::move(row));
    }
    return {std::move(lines_), cut};
  }

 private:
  struct Counts {
    std::size_t removed = 0, added = 0, common = 0;
    bool empty() const { return removed + added + common == 0; }
  };

  std::vector<std::string> InRows(const std::string& line) const {
    if (options_.width <= 0) return {line};
    return HardWrap(line, std::max(options_.width, 8), "", style_.Paint(Style::kDim, "↪ "));
  }

  // After the first line that does not fit, no other is shown.
  bool Put(const std::string& line) {
    std::vector<std::string> rows = InRows(line);
    if (rows.size() > room_) {
      room_ = 0;
      return false;
    }
    if (room_ != kNoLimit) room_ -= rows.size();
    std::move(rows.begin(), rows.end(), std::back_inserter(lines_));
    return true;
  }

  // The rows that it takes, counted only up to the remaining room.
  std::size_t RowsOf(const DiffRun& run) const {
    std::size_t rows = 0;
    for (std::size_t n = 0; n < run.count && rows <= room_; ++n) {
      const std::size_t size = LineOf(run, n).size();
      rows += 1 + (options_.width > 0 ? std::min(size / static_cast<std::size_t>(options_.width), kMostRowsOfLine) : 0);
    }
    return rows;
  }

  std::string_view LineOf(const DiffRun& run, std::size_t n) const {
    return run.kind == DiffRun::Kind::kAdded ? after_[run.after + n] : before_[run.before + n];
  }

  void WriteHunkHead(const Hunk& hunk) {
    std::size_t before = 0, after = 0;
    for (const DiffRun& run : hunk) {
      if (run.kind != DiffRun::Kind::kAdded) before += run.count;
      if (run.kind != DiffRun::Kind::kRemoved) after += run.count;
    }
    const std::string head =
        "@@ -" + LineRange(hunk[0].before, before) + " +" + LineRange(hunk[0].after, after) + " @@";
    if (room_ < 2) room_ = 0;  // no header without a line
    Put(style_.Paint(Style::kAccent, head));
  }

  // Each line replaces the one in the same place.
  void MarkChanges(const DiffRun& removed, const DiffRun& added) {
    if (!style_.has_colour()) return;
    for (std::size_t n = 0; n < removed.count; ++n) {
      const std::string_view old = LineOf(removed, n), now = LineOf(added, n);
      if (old.size() > kLongestShownLine || now.size() > kLongestShownLine) continue;
      if (const auto parts = ChangedParts(Shown(old), Shown(now))) {
        marks_[old.data()] = parts->first;
        marks_[now.data()] = parts->second;
      }
    }
  }

  void WriteBeginnings(const DiffRun& removed, const DiffRun& added) {
    if (room_ < 4) room_ = 0;
    Put(style_.Paint(Style::kDim,
                     Lines(removed.count) + " replaced by " + Lines(added.count) + "; the beginning of both:"));
    const std::size_t both = room_, begin = lines_.size();
    room_ = both - std::min(both / 2, RowsOf(added));
    WriteLines(removed);
    room_ = both - (lines_.size() - begin);
    WriteLines(added);
    room_ = 0;
  }

  // Writes the lines that fit, and counts the others.
  void WriteLines(const DiffRun& run) {
    std::size_t n = 0;
    while (n < run.count) {
      const std::size_t blank = run.kind == DiffRun::Kind::kCommon ? 0 : BlankLines(run, n);
      if (blank > kMostBlankLines) {
        const std::string note = style_.Paint(Style::kWarning, "<" + Counted(blank, "blank line") + ">");
        if (!Put(NumberOf(run, n) + painter_.Paint(SignOf(run.kind), note))) break;
        n += blank;
      } else if (WriteLine(run, n)) {
        ++n;
      } else {
        break;
      }
    }
    const std::size_t rest = run.count - n;
    switch (run.kind) {
      case DiffRun::Kind::kCommon:
        left_out_.common += rest;
        break;
      case DiffRun::Kind::kRemoved:
        left_out_.removed += rest;
        break;
      case DiffRun::Kind::kAdded:
        left_out_.added += rest;
        break;
    }
  }

  // The number of blank lines from the nth one on.
  std::size_t BlankLines(const DiffRun& run, std::size_t n) const {
    const std::size_t begin = n;
    while (n < run.count && LineOf(run, n).find_first_not_of(" \t\r\n") == std::string_view::npos) ++n;
    return n - begin;
  }

  bool WriteLine(const DiffRun& run, std::size_t n) {
    if (room_ == 0) return false;
    const std::string_view line = LineOf(run, n);
    const auto mark = marks_.find(line.data());
    const std::string painted = painter_.Paint(SignOf(run.kind), Shown(line),
                                               mark == marks_.end() ? std::nullopt : std::optional(mark->second));
    return Put(NumberOf(run, n) + painted) &&
           (line.ends_with('\n') || Put(style_.Paint(Style::kDim, "\\ No newline at end of file")));
  }

  static char SignOf(DiffRun::Kind kind) {
    return kind == DiffRun::Kind::kCommon ? ' ' : kind == DiffRun::Kind::kRemoved ? '-' : '+';
  }

  std::string NumberOf(const DiffRun& run, std::size_t n) const {
    if (!options_.numbered) return {};
    return NumberText((run.kind == DiffRun::Kind::kRemoved ? run.before : run.after) + n + 1, style_);
  }

  // Without its end.
  std::string Shown(std::string_view line) {
    if (line.ends_with('\n')) line.remove_suffix(1);
    if (without_cr_ && line.ends_with('\r')) line.remove_suffix(1);
    std::size_t most = kLongestShownLine;
    if (options_.width > 0) most = kMostRowsOfLine * static_cast<std::size_t>(options_.width);
    const std::string_view beginning = room_ == kNoLimit ? line : Utf8Prefix(line, most);
    std::string text = WithoutTabs(VisibleLine(beginning), "→");
    if (beginning.size() == line.size()) return text;
    has_cut_lines_ = true;
    return text + " … (" + CountOf(line.size() - beginning.size(), "more byte") + ")";
  }

  static constexpr std::size_t kNoLimit = static_cast<std::size_t>(-1);

  const FileLines& before_;
  const FileLines& after_;
  const Style& style_;
  const DiffOptions& options_;
  DiffLinePainter painter_;
  bool without_cr_;
  std::size_t room_ = kNoLimit;  // for further lines
  std::vector<std::string> lines_;
  std::map<const char*, TextSpan> marks_;  // by the beginning of the line: what has changed in it
  Counts left_out_;
  bool has_cut_lines_ = false;
};

std::string NotText(std::string_view bytes) {
  return "(" + Counted(bytes.size(), "byte") + ", not UTF-8 text: cannot be shown)\n";
}

// The first lines of a hunk "@@ -3,2 +4,5 @@", in the old and the new file.
std::optional<std::pair<std::size_t, std::size_t>> NumbersOfHunk(std::string_view line) {
  const std::size_t minus = line.find(" -"), plus = line.find(" +");
  if (!line.starts_with("@@") || minus == std::string_view::npos || plus == std::string_view::npos) return std::nullopt;
  const auto number = [&](std::size_t at) {
    const std::string_view text = line.substr(at + 2);
    return ParseNumber<std::size_t>(text.substr(0, text.find_first_of(", ")));
  };
  const auto before = number(minus), now = number(plus);
  return before && now ? std::optional(std::pair(*before, *now)) : std::nullopt;
}

// Of a line of a counted diff: how many unchanged blank lines it stands for. No line of a diff begins so.
std::size_t BlankLinesIn(std::string_view line) {
  if (!line.starts_with('<')) return 0;
  std::string digits(line.substr(1, line.find(' ') - 1));  // "1,000"
  std::erase(digits, ',');
  return ParseNumber<std::size_t>(digits).value_or(0);
}

// Whether a header line says more than the file's name: a note, a binary file, or an unusual mode.
bool IsToldOfHeader(std::string_view line) {
  const bool is_mode = line.starts_with("new mode ") || line.starts_with("new file mode ");
  return line.starts_with("# ") || line.starts_with("Binary files ") || (is_mode && !line.ends_with("100644"));
}

}  // namespace

Diff DiffLines(std::optional<std::string_view> before, std::optional<std::string_view> after, const Style& style,
               const DiffOptions& options) {
  const std::string_view old_bytes = before.value_or(""), new_bytes = after.value_or("");
  if (before.has_value() == after.has_value() && old_bytes == new_bytes) {
    return {.lines = {style.Paint(Style::kDim, "no change of " + VisibleLine(options.path))}, .cut = false};
  }

  const bool are_text = IsUtf8Text(old_bytes) && IsUtf8Text(new_bytes);
  const std::string old_note = NotText(old_bytes), new_note = NotText(new_bytes);
  const FileLines old_lines = FileLinesOf(IsUtf8Text(old_bytes) ? old_bytes : old_note);
  const FileLines new_lines = FileLinesOf(IsUtf8Text(new_bytes) ? new_bytes : new_note);
  DiffWriter writer(old_lines, new_lines, style, options);
  writer.WriteHead(before.has_value(), after.has_value());
  if (old_lines.empty() && new_lines.empty()) writer.WriteNote("(an empty file)");
  std::vector<DiffRun> runs;
  if (are_text) {
    runs = Compare(old_lines, new_lines);
  } else {
    RunList all;
    all.AddRemoved(old_lines.size());
    all.AddAdded(new_lines.size());
    runs = all.Take();
  }
  for (const Hunk& hunk : HunksOf(runs, options.context)) writer.Write(hunk);
  return writer.Finish();
}

std::vector<std::string> DrawUnified(const Json& files, const Style& style, int width) {
  std::vector<std::string> lines;
  for (const Json& file : files) {
    lines.push_back(style.Paint(Style::kBold, VisibleLine(TextMember(file, "path"))) + "  " +
                    VisibleLine(TextMember(file, "change")));
    const std::string diff = TextMember(file, "diff");
    const std::size_t at = std::min(diff.find("\n@@ "), diff.size());
    for (const std::string& line : LinesOf(std::string_view(diff).substr(0, at))) {
      if (IsToldOfHeader(line)) lines.push_back(style.Paint(Style::kDim, WithoutTabs(VisibleLine(line))));
    }
    if (at == diff.size()) continue;
    DiffLinePainter painter(TextMember(file, "path"), style);
    std::size_t before = 0, now = 0;  // the numbers of the next lines; both 0: no hunk has begun
    for (const std::string& line : LinesOf(WithBlankLinesCounted(std::string_view(diff).substr(at + 1)))) {
      const char sign = line.empty() ? ' ' : line[0];
      const std::string shown = WithoutTabs(VisibleLine(line));
      const bool is_line = before + now != 0 && (sign == '+' || sign == '-' || sign == ' ');
      if (!is_line) {
        if (const auto numbers = NumbersOfHunk(line)) std::tie(before, now) = *numbers;
        const std::size_t blank = BlankLinesIn(line);
        before += blank;
        now += blank;
        for (const std::string& part : HardWrap(shown, width, "", "  ")) {
          lines.push_back(style.Paint(RoleOfDiffLine(line), part));
        }
        continue;
      }
      const std::string number = NumberText(sign == '-' ? before : now, style);
      before += sign != '+' ? 1 : 0;
      now += sign != '-' ? 1 : 0;
      const std::string painted = painter.Paint(sign, shown.empty() ? shown : shown.substr(1));
      for (std::string& part : HardWrap(number + painted, width, "", "  ")) lines.push_back(std::move(part));
    }
  }
  return lines;
}

}  // namespace reprise
