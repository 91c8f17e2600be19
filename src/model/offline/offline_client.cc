#include "model/offline/offline_client.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "model/offline/offline_answers.h"
#include "reprise/message.h"

namespace reprise {
namespace {

// An answer quotes at most this much of one tool's output.
constexpr std::size_t kMaxQuotedMessage = 2000;
constexpr std::chrono::milliseconds kSlowPause{100}, kReadingPause{20};  // between two words
// At most this many requests that failed once are remembered.
constexpr std::size_t kMaxRemembered = 64;

// The user's last message and the messages after it.
struct Turn {
  std::string_view user_text;
  Messages after;
};

Turn LastTurn(const Messages& messages) {
  for (std::size_t i = messages.size(); i-- > 0;) {
    if (messages[i].role != Role::kUser) continue;
    const std::string_view text = messages[i].content ? std::string_view(*messages[i].content) : std::string_view();
    Turn turn{.user_text = text, .after = {}};
    turn.after.Append(messages, i + 1, messages.size());
    return turn;
  }
  return {};
}

bool HasTool(const std::vector<ToolSpec>& tools, std::string_view name) {
  return std::any_of(tools.begin(), tools.end(), [&](const ToolSpec& tool) { return tool.name == name; });
}

std::int64_t CountInputWords(const Messages& messages) {
  std::int64_t words = 0;
  for (const Message& message : messages) {
    if (message.content) words += CountWords(*message.content);
    for (const ToolCall& call : message.tool_calls) words += CountWords(call.arguments);
  }
  return words;
}

// A tool message has no mark for failures and rejections, but the agent and the tools begin them with these words.
enum class ResultKind { kOutput, kRejected, kFailed };

ResultKind KindOf(std::string_view output) {
  static constexpr std::array<std::string_view, 5> kRejections{"the user rejected", "the user denied", "rejected",
                                                               "denied", "this server refuses"};
  static constexpr std::array<std::string_view, 8> kFailures{"error",
                                                             "cannot ",
                                                             "the arguments were not accepted",
                                                             "there is no ",
                                                             "the tool failed",
                                                             "cancelled",
                                                             "failed",
                                                             "the command was ended"};
  const std::string start = LowerCase(output.substr(0, 64));
  const auto begins = [&](std::string_view words) { return start.starts_with(words); };
  if (std::any_of(kRejections.begin(), kRejections.end(), begins)) return ResultKind::kRejected;
  if (std::any_of(kFailures.begin(), kFailures.end(), begins)) return ResultKind::kFailed;
  return ResultKind::kOutput;
}

std::string Quote(std::string_view output) {
  const std::string valid = ToValidUtf8(output);
  const std::string_view start = Utf8Prefix(valid, kMaxQuotedMessage);
  return start.size() < valid.size() ? std::string(start) + "..." : valid;
}

std::string DescribeResult(const OfflineCommand& command, std::string_view output) {
  switch (KindOf(output)) {
    case ResultKind::kRejected:
      return "The call of " + command.tool + " was rejected, so I did not do it. " + Quote(output);
    case ResultKind::kFailed:
      return "The call of " + command.tool + " failed: " + Quote(output);
    case ResultKind::kOutput:
      break;
  }
  if (output.empty()) return "The call of " + command.tool + " is done; it had no output.";
  return command.lead + Quote(output);
}

std::string_view ResultOf(const Messages& messages, std::string_view call_id) {
  for (const Message& message : messages) {
    if (message.role == Role::kTool && message.tool_call_id == call_id && message.content) return *message.content;
  }
  return {};
}

// The tool calls of this turn, one per round so far.
std::vector<const ToolCall*> CallsOf(const Messages& messages) {
  std::vector<const ToolCall*> calls;
  for (const Message& message : messages) {
    if (message.role == Role::kAssistant && !message.tool_calls.empty()) calls.push_back(&message.tool_calls.front());
  }
  return calls;
}

bool IsGreeting(std::string_view text) {
  const std::string lower = LowerCase(text);
  const std::string_view word = std::string_view(lower).substr(0, lower.find_first_of(" ,.!?\n"));
  return word == "hello" || word == "hi" || word == "hey" || word == "hallo" || lower.starts_with("good morning") ||
         lower.starts_with("good evening");
}

// Whether the model has already shown its help in this chat.
bool HasHelped(const Messages& messages) {
  const std::string_view help = OfflineHelp();
  const std::string_view first_line = help.substr(0, help.find('\n'));
  return std::any_of(messages.begin(), messages.end(), [&](const Message& message) {
    return message.role == Role::kAssistant && message.content &&
           message.content->find(first_line) != std::string::npos;
  });
}

std::string DescribeAbilities(std::string_view user_text, bool has_helped) {
  const std::string_view start = IsGreeting(user_text) ? "Hello! " : "";
  return std::string(start) + (has_helped ? OfflineText("hint") : OfflineHelp());
}

OfflineResponse FollowCommands(const ModelRequest& request, const Turn& turn) {
  std::vector<OfflineCommand> commands, unavailable;
  for (OfflineCommand& command : ParseOfflineCommands(turn.user_text)) {
    (HasTool(request.tools, command.tool) ? commands : unavailable).push_back(std::move(command));
  }
  const auto calls = CallsOf(turn.after);
  OfflineResponse answer;
  if (calls.size() < commands.size()) {
    const std::string round = std::to_string(calls.size() + 1);
    OfflineCommand& next = commands[calls.size()];
    if (commands.size() > 1)
      answer.text = "Step " + round + " of " + std::to_string(commands.size()) + ": " + next.tool + ".";
    answer.tool_calls.push_back({"call_" + round, std::move(next.tool), std::move(next.arguments)});
    return answer;
  }
  if (commands.empty() && unavailable.empty()) {
    answer.text = DescribeAbilities(turn.user_text, HasHelped(request.messages));
    return answer;
  }
  const auto add_line = [&](const std::string& line) {
    if (!answer.text.empty()) answer.text += '\n';
    answer.text += line;
  };
  for (std::size_t i = 0; i < commands.size(); ++i) {
    add_line(DescribeResult(commands[i], ResultOf(turn.after, calls[i]->id)));
  }
  for (const OfflineCommand& command : unavailable) add_line("The tool " + command.tool + " is not available here.");
  return answer;
}

OfflineResponse Show(const OfflineShow& asked, const ModelRequest& request, const Turn& turn, bool asks_people) {
  if (asked.what == "demo") return NextOfDemo(turn.after, request.tools, asks_people);
  if (asked.what == "help") return {.text = OfflineHelp()};
  if (asked.what == "think") return ThinkAbout(asked.text);
  if (asked.what == "slow") return {.text = asked.text, .pause = kSlowPause};
  if (asked.what == "markdown") return {.text = OfflineText("markdown"), .pause = kReadingPause};
  return FailFor(asked.text);
}

OfflineResponse NextResponse(const ModelRequest& request, bool asks_people) {
  const Turn turn = LastTurn(request.messages);
  const auto asked = ParseOfflineShow(turn.user_text);
  OfflineResponse response = asked ? Show(*asked, request, turn, asks_people) : FollowCommands(request, turn);
  const bool ends_here = response.tool_calls.empty() && (!response.failure || response.fails_first_attempt);
  if (!ends_here) return response;
  if (const std::string files = TellAttachments(turn.user_text); !files.empty()) response.text += "\n\n" + files;
  return response;
}

// The end of the response, after all its text.
Result<ModelResponse> EndOf(OfflineResponse response, std::int64_t input_words) {
  if (response.failure) return Fail(*std::move(response.failure));
  TokenUsage usage{.input_tokens = input_words,
                   .output_tokens = CountWords(response.thinking) + CountWords(response.text)};
  for (const ToolCall& call : response.tool_calls) usage.output_tokens += CountWords(call.arguments);
  return ModelResponse{.tool_calls = std::move(response.tool_calls), .usage = usage, .extras = {}};
}

std::size_t DigestOf(const Messages& messages) {
  std::size_t digest = messages.size();
  for (const Message& message : messages) {
    digest = digest * 31 + std::hash<std::string_view>{}(message.content ? std::string_view(*message.content) : "");
  }
  return digest;
}

}  // namespace

// A run retries a failed request with the same stop token, so tokens tell apart two runs that send the same request at
// the same time. If the run ends before its retry, the run that resumes it takes over the entry.
bool OfflineClient::IsFirstAttempt(const ModelRequest& request, const std::stop_token& run) {
  const std::size_t digest = DigestOf(request.messages);
  const MutexLock lock(mutex_);
  const auto before = std::find_if(failed_.begin(), failed_.end(), [&](const FailedOnce& each) {
    return each.digest == digest && (each.run == run || !each.run.stop_possible());
  });
  if (before != failed_.end()) {
    failed_.erase(before);
    return false;
  }
  if (failed_.size() == kMaxRemembered) failed_.pop_front();
  failed_.push_back({digest, run});
  return true;
}

void OfflineClient::Generate(const ModelRequest& request, ModelStream& stream, std::stop_token stop, Done done) {
  OfflineResponse response = NextResponse(request, options_.asks_people);
  const std::int64_t input_words = CountInputWords(request.messages);
  if (response.fails_first_attempt) {
    if (IsFirstAttempt(request, stop)) {
      response = {.failure = std::move(response.failure)};
    } else {
      response.failure.reset();
    }
  }
  PacedResponse paced{.thinking = response.thinking,
                      .text = response.text,
                      .pause = response.pause,
                      .end = EndOf(std::move(response), input_words)};
  try {
    writer_.Write(std::move(paced), stream, std::move(stop), done);
  } catch (const std::system_error& error) {
    done(Fail(ErrorCode::kUnavailable, "the system has no thread left for the model", error.what()));
  }
}

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
    {"present:", "{plan}", "present_plan"},
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
