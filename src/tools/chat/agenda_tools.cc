#include "tools/chat/agenda_tools.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "tools/arguments.h"

namespace reprise {
namespace {

std::string Listed(const std::vector<Task>& tasks) {
  if (tasks.empty()) return "There are no tasks.";
  std::string text;
  for (const Task& task : tasks) {
    if (!text.empty()) text += '\n';
    text += task.id + " [" + task.status + "] " + task.title;
  }
  return text;
}

ToolOutcome Add(const Arguments& given, std::vector<Task>& tasks) {
  const auto title = given.String("title");
  if (!title) return ToolFailure("\"add\" needs a \"title\".");
  if (tasks.size() >= kMaxTasks) {
    return ToolFailure("There are " + std::to_string(kMaxTasks) + " tasks, which is the most there can be.");
  }
  tasks.push_back({NextTaskId(tasks), ToValidUtf8(*title), given.String("status").value_or("todo")});
  return {.output = Listed(tasks)};
}

// The task that is meant, or the end.
std::vector<Task>::iterator Meant(const Arguments& given, std::vector<Task>& tasks) {
  const auto id = given.String("id");
  return std::find_if(tasks.begin(), tasks.end(), [&](const Task& task) { return id == task.id; });
}

ToolOutcome NoSuchTask(const std::vector<Task>& tasks) {
  return ToolFailure("There is no task of that \"id\". The tasks:\n" + Listed(tasks));
}

ToolOutcome Update(const Arguments& given, std::vector<Task>& tasks) {
  const auto task = Meant(given, tasks);
  if (task == tasks.end()) return NoSuchTask(tasks);
  const auto title = given.String("title"), status = given.String("status");
  if (!title && !status) return ToolFailure("\"update\" needs a \"title\" or a \"status\".");
  if (title) task->title = ToValidUtf8(*title);
  if (status) task->status = *status;
  return {.output = Listed(tasks)};
}

ToolOutcome Remove(const Arguments& given, std::vector<Task>& tasks) {
  const auto task = Meant(given, tasks);
  if (task == tasks.end()) return NoSuchTask(tasks);
  tasks.erase(task);
  return {.output = Listed(tasks)};
}

class ManageTasksTool final : public BuiltinTool {
 public:
  ManageTasksTool()
      : BuiltinTool({.spec = {.name = "manage_tasks",
                              .description = "Keeps your list of tasks in this chat, which the user sees. Adds a task, "
                                             "changes its title or status, removes it, or lists all; returns the list.",
                              .parameters = R"({"type":"object","additionalProperties":false,"required":["action"],
"properties":{"action":{"type":"string","enum":["add","update","remove","list"]},
"id":{"type":"string","maxLength":64,"description":"Which task to update or remove."},
"title":{"type":"string","minLength":1,"maxLength":500},
"status":{"type":"string","enum":["todo","doing","done"]}}})"},
                     .idempotent = false,
                     .concurrency = Concurrency::kNever,
                     .approval_reason = "changes the agent's tasks"}) {}

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    if (!context.change_agenda) return ToolFailure("No tasks are kept here.");
    const Arguments given(arguments);
    const std::string action = given.String("action").value_or("list");
    ToolOutcome outcome;
    context.change_agenda([&](Agenda& agenda) {
      if (action == "add") {
        outcome = Add(given, agenda.tasks);
      } else if (action == "update") {
        outcome = Update(given, agenda.tasks);
      } else if (action == "remove") {
        outcome = Remove(given, agenda.tasks);
      } else {
        outcome = {.output = Listed(agenda.tasks)};
      }
    });
    return outcome;
  }
};

class UpdatePlanTool final : public BuiltinTool {
 public:
  UpdatePlanTool()
      : BuiltinTool({.spec = {.name = "update_plan",
                              .description = "Writes down the steps you are going to take, which the user sees; they "
                                             "replace those before.",
                              .parameters = R"({"type":"object","additionalProperties":false,"required":["steps"],
"properties":{"steps":{"type":"array","maxItems":100,"items":{"type":"string","minLength":1,"maxLength":500}}}})"},
                     .concurrency = Concurrency::kNever,
                     .approval_reason = "changes the agent's plan"}) {}

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    if (!context.change_agenda) return ToolFailure("No plan is kept here.");
    std::vector<std::string> steps;
    for (const std::string& step : Arguments(arguments).Strings("steps")) steps.push_back(ToValidUtf8(step));
    const std::size_t count = steps.size();
    context.change_agenda([&](Agenda& agenda) { agenda.plan = std::move(steps); });
    return {.output = "The plan has " + std::to_string(count) + (count == 1 ? " step." : " steps.")};
  }
};

}  // namespace

std::unique_ptr<BuiltinTool> MakeManageTasksTool() { return std::make_unique<ManageTasksTool>(); }
std::unique_ptr<BuiltinTool> MakeUpdatePlanTool() { return std::make_unique<UpdatePlanTool>(); }

}  // namespace reprise
