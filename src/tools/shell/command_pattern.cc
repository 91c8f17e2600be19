#include "tools/shell/command_pattern.h"

#include <strings.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "tools/shell/command_line.h"
#include "tools/shell/known_commands.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxParts = 5;            // of a proposed pattern
constexpr std::size_t kMaxPatternBytes = 1000;  // likewise
constexpr std::string_view kBeside = ", alone or in one line with other commands that are allowed";

// One command of a pattern.
struct Part {
  std::vector<std::string> words;
  bool is_open = false;  // ends in `*`
};
struct Pattern {
  std::string folder;  // of `cd FOLDER &&`; empty if there is none
  std::vector<Part> parts;
};

tl::unexpected<Error> Wrong(std::string why) { return Fail(ErrorCode::kInvalidArgument, std::move(why)); }

bool IsPlain(const ShellCommand& command) {
  return !command.words.empty() && !command.has_assignments && !command.has_redirections && !command.in_background;
}

// Whether it is `cd FOLDER`, which sets the folder of all later commands.
bool IsFolderChange(const ShellCommand& command) {
  return IsPlain(command) && command.words.size() == 2 && command.words[0] == ShellWord{"cd"} &&
         command.words[1].is_literal() && !command.words[1].text.empty() && !command.words[1].text.starts_with('-');
}

// Removes a leading `cd` from the line and returns its folder; empty if there is none. The commands after it must not
// run if it failed, because they would run elsewhere.
std::string TakeFolder(CommandLine& line) {
  if (line.size() < 2 || !IsFolderChange(line[0])) return {};
  const bool is_one_list = std::all_of(line.begin() + 1, line.end(), [](const ShellCommand& each) {
    return each.joint == ShellJoint::kAnd || each.joint == ShellJoint::kPipe;
  });
  if (!is_one_list || line[1].joint != ShellJoint::kAnd) return {};
  std::string folder = line[0].words[1].text;
  line.erase(line.begin());
  line[0].joint = ShellJoint::kFirst;
  return folder;
}

Result<Pattern> ParsePattern(std::string_view text) {
  auto line = ParseCommandLine(text);
  if (!line) return Wrong("it is not a plain command: " + line.error().message);
  Pattern pattern{.folder = TakeFolder(*line), .parts = {}};
  for (const ShellCommand& command : *line) {
    // In a folder, the next command must not run if `cd` failed.
    const ShellJoint joint = pattern.folder.empty() ? ShellJoint::kThen : ShellJoint::kAnd;
    if (command.joint != ShellJoint::kFirst && command.joint != joint) {
      return Wrong("several commands are separated by ; in it, or in a folder by &&");
    }
    if (!IsPlain(command)) return Wrong("it has assignments, redirections or &");
    Part part;
    for (std::size_t i = 0; i < command.words.size(); ++i) {
      const ShellWord& word = command.words[i];
      const bool is_last = i + 1 == command.words.size();
      if (is_last && word.is_star) {
        part.is_open = true;
      } else if (!word.is_literal()) {
        return Wrong("its words must be plain, or in quotes; a * by itself may stand at the end of a command");
      } else {
        part.words.push_back(word.text);
      }
    }
    if (part.words.empty()) return Wrong("it does not name a program");
    pattern.parts.push_back(std::move(part));
  }
  return pattern;
}

Result<void> CheckAllowed(const Part& part) {
  const std::string& program = part.words.front();
  // The shell would take it for its own option.
  if (program.empty() || program.front() == '-' || program.front() == '+') return Wrong("it does not name a program");
  // In some shells `printf -v PATH ...` and `test -v 'a[...]'` set variables.
  const bool sets_variables = (program == "printf" || program == "test" || program == "[") && part.words.size() > 1 &&
                              part.words[1].starts_with("-v");
  if (ChangesTheShell(program) || sets_variables) {
    return Wrong("\"" + program + "\" changes how the shell understands what follows");
  }
  if (!part.is_open) return {};
  if (RunsWhatItIsGiven(program)) {
    return Wrong("\"" + program + "\" runs other programs, or text that it is given, so it cannot be followed by *");
  }
  if (HasSubCommands(program) && FindTail(part.words) == nullptr) {
    return Wrong("\"" + QuotedWord(program) +
                 "\" can be followed by * only behind sub-commands that are known to be "
                 "harmless, such as \"git log *\"");
  }
  return {};
}

Result<Pattern> ParseAllowing(std::string_view text) {
  auto pattern = TRY(ParsePattern(text));
  for (const Part& part : pattern.parts) TRY(CheckAllowed(part));
  return pattern;
}

std::string WordsOf(const Part& part) {
  std::string text;
  for (const std::string& word : part.words) text += (text.empty() ? "" : " ") + QuotedWord(word);
  return text;
}

std::string TextOf(const Pattern& pattern) {
  std::string text = pattern.folder.empty() ? "" : "cd " + QuotedWord(pattern.folder) + " && ";
  for (std::size_t i = 0; i < pattern.parts.size(); ++i) {
    if (i > 0) text += pattern.folder.empty() ? "; " : " && ";
    text += WordsOf(pattern.parts[i]) + (pattern.parts[i].is_open ? " *" : "");
  }
  return text;
}

std::string PartMeaning(const Part& part) {
  const std::string& program = part.words.front();
  std::string text = part.is_open ? "`" + WordsOf(part) + "` " + WhatMayFollow(FindTail(part.words))
                                  : "exactly `" + WordsOf(part) + "`";
  if (ProgramName(program) == "git") {
    text += " (git also runs what hooks and configuration of the repository and the workspace name)";
  } else if (FilesDecide(program)) {
    text += " (files decide what that does, and they may change)";
  }
  return text;
}

std::string MeaningOf(const Pattern& pattern) {
  std::string text = pattern.folder.empty() ? "Runs " : "In the folder " + QuotedWord(pattern.folder) + ", runs ";
  if (pattern.parts.size() > 1) text += "each of these: ";
  for (std::size_t i = 0; i < pattern.parts.size(); ++i) text += (i == 0 ? "" : "; ") + PartMeaning(pattern.parts[i]);
  return text + std::string(kBeside) + ".";
}

bool Covers(const Part& part, const ShellCommand& command) {
  if (!IsPlain(command) || command.words.size() < part.words.size()) return false;
  for (std::size_t i = 0; i < part.words.size(); ++i) {
    if (!command.words[i].is_literal() || command.words[i].text != part.words[i]) return false;
  }
  // The pipe could deliver its program.
  if (command.joint == ShellJoint::kPipe && !OnlyReadsItsInput(command.words)) return false;
  if (!part.is_open) return command.words.size() == part.words.size();
  const Tail* const tail = FindTail(part.words);
  return std::all_of(command.words.begin() + static_cast<std::ptrdiff_t>(part.words.size()), command.words.end(),
                     [&](const ShellWord& word) { return MayFollow(tail, word); });
}

// --- patterns that hold back -----------------------------------------------------------------------------------------

bool IsSameProgram(std::string_view word, std::string_view program) {
  const std::string_view name = ProgramName(word), other = ProgramName(program);
  return name.size() == other.size() && ::strncasecmp(name.data(), other.data(), name.size()) == 0;
}

bool Mentions(std::string_view text, std::string_view program) {
  return LowerCase(text).find(LowerCase(ProgramName(program))) != std::string::npos;
}

Touch Strictest(Touch a, Touch b) { return static_cast<int>(a) > static_cast<int>(b) ? a : b; }

// Whether the words match the pattern's; the first ones name its program. Options may come between: "git -C folder
// push" is "git push".
Touch UsualWordsTouch(const std::vector<ShellWord>& pattern, const std::vector<ShellWord>& words) {
  std::size_t at = 1;
  Touch touch = Touch::kYes;
  for (std::size_t i = 1; i < pattern.size(); ++i) {
    const std::string& wanted = pattern[i].text;
    const auto begin = words.begin() + static_cast<std::ptrdiff_t>(at);
    const auto found = std::find(begin, words.end(), ShellWord{wanted});
    const bool is_unclear = std::any_of(begin, found, [](const ShellWord& each) { return !each.is_literal(); });
    if (is_unclear) return Touch::kMaybe;
    if (wanted.starts_with('-')) {
      // Options have several spellings and no fixed order.
      const bool has_options =
          std::any_of(words.begin() + 1, words.end(), [](const ShellWord& each) { return each.text.starts_with('-'); });
      if (std::ranges::find(words, ShellWord{wanted}) != words.end()) continue;
      if (!has_options) return Touch::kNo;
      touch = Touch::kMaybe;
      continue;
    }
    if (found == words.end()) return Touch::kNo;
    if (found != begin && !begin->text.starts_with('-')) return Touch::kNo;
    at = static_cast<std::size_t>(found - words.begin()) + 1;
  }
  return touch;
}

// The same for the words from `first` on, whatever names they use for the same.
Touch WordsTouch(const Part& part, const std::vector<ShellWord>& words, std::size_t first) {
  std::vector<ShellWord> pattern;
  for (const std::string& word : part.words) pattern.push_back({word});
  if (auto usual = WithUsualNames(pattern)) pattern = *std::move(usual);
  const auto given = WithUsualNames({words.begin() + static_cast<std::ptrdiff_t>(first), words.end()});
  if (!given) return pattern.size() > 1 ? Touch::kMaybe : Touch::kYes;
  const Touch touch = UsualWordsTouch(pattern, *given);
  if (touch != Touch::kNo || pattern[1].text.starts_with('-')) return touch;
  // What other words mean to it is not known: "docker image push" is "docker push".
  const std::string& program = given->front().text;
  const bool is_known = HasSubCommands(program) || OnlyTakesNames(program) || KnownPrefix(*given) > 0;
  return is_known ? Touch::kNo : Touch::kMaybe;
}

// Whether options make git run other programs.
bool IsReconfigured(const std::vector<ShellWord>& words) {
  if (ProgramName(words.front().text) != "git") return false;
  for (std::size_t i = 1; i < words.size() && words[i].text.starts_with('-'); ++i) {
    if (words[i].text != "-C" && words[i].text != "--no-pager") return true;
    if (words[i].text == "-C") ++i;
  }
  return false;
}

Touch PartTouches(const Part& part, const ShellCommand& command, int depth = 0);

// Checks words that a program may run as a command or pass to a shell: "--exec 'rm x'", "-Orm", "run rm x".
Touch GivenTouches(const Part& part, const std::vector<ShellWord>& words, int depth) {
  constexpr int kMostDepth = 3;
  constexpr std::size_t kShortOption = 2;
  const bool takes_names = OnlyTakesNames(words.front().text);
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i].text;
    if (!takes_names && (!words[i].is_literal() || RunsWhatItIsGiven(word))) return Touch::kMaybe;
    if (!words[i].is_literal()) continue;
    if (IsSameProgram(word, part.words.front()) && WordsTouch(part, words, i) != Touch::kNo) return Touch::kMaybe;
    std::vector<std::string_view> texts = {word};
    if (const auto equals = word.find('='); equals != std::string::npos) {
      texts.push_back(std::string_view(word).substr(equals + 1));
    }
    if (word.starts_with('-') && word.size() > kShortOption)
      texts.push_back(std::string_view(word).substr(kShortOption));
    for (const std::string_view text : texts) {
      const bool is_one_word = text.find_first_of(" \t\n;|&<>(){}$`'\"\\") == std::string_view::npos;
      if (is_one_word && text.data() == word.data()) continue;  // checked above, with the words after it
      const bool runs_text = !takes_names && RunsWhatItIsGiven(text.substr(0, text.find_first_of(" \t")));
      if (!runs_text && !Mentions(text, part.words.front())) continue;
      const auto line = ParseCommandLine(text);
      if (!line || depth == kMostDepth) return Touch::kMaybe;
      const bool touches = std::ranges::any_of(
          *line, [&](const ShellCommand& each) { return PartTouches(part, each, depth + 1) != Touch::kNo; });
      if (touches) return Touch::kMaybe;
    }
  }
  return Touch::kNo;
}

Touch PartTouches(const Part& part, const ShellCommand& command, int depth) {
  const auto& words = command.words;
  if (words.empty()) return command.has_assignments ? Touch::kMaybe : Touch::kNo;
  if (!words.front().is_literal()) return Touch::kMaybe;
  Touch touch = command.has_assignments ? Touch::kMaybe : Touch::kNo;
  const std::string& program = words.front().text;
  const bool runs_others = RunsWhatItIsGiven(program) || ChangesTheShell(ProgramName(program)) || IsReconfigured(words);
  // Unknown programs may run it too.
  const bool may_run_others = MayRunItsWords(words) || (KnownPrefix(words) == 0 && !HasSubCommands(program));
  if (!runs_others && may_run_others) touch = Strictest(touch, GivenTouches(part, words, depth));
  if (IsHandedAProgram(words)) touch = Strictest(touch, Touch::kMaybe);
  if (IsSameProgram(program, part.words.front())) {
    if (IsReconfigured(words)) touch = Touch::kMaybe;
    return Strictest(touch, WordsTouch(part, words, 0));
  }
  if (runs_others && program != "cd") touch = Touch::kMaybe;
  if (runs_others) {
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i].is_literal() && IsSameProgram(words[i].text, part.words.front())) {
        touch = Strictest(touch, WordsTouch(part, words, i));
      }
    }
  }
  // --compress-program=rm
  const bool is_named = std::any_of(words.begin() + 1, words.end(), [&](const ShellWord& each) {
    const std::size_t equals = each.text.find('=');
    return equals != std::string::npos && IsSameProgram(each.text.substr(equals + 1), part.words.front());
  });
  return is_named ? Strictest(touch, Touch::kMaybe) : touch;
}

Result<Pattern> ParseHolding(std::string_view text) {
  auto pattern = TRY(ParsePattern(text));
  if (!pattern.folder.empty()) return Wrong("what holds back speaks of every folder; leave out the cd");
  for (const Part& part : pattern.parts) {
    if (part.words.front().empty()) return Wrong("it does not name a program");
  }
  return pattern;
}

std::string MeaningHeld(const Pattern& pattern) {
  std::string text = "Every command line with a command that begins with ";
  for (std::size_t i = 0; i < pattern.parts.size(); ++i)
    text += (i == 0 ? "`" : " or `") + WordsOf(pattern.parts[i]) + "`";
  return text + ", whatever follows; one that could have it and cannot be told asks.";
}

}  // namespace

std::vector<CallPattern> PatternsOfCommand(std::string_view command) {
  std::vector<CallPattern> patterns;
  auto line = ParseCommandLine(command);
  if (!line) return patterns;
  const std::string folder = TakeFolder(*line);
  if (line->size() > kMaxParts) return patterns;
  Pattern exact{.folder = folder, .parts = {}}, open{.folder = folder, .parts = {}};
  for (const ShellCommand& each : *line) {
    if (!IsPlain(each) || !each.words.front().is_literal()) return patterns;
    Part part;
    for (const ShellWord& word : each.words) part.words.push_back(word.text);
    Part known{.words = {part.words.begin(), part.words.begin() + static_cast<std::ptrdiff_t>(KnownPrefix(each.words))},
               .is_open = true};
    exact.parts.push_back(part);
    const bool has_tail = !known.words.empty() && Covers(known, each);
    open.parts.push_back(has_tail ? std::move(known) : std::move(part));
  }
  for (Pattern* pattern : {&exact, &open}) {
    auto& parts = pattern->parts;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      for (std::size_t j = parts.size() - 1; j > i; --j) {
        if (parts[j].words == parts[i].words && parts[j].is_open == parts[i].is_open)
          parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(j));
      }
    }
    std::string text = TextOf(*pattern);
    // The text must not look like the end of the sentence.
    if (text.find('`') != std::string::npos) continue;
    const bool is_there = !patterns.empty() && patterns.back().pattern == text;
    if (is_there || text.size() > kMaxPatternBytes) continue;
    // The pattern must be valid and cover the call that it is offered for.
    auto meaning = MeaningOfCommandPattern(text, PatternUse::kAllow);
    if (meaning && CommandCoveredBy({text}, command)) patterns.push_back({std::move(text), *std::move(meaning)});
  }
  return patterns;
}

Result<std::string> MeaningOfCommandPattern(std::string_view pattern, PatternUse use) {
  if (use == PatternUse::kHold) return ParseHolding(pattern).map(MeaningHeld);
  return ParseAllowing(pattern).map(MeaningOf);
}

bool HasTail(std::string_view pattern) {
  const auto parsed = ParsePattern(pattern);
  return parsed && std::ranges::any_of(parsed->parts, [](const Part& part) { return part.is_open; });
}

std::vector<std::string> ProgramsBelieved(std::string_view command) {
  std::vector<std::string> programs;
  const auto line = ParseCommandLine(command);
  if (!line) return programs;
  for (const ShellCommand& each : *line) {
    if (each.words.empty() || !each.words.front().is_literal()) continue;
    const std::string& program = each.words.front().text;
    if (!FilesDecide(program)) programs.push_back(program);
  }
  return programs;
}

std::optional<std::vector<std::size_t>> CommandCoveredBy(const std::vector<std::string>& patterns,
                                                         std::string_view command) {
  auto line = ParseCommandLine(command);
  if (!line) return std::nullopt;
  const std::string folder = TakeFolder(*line);
  std::vector<Result<Pattern>> parsed;
  for (const std::string& each : patterns) parsed.push_back(ParseAllowing(each));
  std::vector<std::size_t> used;
  for (const ShellCommand& each : *line) {
    std::optional<std::size_t> covering;
    for (std::size_t i = 0; i < parsed.size() && !covering; ++i) {
      if (!parsed[i] || parsed[i]->folder != folder) continue;
      const auto& parts = parsed[i]->parts;
      if (std::ranges::any_of(parts, [&](const Part& part) { return Covers(part, each); })) covering = i;
    }
    if (!covering) return std::nullopt;
    if (std::ranges::find(used, *covering) == used.end()) used.push_back(*covering);
  }
  return used;
}

Touch CommandTouches(std::string_view pattern, std::string_view command) {
  const auto held = ParseHolding(pattern);
  const auto line = ParseCommandLine(command);
  if (!held || !line) return Touch::kMaybe;
  Touch touch = Touch::kNo;
  for (const ShellCommand& each : *line) {
    for (const Part& part : held->parts) touch = Strictest(touch, PartTouches(part, each));
  }
  return touch;
}

}  // namespace reprise
