#include "model/offline/offline_commands.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "base/utf8.h"
#include "reprise/message.h"

namespace reprise {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kDigits = "0123456789";

std::string_view Trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// JSON object text of string members.
std::string Arguments(std::initializer_list<std::pair<std::string_view, std::string_view>> members) {
  std::string json = "{";
  for (const auto& [name, value] : members) {
    if (json.size() > 1) json += ',';
    json += '"';
    json += name;
    json += "\":\"";
    AppendJsonEscaped(json, value);
    json += '"';
  }
  json += '}';
  return json;
}

// One word, or anything in quotes; nullopt otherwise, so that "list the planets" is no command.
std::optional<std::string> SingleName(std::string_view text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'' || text.front() == '`') &&
      text.back() == text.front()) {
    return std::string(text.substr(1, text.size() - 2));
  }
  if (text.empty() || text.find_first_of(kBlanks) != std::string_view::npos) return std::nullopt;
  return std::string(text);
}

// The text before and behind the first `separator`, trimmed; nullopt if there is none or nothing before it.
std::optional<std::pair<std::string, std::string>> SplitAt(std::string_view text, std::string_view separator) {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view before = Trim(text.substr(0, at));
  if (before.empty()) return std::nullopt;
  return std::pair(std::string(before), std::string(Trim(text.substr(at + separator.size()))));
}

bool IsArithmetic(std::string_view text) {
  return text.find_first_of(kDigits) != std::string_view::npos &&
         text.find_first_not_of("0123456789+-*/%^().,eE \t") == std::string_view::npos;
}

using Parsed = std::optional<OfflineCommand>;

Parsed Echo(std::string_view rest) {
  if (rest.empty()) return std::nullopt;
  return OfflineCommand{"echo", Arguments({{"text", rest}}), ""};
}

Parsed Calculate(std::string_view rest) {
  while (rest.ends_with('?') || rest.ends_with('=')) rest = Trim(rest.substr(0, rest.size() - 1));
  if (rest.empty()) return std::nullopt;
  return OfflineCommand{"calculator", Arguments({{"expression", rest}}), std::string(rest) + " = "};
}

Parsed Time(std::string_view rest) {
  if (rest.empty()) return OfflineCommand{"current_time", "{}", "The time is "};
  if (rest.starts_with("in ")) rest = Trim(rest.substr(3));
  const auto zone = SingleName(rest);
  if (!zone) return std::nullopt;
  return OfflineCommand{"current_time", Arguments({{"timezone", *zone}}), "The time in " + *zone + " is "};
}

Parsed List(std::string_view rest) {
  if (const std::string lower = LowerCase(rest); lower == "files" || lower.starts_with("files in ")) {
    rest = Trim(rest.substr(lower == "files" ? 5 : 9));
  }
  if (rest.empty()) return OfflineCommand{"list_files", "{}", "The workspace contains:\n"};
  const auto path = SingleName(rest);
  if (!path) return std::nullopt;
  return OfflineCommand{"list_files", Arguments({{"path", *path}}), *path + " contains:\n"};
}

Parsed Read(std::string_view rest) {
  if (LowerCase(rest).starts_with("file ")) rest = Trim(rest.substr(5));
  const auto path = SingleName(rest);
  if (!path) return std::nullopt;
  return OfflineCommand{"read_file", Arguments({{"path", *path}}), *path + " says:\n"};
}

Parsed Write(std::string_view rest) {
  const auto parts = SplitAt(rest, ":");
  if (!parts) return std::nullopt;
  const auto path = SingleName(parts->first);
  if (!path) return std::nullopt;
  return OfflineCommand{"write_file", Arguments({{"path", *path}, {"content", parts->second}}), ""};
}

Parsed Edit(std::string_view rest) {
  const auto parts = SplitAt(rest, ":");
  if (!parts) return std::nullopt;
  const auto path = SingleName(parts->first);
  const auto texts = SplitAt(parts->second, "->");
  if (!path || !texts) return std::nullopt;
  return OfflineCommand{"edit_file",
                        Arguments({{"path", *path}, {"old_text", texts->first}, {"new_text", texts->second}}), ""};
}

Parsed Delete(std::string_view rest) {
  if (LowerCase(rest).starts_with("file ")) rest = Trim(rest.substr(5));
  const auto path = SingleName(rest);
  if (!path) return std::nullopt;
  return OfflineCommand{"delete_file", Arguments({{"path", *path}}), ""};
}

Parsed Search(std::string_view rest) {
  if (rest.empty()) return std::nullopt;
  const std::size_t in = rest.rfind(" in ");
  if (in == std::string_view::npos) {
    return OfflineCommand{"search_files", Arguments({{"pattern", rest}}), "Found:\n"};
  }
  const auto path = SingleName(Trim(rest.substr(in + 4)));
  if (!path) return OfflineCommand{"search_files", Arguments({{"pattern", rest}}), "Found:\n"};
  return OfflineCommand{"search_files", Arguments({{"pattern", Trim(rest.substr(0, in))}, {"path", *path}}),
                        "Found:\n"};
}

Parsed Run(std::string_view rest) {
  if (rest.empty()) return std::nullopt;
  return OfflineCommand{"run_shell", Arguments({{"command", rest}}), ""};
}

Parsed Code(std::string_view rest) {
  const auto parts = SplitAt(rest, ":");
  if (!parts || parts->second.empty()) return std::nullopt;
  return OfflineCommand{"run_code", Arguments({{"language", parts->first}, {"code", parts->second}}), ""};
}

Parsed Fetch(std::string_view rest) {
  const auto url = SingleName(rest);
  if (!url) return std::nullopt;
  return OfflineCommand{"http_get", Arguments({{"url", *url}}), ""};
}

Parsed Ask(std::string_view rest) {
  if (rest.empty()) return std::nullopt;
  return OfflineCommand{"ask_human", Arguments({{"question", rest}}), "You answered: "};
}

Parsed TaskCommand(std::string_view rest) {
  if (rest.empty()) return std::nullopt;
  return OfflineCommand{"manage_tasks", Arguments({{"action", "add"}, {"title", rest}}), ""};
}

Parsed Plan(std::string_view rest) {
  std::string steps;
  while (!rest.empty()) {
    const std::size_t end = rest.find(';');
    if (const std::string_view step = Trim(rest.substr(0, end)); !step.empty()) {
      steps += steps.empty() ? "\"" : ",\"";
      AppendJsonEscaped(steps, step);
      steps += '"';
    }
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  if (steps.empty()) return std::nullopt;
  return OfflineCommand{"update_plan", "{\"steps\":[" + steps + "]}", ""};
}

Parsed Research(std::string_view rest) {
  if (rest.empty()) return std::nullopt;
  return OfflineCommand{"research", Arguments({{"question", rest}}), ""};
}

// Any tool at all: its name and its arguments as JSON.
Parsed Call(std::string_view rest) {
  const std::size_t blank = rest.find_first_of(kBlanks);
  const std::string_view arguments = blank == std::string_view::npos ? "{}" : Trim(rest.substr(blank));
  if (rest.empty() || !arguments.starts_with('{') || !arguments.ends_with('}')) return std::nullopt;
  return OfflineCommand{std::string(rest.substr(0, blank)), std::string(arguments), ""};
}

struct Word {
  std::string_view word;
  Parsed (*parse)(std::string_view rest);
  bool needs_colon = false;  // words that begin ordinary sentences
};

constexpr std::array kWords{
    Word{"echo", Echo},
    Word{"say", Echo, true},
    Word{"calculate", Calculate},
    Word{"calc", Calculate},
    Word{"time", Time},
    Word{"list", List},
    Word{"ls", List},
    Word{"read", Read},
    Word{"cat", Read},
    Word{"write", Write},
    Word{"edit", Edit},
    Word{"delete", Delete},
    Word{"remove", Delete},
    Word{"rm", Delete},
    Word{"search", Search},
    Word{"grep", Search},
    Word{"run", Run},
    Word{"$", Run},
    Word{"code", Code},
    Word{"fetch", Fetch},
    Word{"ask", Ask, true},
    Word{"task", TaskCommand, true},
    Word{"plan", Plan, true},
    Word{"research", Research, true},
    Word{"call", Call},
};

// "what is 2+2?", "how much is 3*4", "2+2": sums without the word for it.
Parsed SpokenSum(std::string_view line, const std::string& lower) {
  for (const std::string_view start : {"what is ", "what's ", "whats ", "how much is "}) {
    if (!lower.starts_with(start)) continue;
    const auto sum = Trim(line.substr(start.size()));
    const std::size_t end = sum.find_last_not_of("?=. \t");
    if (end != std::string_view::npos && IsArithmetic(sum.substr(0, end + 1))) return Calculate(sum.substr(0, end + 1));
  }
  const std::size_t end = line.find_last_not_of("?= \t");
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view sum = line.substr(0, end + 1);
  const bool has_operator = sum.find_first_of("+-*/%^") != std::string_view::npos;
  return IsArithmetic(sum) && has_operator ? Calculate(sum) : std::nullopt;
}

Parsed SpokenTime(const std::string& lower) {
  for (const std::string_view question : {"what time is it", "what is the time", "what's the time", "current time"}) {
    if (!lower.starts_with(question)) continue;
    const std::string_view rest = Trim(std::string_view(lower).substr(question.size()));
    if (rest.find_first_not_of("?! .") == std::string_view::npos || rest.starts_with("now")) return Time({});
  }
  return std::nullopt;
}

enum class ShowText { kNone, kNeeded, kMayBe };

struct ShowWord {
  std::string_view word;
  OfflineShow::What what;
  ShowText text;
};

constexpr std::array kShows{
    ShowWord{"demo", OfflineShow::What::kDemo, ShowText::kNone},
    ShowWord{"help", OfflineShow::What::kHelp, ShowText::kNone},
    ShowWord{"markdown", OfflineShow::What::kMarkdown, ShowText::kNone},
    ShowWord{"think", OfflineShow::What::kThink, ShowText::kNeeded},
    ShowWord{"slow", OfflineShow::What::kSlow, ShowText::kNeeded},
    ShowWord{"fail", OfflineShow::What::kFail, ShowText::kMayBe},
};

}  // namespace

std::optional<OfflineCommand> ParseOfflineCommand(std::string_view line) {
  line = Trim(line);
  const std::string lower = LowerCase(line);
  for (const Word& word : kWords) {
    if (!lower.starts_with(word.word)) continue;
    std::string_view rest = line.substr(word.word.size());
    const bool has_colon = rest.starts_with(':');
    if (has_colon) rest.remove_prefix(1);
    if (!has_colon && (word.needs_colon || (!rest.empty() && kBlanks.find(rest.front()) == std::string_view::npos)))
      continue;
    if (auto command = word.parse(Trim(rest))) return command;
  }
  if (auto command = SpokenTime(lower)) return command;
  return SpokenSum(line, lower);
}

std::vector<OfflineCommand> ParseOfflineCommands(std::string_view message) {
  std::vector<OfflineCommand> commands;
  message = message.substr(0, message.find(kAttachedFiles));  // what a file says is no command
  while (!message.empty()) {
    const std::size_t end = message.find('\n');
    if (auto command = ParseOfflineCommand(ToValidUtf8(message.substr(0, end))))
      commands.push_back(*std::move(command));
    message = end == std::string_view::npos ? std::string_view() : message.substr(end + 1);
  }
  return commands;
}

std::optional<OfflineShow> ParseOfflineShow(std::string_view message) {
  const std::size_t first = message.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return std::nullopt;
  message.remove_prefix(first);
  const auto named = std::find_if(kShows.begin(), kShows.end(), [&](const ShowWord& each) {
    return LowerCase(message.substr(0, each.word.size())) == each.word;
  });
  if (named == kShows.end()) return std::nullopt;
  std::string_view rest = message.substr(named->word.size());
  rest = Trim(rest.substr(0, rest.find(kAttachedFiles)));
  const bool has_colon = rest.starts_with(':');
  if (has_colon) rest = Trim(rest.substr(1));
  const bool is_alone = rest.find_first_not_of(".!?") == std::string_view::npos;
  if (named->text == ShowText::kNone && !is_alone) return std::nullopt;
  if (named->text == ShowText::kNeeded && (!has_colon || rest.empty())) return std::nullopt;
  if (named->text == ShowText::kMayBe && !has_colon && !is_alone) return std::nullopt;
  return OfflineShow{named->what, is_alone && !has_colon ? std::string() : ToValidUtf8(rest)};
}

std::string_view OfflineHelp() {
  return "I am the offline model: I need no network and understand these commands, one per line:\n"
         "- `echo TEXT`\n"
         "- `calculate EXPRESSION` (or: what is 2+2?)\n"
         "- `time [ZONE]`\n"
         "- `list [PATH]`\n"
         "- `read PATH`\n"
         "- `search PATTERN [in PATH]`\n"
         "- `write PATH: TEXT`\n"
         "- `edit PATH: OLD -> NEW`\n"
         "- `delete PATH`\n"
         "- `run: COMMAND`\n"
         "- `code LANGUAGE: CODE`\n"
         "- `fetch URL`\n"
         "- `ask: QUESTION`\n"
         "- `task: TITLE`\n"
         "- `plan: STEP; STEP`\n"
         "- `research: QUESTION`\n"
         "- `call TOOL {\"argument\": \"value\"}`\n"
         "\n"
         "These are a message each, and show one thing:\n"
         "- `demo`: a tour, with files to approve, a question and a command\n"
         "- `think: TEXT`\n"
         "- `slow: TEXT`\n"
         "- `markdown`\n"
         "- `fail: once`, or `fail: REASON` (`fail` says which there are)\n"
         "- `help`: this list";
}

std::string_view OfflineHint() { return "I am the offline model: try `demo`, `help`."; }

}  // namespace reprise
