#include "model/offline/offline_client.h"

#include <algorithm>
#include <array>
#include <functional>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "base/utf8.h"
#include "model/offline/offline_answers.h"
#include "model/offline/offline_commands.h"

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

}  // namespace reprise
