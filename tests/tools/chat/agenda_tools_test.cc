#include "support/test.h"
#include "tools/builtin_tools.h"

namespace reprise::agenda_tools_test {
namespace {

struct Fixture {
  Fixture() {
    context.change_agenda = [this](const std::function<void(Agenda&)>& change) { change(agenda); };
  }
  ToolOutcome Tasks(std::string_view arguments) { return MakeManageTasksTool()->Run(arguments, context); }
  Agenda agenda;
  ToolContext context;
};

}  // namespace

TEST_CASE("manage_tasks: adds, changes, removes and lists", "[tools]") {
  Fixture f;
  CHECK(f.Tasks(R"({"action":"list"})").output == "There are no tasks.");
  CHECK(f.Tasks(R"({"action":"add","title":"Pack"})").output == "1 [todo] Pack");
  f.Tasks(R"({"action":"add","title":"Drive","status":"doing"})");
  f.Tasks(R"({"action":"update","id":"1","status":"done"})");
  f.Tasks(R"({"action":"update","id":"2","title":"Fly"})");
  CHECK(f.Tasks(R"({"action":"list"})").output == "1 [done] Pack\n2 [doing] Fly");
  CHECK(f.Tasks(R"({"action":"remove","id":"1"})").output == "2 [doing] Fly");
  CHECK(f.agenda.tasks == std::vector<Task>{{"2", "Fly", "doing"}});
}

TEST_CASE("manage_tasks: errors are reported and change nothing", "[tools]") {
  Fixture f;
  f.Tasks(R"({"action":"add","title":"Pack"})");
  const Agenda before = f.agenda;
  for (const char* arguments : {R"({"action":"add"})", R"({"action":"update","id":"1"})", R"({"action":"remove"})",
                                R"({"action":"update","id":"2","status":"done"})"}) {
    INFO(arguments);
    CHECK(f.Tasks(arguments).is_error);
    CHECK(f.agenda == before);
  }
  f.agenda.tasks.assign(kMaxTasks, {"1", "x", "todo"});
  CHECK(f.Tasks(R"({"action":"add","title":"one more"})").is_error);
  CHECK(f.agenda.tasks.size() == kMaxTasks);
  CHECK(MakeManageTasksTool()->Run(R"({"action":"list"})", {}).is_error);
}

TEST_CASE("update_plan: the steps replace the previous ones", "[tools]") {
  Fixture f;
  f.agenda.plan = {"old"};
  CHECK(MakeUpdatePlanTool()->Run(R"({"steps":["a","b"]})", f.context).output == "The plan has 2 steps.");
  CHECK(f.agenda.plan == std::vector<std::string>{"a", "b"});
  MakeUpdatePlanTool()->Run(R"({"steps":[]})", f.context);
  CHECK(f.agenda.plan.empty());
}

TEST_CASE("NextTaskId: a number above those in use", "[tools]") {
  CHECK(NextTaskId({}) == "1");
  CHECK(NextTaskId({{"3", "", ""}, {"x", "", ""}, {"-7", "", ""}, {"99999999999999999999", "", ""}}) == "4");
}

}  // namespace reprise::agenda_tools_test
