#include "base/text_match.h"

#include <string.h>

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <functional>
#include <limits>
#include <unordered_map>
#include <utility>

#include "base/terminal_text.h"
#include "base/text.h"

namespace reprise {
namespace {

// --- lines -----------------------------------------------------------------------------------------------------------

// The lines without their line feeds. A final line feed does not begin another line.
std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string_view Indent(std::string_view line) { return line.substr(0, line.find_first_not_of(" \t")); }

// The place of the n-th line feed at or after `from`, plus one; the end if there are fewer. 0: `from`.
std::size_t AfterLineFeeds(std::string_view text, std::size_t from, std::size_t n) {
  for (; n > 0; --n) {
    const std::size_t at = text.find('\n', from);
    if (at == std::string_view::npos) return text.size();
    from = at + 1;
  }
  return from;
}

std::size_t CountLineFeeds(std::string_view text) { return static_cast<std::size_t>(std::ranges::count(text, '\n')); }

// Whether each line ends with a carriage return and a line feed. False if no line ends.
bool HasCrlf(std::string_view text) {
  std::size_t at = text.find('\n');
  if (at == std::string_view::npos) return false;
  for (; at != std::string_view::npos; at = text.find('\n', at + 1)) {
    if (at == 0 || text[at - 1] != '\r') return false;
  }
  return true;
}

std::string WithCrlf(std::string_view text) {
  std::string ended;
  for (const char c : text) {
    if (c == '\n' && !ended.ends_with('\r')) ended += '\r';
    ended += c;
  }
  return ended;
}

// --- texts with fewer differences ------------------------------------------------------------------------------------

// A character that writers put in place of a plain one, and its length in UTF-8.
struct LookAlike {
  char plain;
  std::size_t bytes;
};

std::optional<LookAlike> LookAlikeAt(std::string_view text) {
  const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u; };
  if (byte(0) == 0xC2 && byte(1) == 0xA0) return LookAlike{' ', 2};
  if (byte(0) != 0xE2 && byte(0) != 0xE3) return std::nullopt;
  const unsigned code = (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  if ((byte(1) & 0xC0) != 0x80 || (byte(2) & 0xC0) != 0x80) return std::nullopt;
  if ((code >= 0x2010 && code <= 0x2015) || code == 0x2212) return LookAlike{'-', 3};
  if (code >= 0x2018 && code <= 0x201B) return LookAlike{'\'', 3};
  if (code >= 0x201C && code <= 0x201F) return LookAlike{'"', 3};
  if ((code >= 0x2000 && code <= 0x200A) || code == 0x202F || code == 0x205F || code == 0x3000)
    return LookAlike{' ', 3};
  return std::nullopt;
}

std::string WithoutLookAlikes(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    const auto found = LookAlikeAt(text.substr(at));
    plain += found ? found->plain : text[at];
    at += found ? found->bytes : 1;
  }
  return plain;
}

// A text without the differences that do not count, with the original place of each byte.
struct Reduced {
  std::string text;
  std::vector<std::uint32_t> begin, end;

  void Add(char c, std::size_t from, std::size_t to) {
    text += c;
    begin.push_back(static_cast<std::uint32_t>(from));
    end.push_back(static_cast<std::uint32_t>(to));
  }
};

// `keeps_last`: the last line goes on behind the text, so blanks at its end count.
Reduced Reduce(std::string_view text, Likeness likeness, bool keeps_last = false) {
  Reduced reduced;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = std::min(text.find_first_not_of(" \t\r", at), text.size());
    if (next == text.size() ? !keeps_last : text[next] == '\n') at = next;  // blanks at a line's end
    for (; at < next; ++at) reduced.Add(text[at], at, at + 1);
    if (at == text.size()) break;
    const auto look_alike = likeness == Likeness::kTypography ? LookAlikeAt(text.substr(at)) : std::nullopt;
    const std::size_t bytes = look_alike ? look_alike->bytes : 1;
    reduced.Add(look_alike ? look_alike->plain : text[at], at, at + bytes);
    at += bytes;
  }
  return reduced;
}

// Calls `found` with each place of `wanted` until it returns false. Linear, unlike std::string::find.
template <typename Found>
void EachPlace(std::string_view text, std::string_view wanted, std::size_t from, std::size_t step, const Found& found) {
  while (from < text.size()) {
    const void* const at = ::memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
    if (at == nullptr) return;
    const auto place = static_cast<std::size_t>(static_cast<const char*>(at) - text.data());
    if (place % step == 0 && !found(place)) return;
    from = place + 1;
  }
}

bool IsWholeLines(std::string_view text, std::size_t begin, std::size_t end) {
  return (begin == 0 || text[begin - 1] == '\n') && (end == text.size() || text[end] == '\n' || text[end - 1] == '\n');
}

std::vector<TextPlace> FindExactly(std::string_view text, std::string_view wanted, bool whole_lines, std::size_t from) {
  std::vector<TextPlace> places;
  EachPlace(text, wanted, from, 1, [&](std::size_t at) {
    if (!whole_lines || IsWholeLines(text, at, at + wanted.size())) places.push_back({at, at + wanted.size()});
    return places.size() < kMostPlaces;
  });
  return places;
}

std::vector<TextPlace> FindReduced(std::string_view text, std::string_view wanted, bool whole_lines, std::size_t from,
                                   Likeness likeness) {
  std::vector<TextPlace> places;
  if (IsBlank(wanted) || text.size() > std::numeric_limits<std::uint32_t>::max()) return places;
  Reduced reduced = Reduce(text, likeness);
  if (!reduced.text.ends_with('\n')) reduced.Add('\n', text.size(), text.size());
  const auto find = [&](const std::string& like, bool line_must_end) {
    EachPlace(reduced.text, like, 0, 1, [&](std::size_t at) {
      const std::size_t end = at + like.size();
      if (reduced.begin[at] < from) return true;
      if (line_must_end && end < reduced.text.size() && reduced.text[end] != '\n') return true;
      if (whole_lines && !IsWholeLines(reduced.text, at, end)) return true;
      places.push_back({reduced.begin[at], reduced.end[end - 1]});
      return places.size() < kMostPlaces;
    });
  };
  find(Reduce(wanted, likeness, /*keeps_last=*/true).text, /*line_must_end=*/false);
  const bool ends_blank = wanted.back() == ' ' || wanted.back() == '\t' || wanted.back() == '\r';
  if (places.empty() && ends_blank) find(Reduce(wanted, likeness).text, /*line_must_end=*/true);
  return places;
}

// --- indentation -----------------------------------------------------------------------------------------------------

// Turns the indentation of remembered lines into that of the file's.
class IndentRule {
 public:
  // The rule that turns each line of `wanted` into the same line of `found`; nullopt if there is none.
  static std::optional<IndentRule> Find(const std::vector<std::string_view>& wanted,
                                        const std::vector<std::string_view>& found) {
    const auto fits = [&](const IndentRule& rule) {
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (!IsBlank(wanted[i]) && rule.Apply(Indent(wanted[i])) != Indent(found[i])) return false;
      }
      return true;
    };
    if (fits(IndentRule(0, 0))) return IndentRule(0, 0);
    for (const std::size_t width : {4, 2, 8, 3}) {
      for (const bool to_tabs : {true, false}) {
        const IndentRule rule(to_tabs ? width : 0, to_tabs ? 0 : width);
        if (fits(rule)) return rule;
      }
    }
    // The first line says by how much.
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (IsBlank(wanted[i])) continue;
      const std::string_view ours = Indent(wanted[i]), theirs = Indent(found[i]);
      IndentRule rule(0, 0);
      if (theirs.ends_with(ours)) {
        rule.add_ = theirs.substr(0, theirs.size() - ours.size());
      } else if (ours.ends_with(theirs)) {
        rule.remove_ = ours.substr(0, ours.size() - theirs.size());
      } else {
        return std::nullopt;
      }
      return fits(rule) ? std::optional(rule) : std::nullopt;
    }
    return std::nullopt;
  }

  // nullopt: it does not say.
  std::optional<std::string> Apply(std::string_view indent) const {
    if (!indent.starts_with(remove_)) return std::nullopt;
    indent.remove_prefix(remove_.size());
    std::string applied = add_;
    while (!indent.empty()) {
      const bool is_spaces =
          spaces_for_tab_ > 0 && indent.find_first_not_of(' ') >= spaces_for_tab_ && indent.size() >= spaces_for_tab_;
      if (is_spaces) {
        applied += '\t';
        indent.remove_prefix(spaces_for_tab_);
      } else {
        applied += tab_as_spaces_ > 0 && indent.front() == '\t' ? std::string(tab_as_spaces_, ' ')
                                                                : std::string(1, indent.front());
        indent.remove_prefix(1);
      }
    }
    return applied;
  }

 private:
  IndentRule(std::size_t spaces_for_tab, std::size_t tab_as_spaces)
      : spaces_for_tab_(spaces_for_tab), tab_as_spaces_(tab_as_spaces) {}

  std::string add_, remove_;
  std::size_t spaces_for_tab_, tab_as_spaces_;
};

// A line without what may differ.
std::string Core(std::string_view line) { return std::string(Trimmed(WithoutLookAlikes(line), " \t\r")); }

std::vector<std::uint64_t> Hashes(const std::vector<std::string_view>& lines) {
  std::vector<std::uint64_t> hashes;
  hashes.reserve(lines.size());
  for (const std::string_view line : lines) hashes.push_back(std::hash<std::string>()(Core(line)));
  return hashes;
}

std::string_view BytesOf(const std::vector<std::uint64_t>& hashes) {
  return {reinterpret_cast<const char*>(hashes.data()), hashes.size() * sizeof hashes[0]};
}

std::vector<TextPlace> FindIndented(std::string_view text, std::string_view wanted, std::size_t from) {
  std::vector<TextPlace> places;
  const auto lines = Lines(text), wanted_lines = Lines(wanted);
  if (IsBlank(wanted)) return places;
  const auto hashes = Hashes(lines), wanted_hashes = Hashes(wanted_lines);
  EachPlace(BytesOf(hashes), BytesOf(wanted_hashes), 0, sizeof hashes[0], [&](std::size_t byte) {
    const std::size_t first = byte / sizeof hashes[0];
    const std::string_view last = lines[first + wanted_lines.size() - 1];
    const auto begin = static_cast<std::size_t>(lines[first].data() - text.data());
    auto end = static_cast<std::size_t>(last.data() - text.data()) + last.size();
    if (wanted.ends_with('\n')) {
      end = std::min(end + 1, text.size());
    } else if (last.ends_with('\r')) {
      --end;
    }
    if (begin >= from) places.push_back({begin, end});
    return places.size() < kMostPlaces;
  });
  // Several places are for the caller to refuse; one must be indented by a rule.
  if (places.size() != 1) return places;
  if (!IndentRule::Find(wanted_lines, Lines(text.substr(places[0].begin, places[0].end - places[0].begin)))) {
    places.clear();
  }
  return places;
}

// The lines of `text` with the indentation that `rule` gives; nullopt if it says nothing about one of them.
std::optional<std::string> Reindented(std::string_view text, const IndentRule& rule) {
  std::string indented;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end), indent = Indent(line);
    text.remove_prefix(end);
    if (IsBlank(line)) {
      indented += line;
      continue;
    }
    const auto applied = rule.Apply(indent);
    if (!applied) return std::nullopt;
    indented.append(*applied).append(line.substr(indent.size()));
  }
  return indented;
}

}  // namespace

TextMatches FindText(std::string_view text, std::string_view wanted, bool whole_lines, std::size_t from) {
  TextMatches matches{.likeness = Likeness::kExact, .places = FindExactly(text, wanted, whole_lines, from)};
  for (const Likeness likeness : {Likeness::kBlanks, Likeness::kTypography}) {
    if (matches.places.empty()) matches = {likeness, FindReduced(text, wanted, whole_lines, from, likeness)};
  }
  if (matches.places.empty()) matches = {Likeness::kIndentation, FindIndented(text, wanted, from)};
  return matches;
}

namespace {

// Takes the lines that both texts have out of the replacement, so that they stay as they are in the file.
void LeaveSameLines(std::string_view text, std::string_view wanted, Replacement& made) {
  const std::string_view found = text.substr(made.place.begin, made.place.end - made.place.begin);
  const std::string_view replacement = made.text;
  std::size_t same = 0, head = 0, tail = 0;
  for (std::size_t end; (end = wanted.find('\n', head)) != std::string_view::npos; head = end + 1, ++same) {
    const std::string_view line = wanted.substr(head, end + 1 - head);
    if (replacement.substr(std::min(head, replacement.size()), line.size()) != line) break;
  }
  const auto begins_line = [&](std::string_view in, std::size_t at) { return at == head || in[at - 1] == '\n'; };
  const std::size_t most = std::min(wanted.size(), replacement.size()) - head;
  for (std::size_t i = 1; i <= most && wanted[wanted.size() - i] == replacement[replacement.size() - i]; ++i) {
    if (begins_line(wanted, wanted.size() - i) && begins_line(replacement, replacement.size() - i)) tail = i;
  }
  const std::size_t base = made.place.begin;
  made.place.begin = base + AfterLineFeeds(found, 0, same);
  if (tail > 0) {
    made.place.end = base + AfterLineFeeds(found, 0, CountLineFeeds(wanted.substr(0, wanted.size() - tail)));
  }
  made.text = replacement.substr(head, replacement.size() - tail - head);
  const bool adds_end = tail == 0 && made.place.end == text.size() && !text.ends_with('\n') && wanted.ends_with('\n');
  if (adds_end && made.text.ends_with('\n')) made.text.pop_back();
}

}  // namespace

std::optional<Replacement> ReplacementAt(std::string_view text, const TextPlace& place, Likeness likeness,
                                         std::string_view wanted, std::string_view replacement) {
  const std::string_view found = text.substr(place.begin, place.end - place.begin);
  Replacement made{.place = place, .text = std::string(replacement)};
  if (likeness != Likeness::kExact) LeaveSameLines(text, wanted, made);
  const bool had_plain = likeness >= Likeness::kTypography && WithoutLookAlikes(found) == found;
  if (had_plain && WithoutLookAlikes(wanted) != wanted) made.text = WithoutLookAlikes(made.text);
  if (likeness == Likeness::kIndentation) {
    const auto rule = IndentRule::Find(Lines(wanted), Lines(found));
    auto indented = rule ? Reindented(made.text, *rule) : std::nullopt;
    if (!indented) return std::nullopt;
    made.text = *std::move(indented);
  }
  const bool is_crlf = HasCrlf(CountLineFeeds(found) > 0 ? found : text);
  if (is_crlf && wanted.find('\r') == std::string_view::npos) made.text = WithCrlf(made.text);
  return made;
}

// --- messages --------------------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kMostVotes = 4'000'000;
constexpr std::size_t kMostNamed = 4;          // differing lines
constexpr std::size_t kMostQuotedLines = 24;   // of the nearest place
constexpr std::size_t kMostQuotedBytes = 240;  // of a line

// With what cannot be seen spelled out, tabs apart.
std::string WithHiddenSpelled(std::string text) {
  if (!HasHidden(text)) return text;
  std::string spelled;
  for (std::string_view left = text; !left.empty();) {
    const std::string_view one = Utf8Prefix(left, 1);
    const std::uint32_t code = CodePointOf(one);
    spelled += IsHidden(code) ? SpelledOut(code) : std::string(one);
    left.remove_prefix(one.size());
  }
  return spelled;
}

std::string Quoted(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.size() <= kMostQuotedBytes) return WithHiddenSpelled(ToValidUtf8(line));
  line = line.substr(0, kMostQuotedBytes);
  return WithHiddenSpelled(ToValidUtf8(line.substr(0, line.size() - IncompleteUtf8Tail(line)))) + "...";
}

std::string WithoutBlanks(std::string_view text) {
  std::string kept;
  for (const char c : text) {
    if (!IsSpace(c)) kept += c;
  }
  return kept;
}

// "2 tabs", "1 tab and 4 spaces", "none"
std::string Described(std::string_view indent) {
  const auto counted = [&](char c, const std::string& name) {
    const auto count = std::ranges::count(indent, c);
    return count == 0 ? "" : std::to_string(count) + " " + name + (count == 1 ? "" : "s");
  };
  const std::string tabs = counted('\t', "tab"), spaces = counted(' ', "space");
  if (tabs.empty() && spaces.empty()) return "none";
  return tabs + (tabs.empty() || spaces.empty() ? "" : " and ") + spaces;
}

// How two lines differ, if it is in a known way; empty if not.
std::string Difference(std::string_view found, std::string_view wanted, std::string_view name) {
  std::vector<std::string> ways;
  if (found.ends_with('\r') != wanted.ends_with('\r')) ways.emplace_back("line ends (CRLF)");
  found = found.substr(0, found.find_last_not_of('\r') + 1);
  wanted = wanted.substr(0, wanted.find_last_not_of('\r') + 1);
  if (Trimmed(found, " \t").size() + Indent(found).size() != found.size() ||
      Trimmed(wanted, " \t").size() + Indent(wanted).size() != wanted.size()) {
    const auto end_of = [](std::string_view line) { return line.substr(line.find_last_not_of(" \t") + 1); };
    if (end_of(found) != end_of(wanted)) ways.emplace_back("blanks at line ends");
  }
  if (!IsBlank(found) && Indent(found) != Indent(wanted)) {
    ways.push_back("indentation (the file has " + Described(Indent(found)) + ", " + std::string(name) + " " +
                   Described(Indent(wanted)) + ")");
  }
  const auto a = Trimmed(found), b = Trimmed(wanted);
  const std::string plain_a = WithoutLookAlikes(a), plain_b = WithoutLookAlikes(b);
  if (plain_a == plain_b) {
    if (a != b) ways.emplace_back("quotes, dashes or spaces that look alike");
  } else if (WithoutBlanks(plain_a) == WithoutBlanks(plain_b)) {
    ways.emplace_back("blanks within the line");
  } else if (LowerCase(plain_a) == LowerCase(plain_b)) {
    ways.emplace_back("upper and lower case");
  } else {
    return {};
  }
  return Joined(ways, ", ");
}

// Pairs of neighbouring bytes, in lower case.
using Pairs = std::bitset<65536>;
std::size_t PairAt(std::string_view line, std::size_t at) {
  return static_cast<unsigned char>(LowerCase(line[at - 1])) * 256u + static_cast<unsigned char>(LowerCase(line[at]));
}
Pairs PairsOf(std::string_view line) {
  Pairs pairs;
  for (std::size_t i = 1; i < line.size(); ++i) pairs.set(PairAt(line, i));
  return pairs;
}

// The share of a line's pairs that the other has too, 0 to 1.
double Alike(std::string_view line, const Pairs& pairs, std::size_t size) {
  if (line.size() < 2 || size < 2) return 0;
  std::size_t same = 0;
  for (std::size_t i = 1; i < line.size(); ++i) same += pairs.test(PairAt(line, i));
  return static_cast<double>(same) / static_cast<double>(std::max(line.size(), size) - 1);
}

// The line of the file at which the wanted text should begin, if it were there; negative if that is before the file.
// nullopt: nothing is like it.
std::optional<std::ptrdiff_t> NearestLine(const std::vector<std::string_view>& lines,
                                          const std::vector<std::string_view>& wanted) {
  const auto hashes = Hashes(lines), wanted_hashes = Hashes(wanted);
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!IsBlank(wanted[i])) places[wanted_hashes[i]].push_back(i);
  }
  std::unordered_map<std::ptrdiff_t, std::size_t> votes;  // by where the text would begin; weighed by the line's length
  std::pair<std::size_t, std::ptrdiff_t> best{0, 0};
  std::size_t cast = 0;
  for (std::size_t i = 0; i < lines.size() && cast < kMostVotes; ++i) {
    const auto found = places.find(hashes[i]);
    if (found == places.end()) continue;
    for (const std::size_t place : found->second) {
      const auto begin = static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(place);
      const std::size_t weight = votes[begin] += Trimmed(lines[i]).size();
      if (weight > best.first) best = {weight, begin};
      ++cast;
    }
  }
  if (best.first > 0) return best.second;
  const auto longest = std::ranges::max_element(
      wanted, [](std::string_view a, std::string_view b) { return Trimmed(a).size() < Trimmed(b).size(); });
  const std::string_view key = Trimmed(*longest);
  const Pairs pairs = PairsOf(key);
  double most = 0.5;
  std::optional<std::ptrdiff_t> nearest;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double alike = Alike(Trimmed(lines[i]), pairs, key.size());
    if (alike <= most) continue;
    most = alike;
    nearest = static_cast<std::ptrdiff_t>(i) - (longest - wanted.begin());
  }
  return nearest;
}

// The text without the line numbers in front of its lines; empty if not all lines have one.
std::string WithoutLineNumbers(const std::vector<std::string_view>& lines) {
  std::string text;
  for (const std::string_view line : lines) {
    const std::size_t number = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t end = std::min(line.find_first_not_of("0123456789", number), line.size());
    if (end == number || (end < line.size() && !IsBlank(line.substr(end, 1)) && line[end] != '|' && line[end] != ':')) {
      return {};
    }
    text.append(line.substr(std::min(end + 1, line.size()))) += '\n';
  }
  return text;
}

}  // namespace

std::string LinesAt(std::string_view text, const TextPlace& place) {
  const std::size_t first = CountLineFeeds(text.substr(0, place.begin)) + 1;
  std::string_view found = text.substr(place.begin, place.end - place.begin);
  if (found.ends_with('\n')) found.remove_suffix(1);
  const std::size_t last = first + CountLineFeeds(found);
  if (first == last) return "line " + std::to_string(first);
  return "lines " + std::to_string(first) + " to " + std::to_string(last);
}

std::string DifferenceAt(std::string_view text, const TextPlace& place, std::string_view wanted) {
  const auto found = Lines(text.substr(place.begin, place.end - place.begin)), lines = Lines(wanted);
  std::vector<std::string> ways;
  for (std::size_t i = 0; i < std::min(found.size(), lines.size()); ++i) {
    std::string way = Difference(found[i], lines[i], "the call");
    if (!way.empty() && std::ranges::find(ways, way) == ways.end()) ways.push_back(std::move(way));
  }
  std::string told;
  for (std::size_t i = 0; i < std::min(ways.size(), kMostNamed); ++i) told += (i == 0 ? "" : "; ") + ways[i];
  return told.empty() ? "line ends" : told;
}

std::string NearestPlace(std::string_view text, std::string_view wanted, std::string_view name, Quoting quoting) {
  const auto lines = Lines(text), wanted_lines = Lines(wanted);
  if (lines.empty()) return "The file is empty.";
  const std::string bare = WithoutLineNumbers(wanted_lines);
  if (!bare.empty() && !FindText(text, bare).places.empty()) {
    return std::string(name) + " has line numbers in front of its lines: leave them out.";
  }
  const auto nearest = NearestLine(lines, wanted_lines);
  if (!nearest) return "No place in the file is like it: read the file again.";
  const auto count = static_cast<std::ptrdiff_t>(lines.size()), size = static_cast<std::ptrdiff_t>(wanted_lines.size());
  const std::ptrdiff_t first = std::max<std::ptrdiff_t>(*nearest, 0), end = std::min(*nearest + size, count);
  std::string told = "The nearest place is " + std::string(first + 1 == end ? "line " : "lines ") +
                     std::to_string(first + 1) + (first + 1 == end ? "" : " to " + std::to_string(end)) + ".";
  std::size_t named = 0;
  for (std::ptrdiff_t i = *nearest; i < *nearest + size && named < kMostNamed; ++i) {
    const std::string_view ours = wanted_lines[static_cast<std::size_t>(i - *nearest)];
    const bool is_there = i >= 0 && i < count;
    const std::string_view theirs = is_there ? lines[static_cast<std::size_t>(i)] : std::string_view();
    if (is_there && ours == theirs) continue;
    ++named;
    if (!is_there) {
      told += " The file has no line for `" + Quoted(ours) + "`.";
      continue;
    }
    const std::string way = Difference(theirs, ours, name);
    told += " Line " + std::to_string(i + 1) + " differs" + (way.empty() ? "" : " in " + way);
    if (quoting == Quoting::kAllowed && way.empty()) {
      told += ": the file has `" + Quoted(theirs) + "`, " + std::string(name) + " has `" + Quoted(ours) + "`";
    }
    told += ".";
  }
  if (quoting == Quoting::kForbidden) return told;
  const std::ptrdiff_t shown = std::min(end, first + static_cast<std::ptrdiff_t>(kMostQuotedLines));
  told += " The file has there:";
  for (std::ptrdiff_t i = first; i < shown; ++i) {
    told += "\n" + std::to_string(i + 1) + "\t" + Quoted(lines[static_cast<std::size_t>(i)]);
  }
  if (shown < end) told += "\n(" + std::to_string(end - shown) + " more lines)";
  return told;
}

}  // namespace reprise
