#include "tools/shell/hook_commands.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/logging.h"
#include "base/path.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "tools/shell/command_runner.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxOutput = 4 * 1024 * 1024;
constexpr std::size_t kMaxReason = 2000;

constexpr std::array<std::pair<HookEvent, std::string_view>, 7> kNames{{
    {HookEvent::kBeforeInteraction, "before_interaction"},
    {HookEvent::kAfterInteraction, "after_interaction"},
    {HookEvent::kBeforeModel, "before_model"},
    {HookEvent::kAfterModel, "after_model"},
    {HookEvent::kBeforeTool, "before_tool"},
    {HookEvent::kAfterTool, "after_tool"},
    {HookEvent::kBeforeEnd, "before_end"},
}};

bool IsBefore(HookEvent event) {
  return event == HookEvent::kBeforeInteraction || event == HookEvent::kBeforeModel || event == HookEvent::kBeforeTool;
}
bool IsTold(HookEvent event) { return event == HookEvent::kAfterInteraction; }
bool IsAboutTool(HookEvent event) { return event == HookEvent::kBeforeTool || event == HookEvent::kAfterTool; }

std::string InputOf(const HookFacts& facts) {
  Json input = {
      {"event", HookEventName(facts.event)}, {"chat_id", facts.chat_id}, {"interaction_id", facts.interaction_id}};
  switch (facts.event) {
    case HookEvent::kAfterInteraction:
      input["status"] = facts.status;
      [[fallthrough]];
    case HookEvent::kBeforeInteraction:
      input["user_message"] = facts.user_message;
      break;
    case HookEvent::kBeforeEnd:
      input["user_message"] = facts.user_message;
      input["round_index"] = facts.round_index;
      input["text"] = facts.text;
      input["times_sent_back"] = facts.times_sent_back;
      break;
    case HookEvent::kAfterModel:
      input["text"] = facts.text;
      [[fallthrough]];
    case HookEvent::kBeforeModel:
      input["round_index"] = facts.round_index;
      input["model"] = facts.model;
      break;
    case HookEvent::kAfterTool:
      input["tool_output"] = facts.output;
      input["is_error"] = facts.is_error;
      [[fallthrough]];
    case HookEvent::kBeforeTool: {
      input["round_index"] = facts.round_index;
      input["call_id"] = facts.call_id;
      input["tool_name"] = facts.tool_name;
      // Pass the arguments unchanged, so that the hook judges exactly what will run.
      const auto arguments = ParseJson(facts.arguments);
      std::string text = DumpJson(input);
      text.pop_back();
      return text + ",\"arguments\":" + (arguments ? OnOneLine(facts.arguments) : "{}") + "}\n";
    }
  }
  return DumpJson(input) + "\n";
}

std::vector<std::string> CleanEnvironment(const std::string& directory) {
  const char* path = std::getenv("PATH");
  std::vector<std::string> environment = {"PATH=" + SearchPathOutside(path == nullptr ? "" : path, directory)};
  for (const char* name : {"HOME", "LANG", "USER", "TZ", "TMPDIR"}) {
    if (const char* value = std::getenv(name)) environment.push_back(std::string(name) + "=" + value);
  }
  return environment;
}

// With -c and -m Python looks for modules first in the working directory, and for a script first beside it. Tools can
// write there. (Scripts elsewhere may have their modules beside them.)
bool LooksForModulesIn(const std::string& directory, const std::vector<std::string>& words) {
  const auto python = std::ranges::find_if(words, [](const std::string& word) {
    return std::filesystem::path(word).filename().string().starts_with("python");
  });
  if (python == words.end()) return false;
  const auto script = std::find_if(python + 1, words.end(), [](const std::string& word) {
    return !word.starts_with('-') || word.ends_with('c') || word.ends_with('m');
  });
  if (script == words.end()) return false;
  return script->starts_with('-') || LeadsInto(std::filesystem::path(directory) / *script, directory);
}

// The hook's verdict; an error if the hook failed, or if a hook that decides printed no valid verdict.
Result<Hooks::Verdict> ReadVerdict(const CommandResult& result, HookEvent event) {
  const auto fail = [](std::string why) { return Fail(ErrorCode::kInvalidArgument, std::move(why)); };
  switch (result.end) {
    case CommandResult::End::kExited:
      if (result.status != 0) return fail("it ended with status " + std::to_string(result.status));
      break;
    case CommandResult::End::kSignalled:
      return fail("it was ended by signal " + std::to_string(result.status));
    case CommandResult::End::kTimedOut:
      return fail("it took too long");
    case CommandResult::End::kCancelled:
      return fail("the interaction was cancelled");
  }
  if (IsTold(event) || (IsBlank(result.output) && !IsBefore(event))) return Hooks::Verdict();
  const auto said = ParseJson(result.output);
  if (!said || !said->is_object()) return fail("it did not print a JSON object");
  Hooks::Verdict verdict;
  std::string decision, reason = "no reason given";
  for (const auto& [key, value] : said->items()) {
    if (key == "decision" && value.is_string()) {
      decision = value.get<std::string>();
    } else if (key == "reason" && value.is_string()) {
      reason = value.get<std::string>();
    } else if (key == "arguments" && event == HookEvent::kBeforeTool && value.is_object()) {
      verdict.arguments = RawMember(result.output, key);
    } else if (key == "context" && event == HookEvent::kBeforeModel && value.is_string()) {
      verdict.context = value.get<std::string>();
    } else if (key == "tool_output" && event == HookEvent::kAfterTool && value.is_string()) {
      verdict.output = value.get<std::string>();
    } else {
      return fail("what it printed has an unknown or wrong member");
    }
  }
  if (decision != "allow" && decision != "deny") return fail("its decision is neither allow nor deny");
  if (decision == "deny") return Hooks::Verdict{.denied = std::string(Utf8Prefix(ToValidUtf8(reason), kMaxReason))};
  return verdict;
}

Result<Hooks::Verdict> Ask(const HookOptions& hook, const HookFacts& facts, const std::string& directory,
                           const std::vector<std::string>& environment, const std::stop_token& stop) {
  if (!directory.empty() && Resolved(directory) != directory) {
    return Fail(ErrorCode::kIo, "the workspace " + VisibleLine(directory) + " is or lies behind a symbolic link now");
  }
  // env searches PATH for the program.
  Command command{.argv = {"/usr/bin/env", "--"}, .environment = environment, .directory = directory};
  if (LooksForModulesIn(directory, hook.command)) command.environment.emplace_back("PYTHONSAFEPATH=1");
  command.argv.insert(command.argv.end(), hook.command.begin(), hook.command.end());
  const CommandLimits limits{.timeout = hook.timeout, .grace = {}, .max_output_bytes = kMaxOutput};
  const auto result = TRY(RunCommandOn(InputOf(facts), command, limits, stop));
  return ReadVerdict(result, facts.event);
}

}  // namespace

std::string_view HookEventName(HookEvent event) {
  return std::ranges::find_if(kNames, [&](const auto& each) { return each.first == event; })->second;
}

HookCommands::HookCommands(std::vector<HookOptions> hooks, std::string directory)
    : hooks_(std::move(hooks)), directory_(std::move(directory)), environment_(CleanEnvironment(directory_)) {}

bool HookCommands::Wants(HookEvent event) const {
  return std::ranges::any_of(hooks_, [&](const HookOptions& hook) { return hook.event == event; });
}

Hooks::Verdict HookCommands::Run(HookFacts facts, const std::stop_token& stop) {
  Verdict whole;
  for (const HookOptions& hook : hooks_) {
    if (hook.event != facts.event) continue;
    if (IsAboutTool(facts.event) && ::fnmatch(hook.tool.c_str(), facts.tool_name.c_str(), 0) != 0) continue;
    if (stop.stop_requested()) return {.denied = "the interaction was cancelled"};
    auto verdict = Ask(hook, facts, directory_, environment_, stop);
    if (!verdict) {
      if (!stop.stop_requested()) {
        LogWarning("a hook failed", {{"event", std::string(HookEventName(facts.event))},
                                     {"command", hook.command.front()},
                                     {"error", verdict.error().message}});
      }
      if (!IsTold(facts.event)) return {.denied = "the hook failed: " + verdict.error().message};
      continue;
    }
    if (verdict->denied) return *std::move(verdict);
    if (verdict->arguments) whole.arguments = facts.arguments = *std::move(verdict->arguments);
    if (verdict->output) whole.output = facts.output = *std::move(verdict->output);
    if (!IsBlank(verdict->context)) whole.context += (whole.context.empty() ? "" : "\n\n") + verdict->context;
  }
  return whole;
}

}  // namespace reprise
