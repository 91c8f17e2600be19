#include "model/offline/offline_commands.h"

#include <re2/re2.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "base/utf8.h"
#include "model/offline/offline_answers.h"
#include "reprise/message.h"

namespace reprise {
namespace {

// A command line's form: one of `words`, separated by '|', followed by a regular expression in which {x} is the text of
// the argument x, {x?} an optional text, and @x one word or a quoted string (so that "list the planets" is no command).
// The colon after a word is optional, except for "ask:", because "ask" begins ordinary sentences.
struct Form {
  std::string_view words, takes, tool;
  std::string_view lead = {};       // the answer's text before the tool's output, with {x} of the arguments
  std::string_view arguments = {};  // further arguments, JSON
};

// The first match counts.
constexpr Form kForms[] = {
    {"echo|say:", "{text}", "echo"},
    {"calculate|calc", "{expression}[?=\\s]*", "calculator", "{expression} = "},
    {"time", "", "current_time", "The time is "},
    {"time", "(?:in )?\\s*@timezone", "current_time", "The time in {timezone} is "},
    {"list|ls", "(?:files)?", "list_files", "The workspace contains:\n"},
    {"list|ls", "(?:files in )?\\s*@path", "list_files", "{path} contains:\n"},
    {"read|cat", "(?:file )?\\s*@path", "read_file", "{path} says:\n"},
    {"write", "@path\\s*:\\s*{content?}", "write_file"},
    {"edit", "@path\\s*:\\s*{old_text}\\s*->\\s*{new_text?}", "edit_file"},
    {"delete|remove|rm", "(?:file )?\\s*@path", "delete_file"},
    {"search|grep", "{pattern}\\s+in\\s+@path", "search_files", "Found:\n"},
    {"search|grep", "{pattern}", "search_files", "Found:\n"},
    {"run|$", "{command}", "run_shell"},
    {"code", "{language}\\s*:\\s*{code}", "run_code"},
    {"fetch", "@url", "http_get"},
    {"ask:", "{question}", "ask_human", "You answered: "},
    {"task:", "{title}", "manage_tasks", "", R"({"action":"add"})"},
    {"plan:", "{steps}", "update_plan"},
    {"research:", "{question}", "research"},
    // Any tool, by its name and JSON arguments.
    {"call", "(?P<tool>\\S+)(?:\\s+(?P<arguments>\\{.*\\}))?", ""},
    // Natural language: the time and arithmetic.
    {"", "(?:what time is it|what is the time|what's the time|current time)\\s*(?:[?! .]*|now.*)", "current_time",
     "The time is "},
    {"",
     R"((?:what is|what's|whats|how much is) \s*(?P<expression>[-0-9+*/%^().,e \t]*?\d[-0-9+*/%^().,e \t]*?)[?=. \t]*)",
     "calculator", "{expression} = "},
    {"",
     R"((?P<expression>[-0-9+*/%^().,e \t]*?(?:\d[-0-9+*/%^().,e \t]*?[-+*/%^]|[-+*/%^][-0-9+*/%^().,e \t]*?\d))"
     R"([-0-9+*/%^().,e \t]*?)[?= \t]*)",
     "calculator", "{expression} = "},
};

// Messages that show something, in the same form; `tool` says what they show.
constexpr Form kShows[] = {
    {"", "demo\\s*:?\\s*[.!?]*", "demo"},         {"", "help\\s*:?\\s*[.!?]*", "help"},
    {"", "markdown\\s*:?\\s*[.!?]*", "markdown"}, {"", "think\\s*:\\s*{text}", "think"},
    {"", "slow\\s*:\\s*{text}", "slow"},          {"", "fail\\s*(?::\\s*{text?}|[.!?]*)", "fail"},
};

std::string PatternOf(const Form& form) {
  std::string words;
  std::string_view left = form.words;
  while (!left.empty()) {
    std::string_view word = left.substr(0, left.find('|'));
    left.remove_prefix(std::min(word.size() + 1, left.size()));
    words += words.empty() ? "" : "|";
    words += RE2::QuoteMeta({word.data(), word.size()}) + (word.ends_with(':') ? "\\s*" : "(?::\\s*|\\s+|$)");
  }
  std::string takes(form.takes);
  RE2::GlobalReplace(&takes, "\\{(\\w+)\\}", "(?P<\\1>\\\\S.*?)");
  RE2::GlobalReplace(&takes, "\\{(\\w+)\\?\\}", "(?P<\\1>.*?)");
  RE2::GlobalReplace(&takes, "@(\\w+)", R"((?P<\1>"[^"]*"|'[^']*'|`[^`]*`|\\S+?))");
  return "(?is)\\s*(?:" + words + ")" + takes + "\\s*";
}

using Arguments = std::map<int, std::pair<std::string, std::string>>;  // names and texts, in order

// Matches `text` against a form and returns its arguments; nullopt if it does not match.
class Pattern {
 public:
  explicit Pattern(const Form& form)
      : form_(form), expression_(std::make_unique<RE2>(PatternOf(form), RE2::Options(RE2::Latin1))) {}

  const Form& form() const { return form_; }

  std::optional<Arguments> Match(std::string_view text) const {
    std::vector<re2::StringPiece> found(static_cast<std::size_t>(expression_->NumberOfCapturingGroups()) + 1);
    if (!expression_->Match({text.data(), text.size()}, 0, text.size(), RE2::ANCHOR_BOTH, found.data(),
                            static_cast<int>(found.size()))) {
      return std::nullopt;
    }
    Arguments arguments;
    for (const auto& [number, name] : expression_->CapturingGroupNames()) {
      const re2::StringPiece& piece = found[static_cast<std::size_t>(number)];
      std::string value(piece.data() == nullptr ? "" : std::string_view(piece.data(), piece.size()));
      const bool is_name = form_.takes.find("@" + name) != std::string_view::npos;
      if (is_name && value.size() >= 2 && value.front() == value.back() &&
          std::string_view("\"'`").find(value[0]) != std::string_view::npos) {
        value = value.substr(1, value.size() - 2);
      }
      arguments[number] = {name, value};
    }
    return arguments;
  }

 private:
  const Form& form_;
  std::unique_ptr<RE2> expression_;
};

template <std::size_t kSize>
std::vector<Pattern> Compiled(const Form (&forms)[kSize]) {
  return {std::begin(forms), std::end(forms)};
}

// The steps of "one; two ;".
Json StepsOf(std::string_view text) {
  Json steps = Json::array();
  static const RE2 step("\\s*([^;]*?)\\s*(?:;|$)", RE2::Latin1);
  re2::StringPiece left(text.data(), text.size());
  for (std::string one; !left.empty() && RE2::Consume(&left, step, &one);) {
    if (!one.empty()) steps.push_back(one);
  }
  return steps;
}

std::optional<OfflineCommand> MakeCommand(const Form& form, const Arguments& found) {
  if (form.tool.empty()) {
    const std::string& arguments = found.rbegin()->second.second;
    return OfflineCommand{found.begin()->second.second, arguments.empty() ? "{}" : arguments, ""};
  }
  Json arguments = form.arguments.empty() ? Json::object() : Json::parse(form.arguments);
  std::string lead(form.lead);
  for (const auto& [number, argument] : found) {
    const auto& [name, value] = argument;
    arguments[name] = name == "steps" ? StepsOf(value) : Json(value);
    if (arguments[name].empty() && name == "steps") return std::nullopt;
    const std::string place = "{" + name + "}";
    if (const std::size_t at = lead.find(place); at != std::string::npos) lead.replace(at, place.size(), value);
  }
  return OfflineCommand{std::string(form.tool), DumpJson(arguments), std::move(lead)};
}

}  // namespace

std::optional<OfflineCommand> ParseOfflineCommand(std::string_view line) {
  static const std::vector<Pattern> patterns = Compiled(kForms);
  for (const Pattern& pattern : patterns) {
    const auto found = pattern.Match(line);
    if (!found) continue;
    if (auto command = MakeCommand(pattern.form(), *found)) return command;
  }
  return std::nullopt;
}

std::vector<OfflineCommand> ParseOfflineCommands(std::string_view message) {
  std::vector<OfflineCommand> commands;
  message = message.substr(0, message.find(kAttachedFiles));  // a file's content holds no commands
  while (!message.empty()) {
    const std::size_t end = message.find('\n');
    if (auto command = ParseOfflineCommand(ToValidUtf8(message.substr(0, end))))
      commands.push_back(*std::move(command));
    message = end == std::string_view::npos ? std::string_view() : message.substr(end + 1);
  }
  return commands;
}

std::optional<OfflineShow> ParseOfflineShow(std::string_view message) {
  static const std::vector<Pattern> patterns = Compiled(kShows);
  message = message.substr(0, message.find(kAttachedFiles));
  for (const Pattern& pattern : patterns) {
    const auto found = pattern.Match(message);
    if (!found) continue;
    return OfflineShow{pattern.form().tool, found->empty() ? "" : ToValidUtf8(found->begin()->second.second)};
  }
  return std::nullopt;
}

const std::string& OfflineHelp() {
  static const std::string help = OfflineText("help");
  return help;
}

}  // namespace reprise
