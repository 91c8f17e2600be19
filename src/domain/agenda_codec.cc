#include <nlohmann/json.hpp>

#include "domain/codec.h"
#include "domain/json_reader.h"
#include "domain/members.h"

namespace reprise {

namespace {

void Write(auto& out, const Task& task) {
  out["id"] = task.id;
  out["title"] = task.title;
  out["status"] = task.status;
}

}  // namespace

Json ToJson(const Task& task) {
  Json json = Json::object();
  Write(json, task);
  return json;
}

void AppendJson(std::string& out, const Task& task) {
  AppendJsonObject(out, [&](auto& object) { Write(object, task); });
}

Json ToJson(const std::vector<Task>& tasks) {
  Json json = Json::array();
  for (const Task& task : tasks) json.push_back(ToJson(task));
  return json;
}

Result<std::vector<Task>> TasksFromJson(const Json& json) {
  std::vector<Task> tasks;
  for (const Json& each : json) {
    JsonReader reader(each, "task");
    tasks.push_back({reader.String("id"), reader.String("title"), reader.String("status")});
    if (reader.error()) return Fail(*reader.error());
  }
  return tasks;
}

Json ToJson(const Agenda& agenda) { return {{"tasks", ToJson(agenda.tasks)}, {"plan", agenda.plan}}; }

Result<Agenda> AgendaFromJson(const Json& json) {
  JsonReader reader(json, "agenda");
  Agenda agenda;
  if (reader.Find("tasks") != nullptr) {
    if (const Json* tasks = reader.Array("tasks")) {
      agenda.tasks = reader.Take(TasksFromJson(*tasks), std::vector<Task>());
    }
  }
  if (reader.Find("plan") != nullptr) agenda.plan = reader.Strings("plan");
  if (reader.error()) return Fail(*reader.error());
  return agenda;
}

}  // namespace reprise
