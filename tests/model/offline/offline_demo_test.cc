#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/json.h"
#include "model/offline/offline_answers.h"
#include "support/test.h"

namespace reprise::offline_demo_test {
namespace {

constexpr std::string_view kFile = "reprise-demo.txt";
constexpr std::string_view kOwn =
    "This file was written by a demonstration of Reprise. You may delete it.\nColour: green\n";

struct Reply {
  std::string output;
  bool is_error = false;
};

Reply Rejected() { return {"The user rejected this call. It was not run.", true}; }
Reply NoSuchFile() { return {"cannot read \"reprise-demo.txt\": there is no such file or directory", true}; }

std::vector<ToolSpec> Tools(const std::set<std::string>& without = {}) {
  std::vector<ToolSpec> tools;
  for (const char* name : {"update_plan", "manage_tasks", "list_files", "read_file", "write_file", "edit_file",
                           "ask_human", "run_shell"}) {
    if (!without.contains(name)) tools.push_back({name, "", "{}"});
  }
  return tools;
}

// Plays the story to its end as the agent would: the tools say what `world` says, by call id or else by tool.
struct Play {
  std::map<std::string, Reply> world{{"update_plan", {"The plan has 6 steps."}},
                                     {"list_files", {"(the directory is empty)"}},
                                     {"read_file", NoSuchFile()},
                                     {"write_file", {"created \"reprise-demo.txt\" (1 byte)"}},
                                     {"edit_file", {"edited \"reprise-demo.txt\""}},
                                     {"ask_human", {"blue"}},
                                     {"run_shell", {"line 1 of 5\n"}}};
  std::set<std::string> without{};
  bool asks_people = true;

  std::vector<Message> turn{};
  std::vector<OfflineResponse> rounds{};
  std::vector<std::string> tasks{"task_1 [todo] Look around"};  // of another origin

  Reply TaskReply(const Json& arguments) {
    if (arguments["action"] == "add") {
      tasks.push_back("task_" + std::to_string(tasks.size() + 1) + " [todo] " + arguments["title"].get<std::string>());
    } else {
      for (std::string& task : tasks) {
        const std::string id = arguments["id"].get<std::string>() + " ";
        if (task.starts_with(id)) task.replace(id.size(), std::string("[todo]").size(), "[done]");
      }
    }
    std::string list;
    for (const std::string& task : tasks) list += (list.empty() ? "" : "\n") + task;
    return {list};
  }

  Play& Run() {
    const std::vector<ToolSpec> tools = Tools(without);
    for (;;) {
      REQUIRE(rounds.size() < 10);
      rounds.push_back(NextOfDemo(turn, tools, asks_people));
      const OfflineResponse& response = rounds.back();
      CHECK(response.pause.count() > 0);
      CHECK(!response.text.empty());
      if (response.tool_calls.empty()) return *this;
      CHECK_FALSE(response.failure);
      Message said{.role = Role::kAssistant, .content = response.text, .tool_calls = response.tool_calls};
      turn.push_back(said);
      for (const ToolCall& call : response.tool_calls) {
        CHECK(call.id.starts_with("demo_"));
        const auto arguments = ParseJson(call.arguments);
        REQUIRE(arguments);
        REQUIRE(arguments->is_object());
        const Reply reply = call.name == "manage_tasks" ? TaskReply(*arguments)
                            : world.contains(call.id)   ? world[call.id]
                                                        : world[call.name];
        Message result{.role = Role::kTool, .content = reply.output, .tool_calls = {}, .tool_call_id = call.id};
        result.is_error = reply.is_error;
        turn.push_back(result);
      }
    }
  }

  // The tools of each round that has calls.
  std::string Order() const {
    std::string order;
    for (const OfflineResponse& round : rounds) {
      if (round.tool_calls.empty()) continue;
      order += order.empty() ? "" : " | ";
      for (const ToolCall& call : round.tool_calls)
        order += (order.empty() || order.back() == ' ' ? "" : "+") + call.name;
    }
    return order;
  }
  const ToolCall* Find(std::string_view tool) const {
    for (const OfflineResponse& round : rounds) {
      for (const ToolCall& call : round.tool_calls) {
        if (call.name == tool) return &call;
      }
    }
    return nullptr;
  }
  Json ArgumentsOf(std::string_view tool) const {
    const ToolCall* call = Find(tool);
    REQUIRE(call);
    return *ParseJson(call->arguments);
  }
  const std::string& end() const { return rounds.back().text; }
};

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST_CASE("Demonstration: if everything is approved it shows each thing once", "[offline]") {
  Play play;
  play.Run();
  CHECK(
      play.Order() ==
      "update_plan+manage_tasks+manage_tasks | list_files+read_file | manage_tasks+write_file | ask_human | edit_file "
      "| manage_tasks+run_shell");
  CHECK_FALSE(play.rounds.front().thinking.empty());
  CHECK(play.ArgumentsOf("update_plan")["steps"].size() == 6);
  CHECK(play.ArgumentsOf("write_file")["path"] == kFile);
  CHECK(play.ArgumentsOf("ask_human")["options"] == Json({"green", "blue", "red"}));
  CHECK(play.ArgumentsOf("edit_file")["old_text"] == "Colour: not chosen yet");
  CHECK(play.ArgumentsOf("edit_file")["new_text"] == "Colour: blue");
  CHECK(Has(play.ArgumentsOf("run_shell")["command"].get<std::string>(), "sleep"));
  CHECK(play.tasks == std::vector<std::string>{"task_1 [todo] Look around", "task_2 [done] Look around",
                                               "task_3 [done] Write a file and change it"});
  for (const char* word : {"/edit", "/branches", "reprise replay", "written: `reprise-demo.txt`", "you said *blue*"}) {
    INFO(word << " in " << play.end());
    CHECK(Has(play.end(), word));
  }
}

TEST_CASE("Demonstration: only the last request fails once, and its retry succeeds", "[offline]") {
  Play play;
  play.Run();
  const OfflineResponse& end = play.rounds.back();
  CHECK(end.fails_first_attempt);
  REQUIRE(end.failure);
  CHECK(end.failure->retryable);
  CHECK(end.failure->reason == "provider_overloaded");
}

TEST_CASE("Demonstration: it depends only on the messages", "[offline]") {
  Play play;
  play.Run();
  std::size_t round = 0;
  const std::vector<ToolSpec> tools = Tools();
  for (std::size_t i = 0; i <= play.turn.size(); ++i) {
    if (i < play.turn.size() && play.turn[i].role != Role::kAssistant) continue;
    const auto again = NextOfDemo(
        std::vector<Message>(play.turn.begin(), play.turn.begin() + static_cast<std::ptrdiff_t>(i)), tools, true);
    CHECK(again.text == play.rounds[round].text);
    CHECK(again.thinking == play.rounds[round].thinking);
    CHECK(again.tool_calls == play.rounds[round].tool_calls);
    ++round;
  }
  CHECK(round == play.rounds.size());
}

TEST_CASE("Demonstration: it continues politely if everything is rejected", "[offline]") {
  Play play;
  play.world["write_file"] = play.world["run_shell"] = Rejected();
  play.world["ask_human"] = {"The user declined to answer.", true};
  play.Run();
  CHECK(
      play.Order() ==
      "update_plan+manage_tasks+manage_tasks | list_files+read_file | manage_tasks+write_file | ask_human | run_shell");
  CHECK(Has(play.rounds[3].text, "nothing was written"));
  CHECK(Has(play.end(), "a file to approve | not allowed, so not done"));
  CHECK(Has(play.end(), "a question | not answered"));
  CHECK(Has(play.end(), "a change to approve | left out"));
  CHECK(Has(play.end(), "live output | not allowed, so not done"));
  CHECK(play.tasks.back() == "task_3 [todo] Write a file and change it");
}

TEST_CASE("Demonstration: a rejected change leaves its task open", "[offline]") {
  Play play;
  play.world["edit_file"] = Rejected();
  play.Run();
  CHECK(Has(play.rounds[5].text, "stays as it is"));
  CHECK(play.tasks.back() == "task_3 [todo] Write a file and change it");
}

TEST_CASE("Demonstration: without a person it asks nothing and completes", "[offline]") {
  Play play;
  play.asks_people = false;
  play.Run();
  CHECK(play.Find("ask_human") == nullptr);
  CHECK(play.ArgumentsOf("edit_file")["new_text"] == "Colour: green");
  CHECK(Has(play.end(), "nobody is asked here"));
}

TEST_CASE("Demonstration: a file that is not its own is never written", "[offline]") {
  Play play;
  play.world["list_files"] = {"notes.txt\nreprise-demo-2.txt/\nreprise-demo.txt"};
  const auto path = [&](const Reply& read) {
    Play one = play;
    one.world["read_file"] = read;
    one.Run();
    return one.Find("write_file") ? one.ArgumentsOf("write_file")["path"].get<std::string>() : "none";
  };
  CHECK(path({std::string(kOwn)}) == kFile);
  CHECK(path({"mine"}) == "reprise-demo-3.txt");
  CHECK(path({std::string(kOwn) + "and my own line\n"}) == "reprise-demo-3.txt");
  CHECK(path({"x" + std::string(kOwn)}) == "reprise-demo-3.txt");
  CHECK(path({"(the file is empty)"}) == "reprise-demo-3.txt");
  CHECK(path({"cannot read \"reprise-demo.txt\": it is a binary file, not text", true}) == "reprise-demo-3.txt");
  // Created between the two reads.
  play.world["list_files"] = {"notes.txt"};
  CHECK(path({"mine"}) == "reprise-demo-2.txt");
  CHECK(path(NoSuchFile()) == kFile);
  // No free name is known, so nothing is written.
  play.world["list_files"] = {"a\nb\n(cut: the first 2 of 3 entries)"};
  CHECK(path(NoSuchFile()) == "none");
  play.world["list_files"] = Rejected();
  CHECK(path(NoSuchFile()) == "none");
  std::string all = "reprise-demo.txt";
  for (int i = 2; i <= 99; ++i) all += "\nreprise-demo-" + std::to_string(i) + ".txt";
  play.world["list_files"] = {all};
  CHECK(path({"mine"}) == "none");
}

TEST_CASE("Demonstration: a free answer becomes one line of plain text", "[offline]") {
  const auto line = [](std::string answer) {
    Play play;
    play.world["ask_human"] = {std::move(answer)};
    play.Run();
    return play.Find("edit_file") ? play.ArgumentsOf("edit_file")["new_text"].get<std::string>() : "none";
  };
  CHECK(line("purple") == "Colour: purple");
  CHECK(line(" a\nb|c`d ") == "Colour: a b c d");
  CHECK(line(" \n") == "none");
  CHECK(line(std::string(500, 'x')) == "Colour: " + std::string(60, 'x'));
}

TEST_CASE("Demonstration: missing tools are left out", "[offline]") {
  for (const std::string name : {"update_plan", "manage_tasks", "list_files", "read_file", "write_file", "edit_file",
                                 "ask_human", "run_shell"}) {
    INFO(name);
    Play play;
    play.without = {name};
    play.Run();
    CHECK(play.Find(name) == nullptr);
    CHECK(Has(play.end(), "/edit"));
  }
  Play nothing;
  nothing.without = {"update_plan", "manage_tasks", "list_files", "read_file",
                     "write_file",  "edit_file",    "ask_human",  "run_shell"};
  nothing.Run();
  CHECK(nothing.rounds.size() == 1);
}

TEST_CASE("Demonstration: it takes less than twenty seconds", "[offline]") {
  Play play;
  play.Run();
  std::chrono::milliseconds time{0};
  for (const OfflineResponse& round : play.rounds) {
    for (const std::string& said : {round.thinking, round.text}) {
      std::istringstream words(said);
      for (std::string word; words >> word;) time += round.pause;
    }
    if (round.failure) time += round.failure->retry_after.value();
  }
  time += std::chrono::seconds(2);  // the command
  CHECK(time < std::chrono::seconds(18));
}

}  // namespace
}  // namespace reprise::offline_demo_test
