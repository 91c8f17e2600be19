#include <string>
#include <vector>

#include "app/named_files.h"
#include "support/test.h"

namespace reprise::agent_files_test {
namespace {

using File = ProjectInstructions::File;
using State = ProjectInstructions::State;

constexpr const char* kGood = "---\ndescription: d\n---\nGo.";

std::vector<File> Agents(std::vector<File> files) {
  ReadAgentHeads(files);
  return files;
}

Result<ProjectInstructions::Agent> Read(const std::string& text) {
  return AgentNamed(Agents({{.path = "/w/x.md", .text = text}}), "x");
}

}  // namespace

TEST_CASE("AgentNamed: reads what its file says", "[app]") {
  const auto plain = Read(kGood);
  REQUIRE(plain);
  CHECK((plain->name == "x" && plain->instructions == "Go." && plain->model.empty()));
  CHECK((!plain->tools && !plain->mode));
  const auto full =
      Read("---\ndescription: d\ntools: read_file, run_shell\nmodel: a/b\nmode: read_only\n---\n\nGo\nthere.\n");
  REQUIRE(full);
  CHECK(full->tools == std::vector<std::string>{"read_file", "run_shell"});
  CHECK((full->model == "a/b" && full->mode == ApprovalMode::kReadOnly && full->instructions == "Go\nthere."));
}

TEST_CASE("AgentNamed: a file that is not understood is no agent", "[app]") {
  const auto many = [](int count) {
    std::string list;
    for (int i = 0; i < count; ++i) list += "t" + std::to_string(i) + ",";
    return "---\ndescription: d\ntools: \"" + list + "\"\n---\nGo.";
  };
  CHECK(Read(many(100)));
  for (const std::string& text :
       {std::string("Go."), std::string("---\ndescription: d\nhooks: x\n---\nGo."), many(101),
        std::string("---\ndescription: d\nmode: Ask\n---\nGo."), std::string("---\ndescription: d\nmode: ''\n---\nGo."),
        std::string("---\ndescription: d\ntools: ' ,'\n---\nGo."),
        std::string("---\ndescription: d\n? [a, b]\n: c\n---\nGo."), std::string("---\ndescription: d\n---\n")}) {
    CHECK(Agents({{.path = "/w/x.md", .text = text}}).front().state == State::kUnusable);
    const auto agent = Read(text);
    REQUIRE_FALSE(agent);
    CHECK(agent.error().code == ErrorCode::kInvalidArgument);
    CHECK(agent.error().message.starts_with("/w/x.md: "));
  }
}

TEST_CASE("AgentNamed: the nearest counts, and only if it is allowed", "[app]") {
  auto files =
      Agents({{.path = "/a/x.md", .text = kGood}, {.path = "/b/x.md", .state = State::kChanged, .text = kGood}});
  CHECK(files.front().state == State::kUnusable);
  CHECK(files.back().description.empty());
  CHECK(AgentNamed(files, "x").error().Is(Reason::kUntrusted));
  CHECK(AgentNamed(files, "y").error().Is(Reason::kNoSuchAgent));
  CHECK(AgentNamed({}, "").error().Is(Reason::kNoSuchAgent));
}

}  // namespace reprise::agent_files_test
