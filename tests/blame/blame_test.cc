#include "blame/blame.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/terminal_text.h"
#include "crypto/digest.h"
#include "support/test.h"

namespace reprise {
namespace blame_test {

constexpr std::size_t kPeople = SIZE_MAX;

// Recorded changes of some paths, as a test makes them.
class Record {
 public:
  std::optional<FileVersion> VersionOf(const std::optional<std::string>& content) {
    if (!content) return std::nullopt;
    FileVersion version{.mode = 0644, .size = content->size(), .digest = Sha256Digest({*content})};
    contents_[version.digest] = *content;
    return version;
  }
  // A change by a call of its own; returns its index.
  std::size_t Agent(const std::string& path, const std::optional<std::string>& before,
                    const std::optional<std::string>& after) {
    return Add(path, before, after, true, ++call_);
  }
  // The same by the call before.
  std::size_t Also(const std::string& path, const std::optional<std::string>& before,
                   const std::optional<std::string>& after) {
    return Add(path, before, after, true, call_);
  }
  std::size_t Others(const std::string& path, const std::optional<std::string>& before,
                     const std::optional<std::string>& after) {
    return Add(path, before, after, false, ++call_);
  }
  void Lose(const std::string& content) { contents_.erase(Sha256Digest({content})); }
  void NextTurn() { ++turn_, call_ = 0; }

  // For each line the index of its change, or kPeople. `alone`: all other files are gone.
  std::vector<std::size_t> Blamed(const std::string& path, const std::string& present, bool alone = false) const {
    const BlameSources sources{.content = [this](const FileVersion& version) -> std::optional<std::string> {
                                 const auto found = contents_.find(version.digest);
                                 return found == contents_.end() ? std::nullopt : std::optional(found->second);
                               },
                               .is_there = [&](const std::string& other) { return !alone || other == path; }};
    std::vector<std::size_t> origins;
    for (const auto& origin : Blame(path, present, changes_, sources)) origins.push_back(origin.value_or(kPeople));
    return origins;
  }

 private:
  std::size_t Add(const std::string& path, const std::optional<std::string>& before,
                  const std::optional<std::string>& after, bool by_agent, std::size_t call) {
    changes_.push_back({.path = path,
                        .before = VersionOf(before),
                        .after = VersionOf(after),
                        .by_agent = by_agent,
                        .turn = turn_,
                        .call = call});
    return changes_.size() - 1;
  }

  std::vector<BlamedChange> changes_;
  std::map<std::string, std::string> contents_;
  std::size_t turn_ = 0, call_ = 0;
};

using Origins = std::vector<std::size_t>;

TEST_CASE("Blame: a line is the call's that wrote it", "[blame]") {
  Record record;
  CHECK(record.Blamed("/w/f", "") == Origins{});
  CHECK(record.Blamed("/w/f", "a\nb") == Origins{kPeople, kPeople});
  const auto first = record.Agent("/w/f", std::nullopt, "a\nb\n");
  const auto second = record.Agent("/w/f", "a\nb\n", "a\nnew\nb\n");
  CHECK(record.Blamed("/w/f", "a\nnew\nb\n") == Origins{first, second, first});
  CHECK(record.Blamed("/w/other", "a\nnew\nb\n") == Origins{kPeople, kPeople, kPeople});
}

TEST_CASE("Blame: people's edits between calls, and after the last one, are theirs", "[blame]") {
  Record record;
  const auto first = record.Agent("/w/f", "mine\n", "mine\nagent 1\nagent 2\n");
  const auto second = record.Agent("/w/f", "mine\nagent 1 (changed)\nagent 2\nadded\n",
                                   "mine\nagent 1 (changed)\nagent 2\nadded\nagent 3\n");
  CHECK(record.Blamed("/w/f", "top\nmine\nagent 1 (changed)\nagent 2\nadded\nagent 3\n") ==
        Origins{kPeople, kPeople, kPeople, first, kPeople, second});
  // A change that no call made is recorded when a restore overwrites it.
  const std::string last = "mine\nagent 1 (changed)\nagent 2\nadded\nagent 3\n";
  record.Others("/w/f", last, last + "by hand\n");
  CHECK(record.Blamed("/w/f", last + "by hand\n") == Origins{kPeople, kPeople, first, kPeople, second, kPeople});
}

TEST_CASE("Blame: what people leave of a call's lines stays the call's", "[blame]") {
  Record record;
  const auto first = record.Agent("/w/f", "a\nb\n", "a\n1\n2\n3\n4\n5\n6\n7\n8\nb\n");
  CHECK(record.Blamed("/w/f", "a\n2\n7\nb\n") == Origins{kPeople, first, first, kPeople});
  CHECK(record.Blamed("/w/f", "a\n2\nnew\n7\n") == Origins{kPeople, first, kPeople, first});
}

TEST_CASE("Blame: a formatter that a call runs changes lines for the call", "[blame]") {
  Record record;
  record.Agent("/w/f", "int a;\n  int b;\n", "int a;\nint b;\n");
  CHECK(record.Blamed("/w/f", "int a;\nint b;\n") == Origins{kPeople, 0});
}

TEST_CASE("Blame: a restored version has the origins that it had", "[blame]") {
  Record record;
  const auto first = record.Agent("/w/f", "mine\n", "mine\none\n");
  record.Agent("/w/f", "mine\none\n", "two\n");
  CHECK(record.Blamed("/w/f", "mine\none\n") == Origins{kPeople, first});
  CHECK(record.Blamed("/w/f", "mine\n") == Origins{kPeople});
  record.NextTurn();
  const auto third = record.Agent("/w/f", "mine\none\n", "mine\none\nthree\n");
  CHECK(record.Blamed("/w/f", "mine\none\nthree\n") == Origins{kPeople, first, third});
  // A call that restores what people had written, `git checkout` say, has not written it.
  record.Agent("/w/f", "mine\none\nthree\n", "mine\n");
  CHECK(record.Blamed("/w/f", "mine\n") == Origins{kPeople});
}

TEST_CASE("Blame: a version that was restored and then edited by hand", "[blame]") {
  Record record;
  const std::string old = "1\n2\n3\n4\n5\n";
  const auto first = record.Agent("/w/f", std::nullopt, old);
  record.Agent("/w/f", old, "a\nb\nc\nd\n");
  CHECK(record.Blamed("/w/f", "1\n2\n3\n4\nby hand\n") == Origins{first, first, first, first, kPeople});
}

TEST_CASE("Blame: a line that a person types again is no restored version", "[blame]") {
  Record record;
  const auto first = record.Agent("/w/f", std::nullopt, "1\n2\n3\n");
  record.NextTurn();
  const auto second = record.Agent("/w/f", "1\nmine\n3\n", "1\nmine\n3\nadded\n");
  CHECK(record.Blamed("/w/f", "1\n2\n3\nadded\n") == Origins{first, kPeople, first, second});
}

TEST_CASE("Blame: of equal lines that were added, removed or moved none counts for the agent", "[blame]") {
  Record record;
  const auto first = record.Agent("/w/f", "a {\n}\n", "a {\n}\nb {\n}\n");
  CHECK(record.Blamed("/w/f", "a {\n}\nb {\n}\n") == Origins{kPeople, kPeople, first, kPeople});
  // Away from people's lines they are the agent's.
  const auto more = record.Agent("/w/g", "x\n", "x\nc {\n}\nd {\n}\n");
  CHECK(record.Blamed("/w/g", "x\nc {\n}\nd {\n}\n") == Origins{kPeople, more, more, more, more});
  // A person's } near one of the agent's makes both the person's.
  CHECK(record.Blamed("/w/g", "x\nc {\n}\nd {\ne {\n}\n}\n") ==
        Origins{kPeople, more, more, more, kPeople, kPeople, kPeople});
}

TEST_CASE("Blame: a call that moves a person's line has not written it", "[blame]") {
  Record record;
  record.Agent("/w/f", "c\nb\na\n", "a\nb\nc\n");
  CHECK(record.Blamed("/w/f", "a\nb\nc\n") == Origins{kPeople, kPeople, kPeople});
  record.Agent("/w/g", "one\ntwo\n", std::nullopt);
  const auto again = record.Agent("/w/g", std::nullopt, "one\nnew\ntwo\n");
  CHECK(record.Blamed("/w/g", "one\nnew\ntwo\n") == Origins{kPeople, again, kPeople});
}

TEST_CASE("Blame: a renamed file keeps its lines' origins", "[blame]") {
  Record record;
  const auto first = record.Agent("/w/a", "mine\n", "mine\none\n");
  SECTION("by one call") {
    record.Agent("/w/a", "mine\none\n", std::nullopt);
    record.Also("/w/b", std::nullopt, "mine\none\n");
    CHECK(record.Blamed("/w/b", "mine\none\n") == Origins{kPeople, first});
  }
  SECTION("by two calls, and changed") {
    record.Agent("/w/a", "mine\none\n", std::nullopt);
    const auto created = record.Agent("/w/b", std::nullopt, "mine\none\ntwo\n");
    CHECK(record.Blamed("/w/b", "mine\none\ntwo\n") == Origins{kPeople, first, created});
  }
  SECTION("the new one first") {
    const auto created = record.Agent("/w/b", std::nullopt, "mine\none\ntwo\n");
    record.Agent("/w/a", "mine\none\n", std::nullopt);
    CHECK(record.Blamed("/w/b", "mine\none\ntwo\n") == Origins{kPeople, first, created});
  }
  SECTION("twice") {
    record.Agent("/w/a", "mine\none\n", std::nullopt);
    record.Also("/w/b", std::nullopt, "mine\none\n");
    record.NextTurn();
    record.Agent("/w/b", "mine\none\n", std::nullopt);
    record.Also("/w/c", std::nullopt, "mine\none\n");
    CHECK(record.Blamed("/w/c", "mine\none\n") == Origins{kPeople, first});
  }
  SECTION("by a person") {
    CHECK(record.Blamed("/w/b", "mine\none\n") == Origins{kPeople, kPeople});  // a copy
    CHECK(record.Blamed("/w/b", "mine\none\n", /*alone=*/true) == Origins{kPeople, first});
    record.NextTurn();
    const auto later = record.Agent("/w/b", "mine\none\n", "mine\none\ntwo\n");
    CHECK(record.Blamed("/w/b", "mine\none\ntwo\n", /*alone=*/true) == Origins{kPeople, first, later});
  }
  SECTION("not: another file") {
    record.Agent("/w/a", "mine\none\n", std::nullopt);
    const auto created = record.Agent("/w/b", std::nullopt, "x\ny\nz\n");
    CHECK(record.Blamed("/w/b", "x\ny\nz\n") == Origins{created, created, created});
  }
}

TEST_CASE("Blame: lines of unknown versions are nobody's", "[blame]") {
  Record record;
  const auto first = record.Agent("/w/f", std::nullopt, "one\n");
  record.Agent("/w/f", "one\n", "one\ntwo\n");
  const auto third = record.Agent("/w/f", "one\ntwo\n", "one\ntwo\nthree\n");
  record.Lose("one\ntwo\n");
  CHECK(record.Blamed("/w/f", "one\ntwo\nthree\n") == Origins{first, kPeople, kPeople});
  record.NextTurn();
  const auto fourth = record.Agent("/w/f", "one\ntwo\nthree\n", "one\ntwo\nthree\nfour\n");
  CHECK(record.Blamed("/w/f", "one\ntwo\nthree\nfour\n") == Origins{first, kPeople, kPeople, fourth});
  CHECK(third < fourth);
}

// Random edits of one file by agent and people, with the owner of each line.
class Simulation {
 public:
  explicit Simulation(unsigned seed) : random_(seed) {
    for (int i = 0; i < 20; ++i) file_.push_back({NewText(), kPeople});
    SeeAll();
  }

  void Step() {
    const int dice = Below(100);
    if (dice < 30) {
      People();
    } else if (dice < 38) {
      Restore();
    } else if (dice < 42) {
      Rename(/*by_agent=*/true);
    } else if (dice < 44 && typed_.empty() && removed_.empty()) {
      Rename(/*by_agent=*/false);
    } else {
      Agent();
    }
  }

  struct Outcome {
    int wrong = 0;                   // people's lines that were attributed to the agent
    int of_agent = 0, found = 0;     // the agent's lines, but those equal to one that people wrote
    int exact = 0;                   // of those found: by the right call
    int equal = 0, equal_found = 0;  // those
  };
  Outcome Check() {
    Outcome outcome;
    const auto origins = record_.Blamed(path_, TextOf(file_), /*alone=*/true);
    REQUIRE(origins.size() == file_.size());
    for (std::size_t i = 0; i < file_.size(); ++i) {
      const bool is_found = origins[i] != kPeople;
      if (file_[i].owner == kPeople) {
        outcome.wrong += is_found;
      } else if (by_people_.contains(file_[i].text)) {
        ++outcome.equal, outcome.equal_found += is_found;
      } else {
        ++outcome.of_agent, outcome.found += is_found, outcome.exact += origins[i] == file_[i].owner;
      }
    }
    return outcome;
  }

 private:
  struct Line {
    std::string text;
    std::size_t owner;
  };
  using File = std::vector<Line>;
  static constexpr std::size_t kCall = SIZE_MAX - 1;  // of the call under way

  int Below(int limit) { return std::uniform_int_distribution<>(0, limit - 1)(random_); }
  std::size_t Place(std::size_t most) { return static_cast<std::size_t>(Below(static_cast<int>(most) + 1)); }
  std::string NewText() {
    static const std::string kCommon[] = {"", "}", "  return 0;", "{", "  }"};
    if (Below(4) == 0) return kCommon[Below(5)];
    return std::string(static_cast<std::size_t>(Below(3)) * 2, ' ') + "call_" + std::to_string(++texts_) + "(v" +
           std::to_string(Below(3)) + ");";
  }
  static std::string TextOf(const File& file) {
    std::string text;
    for (const Line& line : file) text += line.text + "\n";
    return text;
  }
  void SeeAll() {
    for (const Line& line : file_) {
      if (line.owner == kPeople) by_people_.insert(line.text);
    }
  }

  // Inserts, replaces or removes some lines.
  void Edit(std::size_t owner) {
    const int what = Below(3);
    std::size_t at = Place(file_.size());
    if (what != 0) {
      for (int i = Below(3); i >= 0 && at < file_.size(); --i) {
        if (owner == kPeople && typed_.contains(file_[at].text)) return;
        if (owner == kPeople) removed_.insert(file_[at].text);
        file_.erase(file_.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    if (what == 2) return;
    for (int i = Below(5); i >= 0; --i) {
      std::string text = NewText();
      // That a person removes a line and types the same again cannot be seen.
      if (owner == kPeople && removed_.contains(text)) continue;
      if (owner == kPeople) typed_.insert(text);
      file_.insert(file_.begin() + static_cast<std::ptrdiff_t>(at++), {std::move(text), owner});
    }
  }

  void People() {
    for (int i = Below(3); i >= 0; --i) Edit(kPeople);
    SeeAll();
  }

  void Agent() {
    const File before = file_;
    const int what = Below(6);
    if (what == 0) {  // sed s/v0/v1/
      const std::string from = "v" + std::to_string(Below(3)), to = "v" + std::to_string(Below(3));
      for (Line& line : file_) {
        const auto at = line.text.find(from);
        if (at == std::string::npos || from == to) continue;
        line = {line.text.replace(at, 2, to), kCall};
      }
    } else if (what == 1) {  // a formatter
      for (Line& line : file_) {
        if (line.text.size() <= 6 || line.text.starts_with("    ") || Below(4) != 0) continue;
        line = {"    " + line.text.substr(line.text.find_first_not_of(' ')), kCall};
      }
    } else if (what == 2 && file_.size() > 10) {  // a block moves
      const std::size_t at = Place(file_.size() - 5);
      File block(file_.begin() + static_cast<std::ptrdiff_t>(at), file_.begin() + static_cast<std::ptrdiff_t>(at) + 3);
      file_.erase(file_.begin() + static_cast<std::ptrdiff_t>(at), file_.begin() + static_cast<std::ptrdiff_t>(at) + 3);
      file_.insert(file_.begin() + static_cast<std::ptrdiff_t>(Place(file_.size())), block.begin(), block.end());
    } else {
      for (int i = Below(3); i >= 0; --i) Edit(kCall);
    }
    Finish(record_.Agent(path_, TextOf(before), TextOf(file_)));
  }

  void Rename(bool by_agent) {
    const std::string from = std::exchange(path_, "/w/" + std::to_string(++texts_));
    if (!by_agent) {
      versions_.clear();  // a restore would not take that back
      return;
    }
    const File before = file_;
    if (Below(2) == 0) Edit(kCall);
    record_.Agent(from, TextOf(before), std::nullopt);
    Finish(record_.Also(path_, std::nullopt, TextOf(file_)));
  }

  void Finish(std::size_t change) {
    for (Line& line : file_) line.owner = line.owner == kCall ? change : line.owner;
    removed_.clear(), typed_.clear();
    versions_.emplace_back(path_, file_);
    record_.NextTurn();
  }

  // Undo, with files.
  void Restore() {
    if (versions_.empty()) return;
    std::tie(path_, file_) = versions_[static_cast<std::size_t>(Below(static_cast<int>(versions_.size())))];
    removed_.clear(), typed_.clear();
    if (Below(4) != 0) Agent();
  }

  std::mt19937 random_;
  Record record_;
  std::string path_ = "/w/0";
  File file_;
  std::vector<std::pair<std::string, File>> versions_;
  std::set<std::string> by_people_;        // texts that people ever wrote
  std::set<std::string> removed_, typed_;  // by people since the last recorded change
  int texts_ = 0;
};

TEST_CASE("Blame: random edits by agent and people", "[blame][long]") {
  Simulation::Outcome all;
  const auto run = [&](unsigned seed, int steps) {
    Simulation simulation(seed);
    for (int i = 0; i < steps; ++i) {
      simulation.Step();
      if (i % 10 != 9) continue;
      const auto outcome = simulation.Check();
      INFO("seed " << seed << ", step " << i);
      CHECK(outcome.wrong == 0);
      all.wrong += outcome.wrong, all.of_agent += outcome.of_agent, all.found += outcome.found,
          all.exact += outcome.exact;
      all.equal += outcome.equal, all.equal_found += outcome.equal_found;
    }
  };
  for (unsigned seed = 0; seed < 50; ++seed) run(seed, 50);
  run(1000, 1000);
  INFO(all.found << " of " << all.of_agent << " lines of the agent, " << all.exact << " with the right call, "
                 << all.equal_found << " of " << all.equal << " that people wrote too");
  CHECK(all.of_agent > 10'000);
  CHECK(all.found >= all.of_agent * 98 / 100);
  CHECK(all.exact >= all.of_agent * 95 / 100);
}

}  // namespace blame_test
}  // namespace reprise
