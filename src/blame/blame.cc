#include "blame/blame.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "crypto/digest.h"

namespace reprise {
namespace {

using Origin = std::optional<std::size_t>;  // the index of a change; nullopt: of people, or unknown
using Text = std::uint32_t;                 // a line's text, as a number

// A file's lines with their origins.
struct Version {
  std::vector<Text> texts{};
  std::vector<Origin> origins{};
  std::vector<Text> sorted{};  // the texts
};

std::vector<Text> Sorted(std::vector<Text> texts) {
  std::ranges::sort(texts);
  return texts;
}

// How many lines only one of them has, in whatever order. REQUIRES: both are sorted.
std::size_t Distance(const std::vector<Text>& a, const std::vector<Text>& b) {
  std::size_t shared = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    shared += a[i] == b[j] ? 1 : 0;
    const bool steps_both = a[i] == b[j], steps_a = a[i] < b[j];
    i += steps_both || steps_a ? 1 : 0;
    j += steps_both || !steps_a ? 1 : 0;
  }
  return a.size() + b.size() - 2 * shared;
}

// Lines [from, to) of the old version became lines [after_from, after_to) of the new one.
struct Segment {
  std::size_t from, to, after_from, after_to;
  bool is_equal(const Version& old, const std::vector<Text>& texts) const {
    return std::equal(
        old.texts.begin() + static_cast<std::ptrdiff_t>(from), old.texts.begin() + static_cast<std::ptrdiff_t>(to),
        texts.begin() + static_cast<std::ptrdiff_t>(after_from), texts.begin() + static_cast<std::ptrdiff_t>(after_to));
  }
};

// The lines with one text in a segment.
struct Tally {
  std::size_t before = 0, after = 0;
  bool has_others = false;  // one of those before is of people
};
using Tallies = std::unordered_map<Text, Tally>;

Tallies TalliesOf(const Segment& segment, const Version& old, const std::vector<Text>& texts) {
  Tallies tallies;
  for (std::size_t i = segment.from; i < segment.to; ++i) {
    Tally& tally = tallies[old.texts[i]];
    ++tally.before;
    tally.has_others = tally.has_others || !old.origins[i];
  }
  for (std::size_t i = segment.after_from; i < segment.after_to; ++i) ++tallies[texts[i]].after;
  return tallies;
}

// The lines that surely are the same: those whose text both versions have once, in their longest common order.
std::vector<std::pair<std::size_t, std::size_t>> AnchorsOf(const std::vector<Text>& old,
                                                           const std::vector<Text>& texts) {
  struct Place {
    std::size_t before = 0;
    std::uint32_t count_before = 0, count_after = 0;
  };
  Text most = 0;
  for (const Text text : old) most = std::max(most, text);
  for (const Text text : texts) most = std::max(most, text);
  std::vector<Place> places(std::size_t{most} + 1);  // by text: they are numbered from 0
  for (std::size_t i = 0; i < old.size(); ++i) {
    Place& place = places[old[i]];
    place.before = i;
    ++place.count_before;
  }
  for (const Text text : texts) ++places[text].count_after;
  // The longest rising sequence: `tops` are the ends of the best sequences of each length, `previous` links them.
  struct Link {
    std::size_t before, after, previous;
  };
  constexpr std::size_t kNone = SIZE_MAX;
  std::vector<Link> links;
  std::vector<std::size_t> tops;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Place& place = places[texts[i]];
    if (place.count_before != 1 || place.count_after != 1) continue;
    const auto top = std::ranges::lower_bound(tops, place.before, {}, [&](std::size_t at) { return links[at].before; });
    links.push_back({place.before, i, top == tops.begin() ? kNone : *std::prev(top)});
    if (top == tops.end()) {
      tops.push_back(links.size() - 1);
    } else {
      *top = links.size() - 1;
    }
  }
  std::vector<std::pair<std::size_t, std::size_t>> anchors;
  for (std::size_t at = tops.empty() ? kNone : tops.back(); at != kNone; at = links[at].previous) {
    anchors.emplace_back(links[at].before, links[at].after);
  }
  std::ranges::reverse(anchors);
  return anchors;
}

// Gives the lines of a changed segment their origins. `is_unsure` says of a text that its lines may be those of people.
void MatchSegment(const Segment& segment, const Version& old, Origin writer, Version& version,
                  const std::function<bool(Text)>& is_unsure) {
  auto [from, to, after_from, after_to] = segment;
  const auto& texts = version.texts;
  const auto take = [&](std::size_t before, std::size_t after) {
    if (!is_unsure(texts[after])) version.origins[after] = old.origins[before];
  };
  // Equal lines at both ends first, so that an inserted block gets its own equal lines.
  for (; from < to && after_from < after_to && old.texts[from] == texts[after_from]; ++from, ++after_from) {
    take(from, after_from);
  }
  for (; from < to && after_from < after_to && old.texts[to - 1] == texts[after_to - 1]; --to, --after_to) {
    take(to - 1, after_to - 1);
  }
  std::unordered_map<Text, std::deque<std::size_t>> left;
  for (std::size_t i = from; i < to; ++i) left[old.texts[i]].push_back(i);
  for (std::size_t i = after_from; i < after_to; ++i) {
    const auto found = left.find(texts[i]);
    if (found != left.end() && !found->second.empty()) {
      take(found->second.front(), i);
      found->second.pop_front();
    } else if (!is_unsure(texts[i])) {
      version.origins[i] = writer;
    }
  }
}

// The version that `writer` made of `old`.
Version Changed(const Version& old, std::vector<Text> texts, Origin writer) {
  std::vector<Segment> segments;
  std::size_t from = 0, after_from = 0;
  Version version{.texts = std::move(texts)};
  version.origins.resize(version.texts.size());
  version.sorted = Sorted(version.texts);
  auto anchors = AnchorsOf(old.texts, version.texts);
  anchors.emplace_back(old.texts.size(), version.texts.size());
  std::vector<Tallies> tallies;
  std::unordered_set<Text> theirs;  // texts of people's lines in changed segments, which may have moved to others
  for (const auto& [anchor, after] : anchors) {
    const Segment segment{from, anchor, after_from, after};
    if (segment.is_equal(old, version.texts)) {
      std::copy(old.origins.begin() + static_cast<std::ptrdiff_t>(from),
                old.origins.begin() + static_cast<std::ptrdiff_t>(anchor),
                version.origins.begin() + static_cast<std::ptrdiff_t>(after_from));
    } else {
      segments.push_back(segment);
      tallies.push_back(TalliesOf(segment, old, version.texts));
      for (const auto& [text, tally] : tallies.back()) {
        if (tally.has_others) theirs.insert(text);
      }
    }
    if (anchor < old.texts.size()) version.origins[after] = old.origins[anchor];
    from = anchor + 1, after_from = after + 1;
  }
  for (std::size_t i = 0; i < segments.size(); ++i) {
    MatchSegment(segments[i], old, writer, version, [&](Text text) {
      const Tally& tally = tallies[i].at(text);
      return theirs.contains(text) || (!writer && tally.after > tally.before);
    });
  }
  return version;
}

bool IsFile(const std::optional<FileVersion>& version) { return version && version->kind == FileVersion::Kind::kFile; }

class FileHistory {
 public:
  FileHistory(const std::vector<BlamedChange>& changes, const BlameSources& sources)
      : changes_(changes), sources_(sources) {
    for (std::size_t i = 0; i < changes.size(); ++i) by_path_[changes[i].path].push_back(i);
  }

  std::vector<Origin> OriginsOf(const std::string& path, std::string_view present) {
    const std::string digest = Sha256Digest({present});
    for (const std::size_t change : ChangesThatMatter(path, present, digest)) Take(change);
    const auto known = known_.find(digest);
    return known != known_.end() ? known->second->origins : ChangedByPeople(states_[path], TextsIn(present)).origins;
  }

 private:
  static constexpr std::size_t kMostCompared = 64;  // versions, or files
  static constexpr double kRenamedShare = 0.5;      // of the lines of two files
  // A path after a change.
  using KnownVersion = std::shared_ptr<const Version>;  // a large file has many
  struct State {
    KnownVersion version = std::make_shared<const Version>();
    bool is_gone = true;  // then `version` is what it was last
  };

  // The changes of the file, and of the paths that it had before, in the order of time.
  std::set<std::size_t> ChangesThatMatter(const std::string& path, std::string_view present,
                                          const std::string& digest) {
    constexpr std::size_t kMostNames = 200;
    std::set<std::size_t> matter;
    std::vector<std::string> names{path};
    const auto add = [&](const std::string& name) {
      if (names.size() < kMostNames && std::ranges::find(names, name) == names.end()) names.push_back(name);
    };
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto& own = by_path_[names[i]];
      if (own.empty()) {  // a person may have given it this name
        if (const auto name = MovedFrom(names[i], TextsIn(present), digest, changes_.size())) add(*name);
      } else if (const auto& first = changes_[own.front()].before; IsFile(first)) {
        const auto texts = TextsOf(*first);
        if (const auto name = MovedFrom(names[i], texts.value_or(std::vector<Text>()), first->digest, own.front()))
          add(*name);
      }
      for (const std::size_t change : own) {
        matter.insert(change);
        if (IsFile(changes_[change].before) || !IsFile(changes_[change].after)) continue;
        if (const auto source = RenamedFrom(change)) {
          renamed_from_[change] = *source;
          add(changes_[*source].path);
        }
      }
    }
    return matter;
  }

  // The path that a person has renamed to `name`: one that is gone since change `until` and had this content, or held
  // half of its lines last.
  std::optional<std::string> MovedFrom(const std::string& name, const std::vector<Text>& texts,
                                       const std::string& digest, std::size_t until) {
    const auto has_it = [&](const std::optional<FileVersion>& version) {
      return IsFile(version) && version->digest == digest;
    };
    std::vector<std::pair<std::size_t, std::string>> gone;  // with the last change before `until`
    for (const auto& [path, own] : by_path_) {
      const auto next = std::ranges::lower_bound(own, until);
      if (path == name || next == own.begin() || texts.empty()) continue;
      if (next == own.end() ? sources_.is_there(path) : IsFile(changes_[*next].before)) continue;
      const bool had_it = std::any_of(
          own.begin(), next, [&](std::size_t i) { return has_it(changes_[i].before) || has_it(changes_[i].after); });
      if (had_it) return path;
      if (IsFile(changes_[*std::prev(next)].after)) gone.emplace_back(*std::prev(next), path);
    }
    std::ranges::sort(gone, std::greater());
    if (gone.size() > kMostCompared) gone.resize(kMostCompared);
    std::optional<std::string> best;
    double best_share = kRenamedShare;
    for (const auto& [last, path] : gone) {
      const double share = ShareOfLines(TextsOf(*changes_[last].after), texts);
      if (share >= best_share) best = path, best_share = share;
    }
    return best;
  }

  // The removal of another path by the same call or a neighbouring one, if the file that `creation` made has its
  // content or half of its lines.
  std::optional<std::size_t> RenamedFrom(std::size_t creation) {
    const BlamedChange& made = changes_[creation];
    if (!made.by_agent) return std::nullopt;
    std::vector<std::size_t> removals;
    const auto look_at = [&](std::size_t i) {
      const BlamedChange& other = changes_[i];
      if (other.turn != made.turn || other.path == made.path) return;
      const bool is_near = other.call + 1 >= made.call && other.call <= made.call + 1;
      if (is_near && other.by_agent && IsFile(other.before) && !other.after) removals.push_back(i);
    };
    // Turns of other chats may run at the same time, so the turn's changes need not be neighbours.
    if (of_turn_.empty()) {
      for (std::size_t i = 0; i < changes_.size(); ++i) of_turn_[changes_[i].turn].push_back(i);
    }
    std::ranges::for_each(of_turn_[made.turn], look_at);
    const auto same = std::ranges::find_if(removals, [&](std::size_t i) {
      return made.after->is_kept() && changes_[i].before->digest == made.after->digest;
    });
    if (same != removals.end()) return *same;
    std::optional<std::size_t> best;
    double best_share = kRenamedShare;
    if (removals.size() > kMostCompared) removals.resize(kMostCompared);
    const auto texts = removals.empty() ? std::nullopt : TextsOf(*made.after);
    for (const std::size_t i : removals) {
      const double share = texts ? ShareOfLines(TextsOf(*changes_[i].before), *texts) : 0;
      if (share >= best_share) best = i, best_share = share;
    }
    return best;
  }

  static double ShareOfLines(const std::optional<std::vector<Text>>& a, const std::vector<Text>& b) {
    const std::size_t all = a ? a->size() + b.size() : 0;
    return all == 0 ? 0 : static_cast<double>(all - Distance(Sorted(*a), Sorted(b))) / static_cast<double>(all);
  }

  void Take(std::size_t index) {
    const BlamedChange& change = changes_[index];
    const auto source = renamed_from_.find(index);
    const BlamedChange& from = source == renamed_from_.end() ? change : changes_[source->second];
    const State& state = states_[from.path];
    bool is_known = true;
    KnownVersion before =
        state.version;  // a file that a call makes anew may repeat lines that people had in the old one
    if (IsFile(from.before)) {
      auto seen = Known(*from.before);
      if (!seen) {
        if (auto texts = TextsOf(*from.before)) seen = Keep(*from.before, ChangedByPeople(state, *std::move(texts)));
      }
      is_known = seen != nullptr;
      if (seen) before = std::move(seen);
    }
    if (!IsFile(change.after)) {
      states_[change.path] = {.version = std::move(before), .is_gone = true};
      return;
    }
    auto after = Known(*change.after);
    if (!after) {
      // What a call made of an unknown version cannot be told from what people had changed in it.
      const Origin writer = change.by_agent && is_known ? Origin(index) : std::nullopt;
      if (auto texts = TextsOf(*change.after)) after = Keep(*change.after, Changed(*before, *std::move(texts), writer));
    }
    states_[change.path] = {.version = after ? std::move(after) : std::move(before), .is_gone = false};
  }

  // The version as it was before; null if it is new.
  KnownVersion Known(const FileVersion& version) const {
    const auto known = known_.find(version.digest);
    return known == known_.end() ? nullptr : known->second;
  }
  KnownVersion Keep(const FileVersion& version, Version made) {
    for (std::size_t i = 0; i < made.texts.size(); ++i) {
      if (!made.origins[i]) of_people_.insert(made.texts[i]);
    }
    latest_.push_back(known_[version.digest] = std::make_shared<const Version>(std::move(made)));
    if (latest_.size() > kMostCompared) latest_.pop_front();
    return latest_.back();
  }

  // What people made of a file. They may have gone back to an older version first: one that is much more like it and
  // has lines that have come back. Which one is a guess, so no line is the agent's that may be a person's going by
  // another that is nearly as like it.
  Version ChangedByPeople(const State& state, const std::vector<Text>& texts) const {
    static const Version kNothing;
    const Version* const last = state.is_gone ? &kNothing : state.version.get();
    const Version* base = last;
    const std::vector<Text> sorted = Sorted(texts);
    const std::size_t from_last = Distance(last->sorted, sorted);
    std::size_t least = from_last;
    struct Near {
      const Version* version;
      std::size_t distance;
      bool has_come_back;
    };
    std::vector<Near> near;
    for (const KnownVersion& other : latest_) {
      const std::size_t distance = Distance(other->sorted, sorted);
      if (distance > 2 * from_last) continue;
      // Not if lines are still there that it lacked, because a person would have had to type them again.
      const bool has_come_back = HasComeBack(*other, *last, sorted) && !HasComeBack(*last, *other, sorted);
      near.push_back({other.get(), distance, has_come_back});
      if (has_come_back && distance < least && 2 * distance <= from_last) base = other.get(), least = distance;
    }
    Version made = Changed(*base, texts, std::nullopt);
    for (const auto& [other, distance, has_come_back] : near) {
      if (distance > 2 * least) continue;
      // What an older version lacks, a call has added since, unless people have gone back to that version.
      const bool may_be_restored = base != last || distance < from_last;
      const Origin new_lines = may_be_restored ? std::nullopt : Origin(changes_.size());
      const auto origins = Changed(*other, texts, new_lines).origins;
      for (std::size_t i = 0; i < origins.size(); ++i) {
        if (!origins[i] && (has_come_back || of_people_.contains(texts[i]))) made.origins[i].reset();
      }
    }
    return made;
  }
  // Whether one of these lines was in `older` and is not in `last`.
  static bool HasComeBack(const Version& older, const Version& last, const std::vector<Text>& sorted) {
    std::vector<Text> gone, back;
    std::ranges::set_difference(older.sorted, last.sorted, std::back_inserter(gone));
    std::ranges::set_intersection(gone, sorted, std::back_inserter(back));
    return !back.empty();
  }

  // nullopt: the content is not kept.
  std::optional<std::vector<Text>> TextsOf(const FileVersion& version) {
    const auto content = version.is_kept() ? sources_.content(version) : std::nullopt;
    return content ? std::optional(TextsIn(*content)) : std::nullopt;
  }

  std::vector<Text> TextsIn(std::string_view content) {
    std::vector<Text> texts;
    while (!content.empty()) {
      const std::size_t end = std::min(content.find('\n'), content.size());
      const std::string_view line = content.substr(0, end);
      const auto known = texts_.find(line);
      texts.push_back(known != texts_.end()
                          ? known->second
                          : texts_.emplace(std::string(line), static_cast<Text>(texts_.size())).first->second);
      content.remove_prefix(std::min(content.size(), end + 1));
    }
    return texts;
  }

  const std::vector<BlamedChange>& changes_;
  const BlameSources& sources_;
  std::map<std::string, std::vector<std::size_t>> by_path_;
  std::unordered_map<std::size_t, std::vector<std::size_t>> of_turn_;
  std::map<std::size_t, std::size_t> renamed_from_;                        // a creation, and the removal
  std::map<std::string, State> states_;                                    // by path
  std::deque<KnownVersion> latest_;                                        // the last of known_
  std::unordered_map<std::string, std::shared_ptr<const Version>> known_;  // by digest
  std::unordered_set<Text> of_people_;                                     // all that people ever wrote
  struct HashOfLine : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, Text, HashOfLine, std::equal_to<>> texts_;
};

}  // namespace

std::vector<std::optional<std::size_t>> Blame(const std::string& path, std::string_view present,
                                              const std::vector<BlamedChange>& changes, const BlameSources& sources) {
  return FileHistory(changes, sources).OriginsOf(path, present);
}

}  // namespace reprise
