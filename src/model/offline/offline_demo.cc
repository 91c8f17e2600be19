#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/text.h"
#include "model/offline/offline_answers.h"

namespace reprise {
namespace {

constexpr std::chrono::milliseconds kStoryPause{20};  // between two words: a fast model
constexpr std::size_t kLongestColour = 60;            // characters
constexpr int kMostFiles = 99;

// The file's content; a colour stands in the middle.
constexpr std::string_view kFileStart =
    "This file was written by a demonstration of Reprise. You may delete it.\nColour: ";

// The calls of the scenes are named "demo_SCENE_ID", so the messages show how far the story has come.
constexpr std::string_view kCallPrefix = "demo_";

// The facts that scenes depend on and mention, by name. A missing or empty fact is false. "SCENE_ID" holds a call's
// result: "done", "rejected" or "failed".
using Facts = std::map<std::string, std::string, std::less<>>;

std::string FileName(int number) {
  return number == 1 ? "reprise-demo.txt" : "reprise-demo-" + std::to_string(number) + ".txt";
}

// One line without Markdown syntax.
std::string PlainWords(std::string_view text) {
  std::string plain = ToValidUtf8(text);
  for (char& c : plain) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f ||
        std::string_view("|`*_<>[]\\").find(c) != std::string_view::npos)
      c = ' ';
  }
  const std::size_t first = plain.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  plain = plain.substr(first, plain.find_last_not_of(' ') - first + 1);
  return std::string(Utf8Prefix(plain, kLongestColour));
}

const Message* ResultIn(const Messages& turn, std::string_view scene_and_id) {
  const std::string id = std::string(kCallPrefix).append(scene_and_id);
  const auto found = std::find_if(turn.begin(), turn.end(), [&](const Message& message) {
    return message.role == Role::kTool && message.tool_call_id == id;
  });
  return found == turn.end() ? nullptr : &*found;
}

// Empty if the call failed or was not made.
std::string_view OutputOf(const Messages& turn, std::string_view scene_and_id) {
  const Message* result = ResultIn(turn, scene_and_id);
  return result && !result->is_error && result->content ? std::string_view(*result->content) : std::string_view();
}

std::string BecameOf(const Message& result) {
  if (!result.is_error) return "done";
  for (const std::string_view start :
       {"The user rejected", "Nobody approved", "This server refuses", "This call needs approval"}) {
    if (result.content && result.content->starts_with(start)) return "rejected";
  }
  return "failed";
}

// The last task with this title in the output of `manage_tasks`, because other tasks may have the same title.
std::string TaskId(std::string_view list, const std::string& title) {
  const RE2 task("(?m)^(\\S+) .*\\] " + RE2::QuoteMeta(title) + "$", RE2::Latin1);
  re2::StringPiece left(list.data(), list.size());
  std::string id;
  while (RE2::FindAndConsume(&left, task, &id)) continue;
  return id;
}

// The file to write; empty if no free name is known.
std::string FileToWrite(const Messages& turn, const Facts& facts) {
  if (!facts.at("own_file").empty()) return FileName(1);
  const std::string list = "\n" + std::string(OutputOf(turn, "2_list")) + "\n";
  if (!facts.contains("2_list") || facts.at("2_list") != "done" || list.find("\n(cut: ") != std::string::npos)
    return {};
  const auto read = facts.find("2_read");
  const int first = read != facts.end() && read->second == "done" ? 2 : 1;  // it was created during the listing
  for (int number = first; number <= kMostFiles; ++number) {
    const std::string name = "\n" + FileName(number);
    if (list.find(name + "\n") == std::string::npos && list.find(name + "/\n") == std::string::npos) {
      return FileName(number);
    }
  }
  return {};
}

Facts GatherFacts(const Messages& turn, const std::vector<ToolSpec>& tools, bool asks_people) {
  Facts facts{{"asks", asks_people ? "yes" : ""},
              {"first_file", FileName(1)},
              {"file_start", std::string(kFileStart)},
              {"no_colour", "not chosen yet"}};
  for (const ToolSpec& tool : tools) facts["has_" + tool.name] = "yes";
  for (const Message& message : turn) {
    if (message.role != Role::kTool || !message.tool_call_id.starts_with(kCallPrefix)) continue;
    facts.emplace(message.tool_call_id.substr(kCallPrefix.size()), BecameOf(message));
  }
  facts["look_task"] = TaskId(OutputOf(turn, "1_look"), "Look around");
  facts["write_task"] = TaskId(OutputOf(turn, "1_write"), "Write a file and change it");

  const std::string_view first_file = OutputOf(turn, "2_read");
  const bool is_own =
      first_file.starts_with(kFileStart) && first_file.find('\n', kFileStart.size()) == first_file.size() - 1;
  facts["own_file"] = is_own ? "yes" : "";
  facts["file"] = FileToWrite(turn, facts);
  facts["other_file"] = facts["file"] == FileName(1) ? "" : "yes";
  const bool was_asked = ResultIn(turn, "4_ask") != nullptr;
  facts["colour"] = was_asked ? PlainWords(OutputOf(turn, "4_ask")) : "green";
  return facts;
}

// "SCENE_ID_missing" describes a call that was left out, rejected or failed.
std::string ValueOf(std::string_view name, const Facts& facts) {
  const bool tells = name.ends_with("_missing");
  if (tells) name.remove_suffix(std::string_view("_missing").size());
  const auto found = facts.find(name);
  const std::string value = found == facts.end() ? "" : found->second;
  if (!tells) return value;
  return value.empty() ? "left out" : value == "rejected" ? "not allowed, so not done" : value == "done" ? "" : value;
}

// `told` with the named facts filled in: {colour}.
std::string Filled(const std::string& told, const Facts& facts) {
  static const RE2 place("([^{]*)\\{(\\w+)\\}", RE2::Latin1);
  re2::StringPiece left(told);
  std::string text;
  for (std::string before, name; RE2::Consume(&left, place, &before, &name);) text += before + ValueOf(name, facts);
  return text.append(left.data(), left.size());
}

// Whether all conditions under "when" hold: "FACT", "!FACT", "FACT=VALUE", "FACT!=VALUE".
bool Holds(const Json& told, const Facts& facts) {
  static const RE2 form("(!?)(\\w+)(?:(!?=)(\\w+))?");
  for (const Json& condition : told.value("when", Json::array())) {
    std::string no, name, compared, value;
    if (!RE2::FullMatch(condition.get<std::string>(), form, &no, &name, &compared, &value)) return false;
    const std::string fact = ValueOf(name, facts);
    const bool holds = compared.empty() ? fact.empty() == !no.empty() : (fact == value) == (compared == "=");
    if (!holds) return false;
  }
  return true;
}

std::string Said(const Json& parts, const Facts& facts) {
  std::string text;
  for (const Json& part : parts) {
    if (part.is_string()) {
      text += Filled(part, facts);
    } else if (Holds(part, facts)) {
      text += Filled(part.at("say"), facts);
    }
  }
  return text;
}

std::vector<ToolCall> CallsIn(const Json& scene, const std::string& number, const Facts& facts) {
  std::vector<ToolCall> calls;
  for (const Json& call : scene.value("calls", Json::array())) {
    const std::string tool = call.at("tool");
    if (!Holds(call, facts) || !facts.contains("has_" + tool)) continue;
    Json arguments = call.at("arguments");
    for (Json& argument : arguments) {
      if (argument.is_string()) argument = Filled(argument, facts);
    }
    calls.push_back(
        {std::string(kCallPrefix) + number + "_" + call.at("id").get<std::string>(), tool, DumpJson(arguments)});
  }
  return calls;
}

std::size_t ScenesPlayed(const Messages& turn) {
  std::size_t played = 0;
  for (const Message& message : turn) {
    for (const ToolCall& call : message.tool_calls) {
      const char digit = call.id.starts_with(kCallPrefix) ? call.id[kCallPrefix.size()] : '0';
      if (digit >= '1' && digit <= '9') played = std::max(played, static_cast<std::size_t>(digit - '0'));
    }
  }
  return played;
}

}  // namespace

OfflineResponse NextOfDemo(const Messages& turn, const std::vector<ToolSpec>& tools, bool asks_people) {
  const Facts facts = GatherFacts(turn, tools, asks_people);
  const Json& scenes = OfflineData().at("demo");
  const std::size_t last = scenes.size() - 1;
  OfflineResponse response;
  for (std::size_t i = std::min(ScenesPlayed(turn), last); i <= last; ++i) {
    const Json& scene = scenes[i];
    if (!Holds(scene, facts)) continue;
    response = {.thinking = Said(scene.value("thinking", Json::array()), facts),
                .text = Said(scene.at("text"), facts),
                .tool_calls = CallsIn(scene, std::to_string(i + 1), facts),
                .pause = kStoryPause};
    if (!response.tool_calls.empty()) return response;  // otherwise none of its calls is possible
  }
  response.failure = FailedOnce("the offline model plays this once in its demonstration");
  response.fails_first_attempt = true;
  return response;
}

}  // namespace reprise
