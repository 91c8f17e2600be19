#include "app/agent_files.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "app/front_matter.h"
#include "app/named_files.h"
#include "app/prompt_files.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"

namespace reprise {
namespace {

using Agent = ProjectInstructions::Agent;
using File = ProjectInstructions::File;
using Kind = ProjectInstructions::Kind;
using State = ProjectInstructions::State;

constexpr std::size_t kMostTools = 100;

// The names in a list, or in a text that separates them by commas or spaces.
std::vector<std::string> NamesIn(const std::vector<std::string>& texts) {
  std::vector<std::string> names;
  for (std::string_view text : texts) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find_first_of(", \t\r\n"), text.size());
      if (end > 0) names.emplace_back(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  return names;
}

struct Head {
  std::string description;
  Agent agent;
};

Result<Head> ReadAgent(std::string_view text) {
  const auto front = TRY(ReadFrontMatter(text, {"description", "model", "mode"}, "tools"));
  if (!front.others.empty()) {
    return Fail(WrongFrontMatter("has the member \"" + VisibleOnOneLine(front.others.front()) +
                                 "\"; that of an agent has description, tools, model and mode"));
  }
  Head head{.description = DescriptionLine(front.Text("description")),
            .agent = {.name = {}, .instructions = std::string(Trimmed(front.body)), .model = front.Text("model")}};
  if (head.description.empty()) {
    return Fail(WrongFrontMatter("has no description, so the model cannot tell what the agent is for"));
  }
  if (front.members.contains("model") && head.agent.model.empty()) return Fail(WrongFrontMatter("has an empty model"));
  if (const auto tools = front.members.find("tools"); tools != front.members.end()) {
    head.agent.tools = NamesIn(tools->second);
    if (head.agent.tools->empty() || head.agent.tools->size() > kMostTools) {
      return Fail(WrongFrontMatter("must name 1 to " + std::to_string(kMostTools) + " tools if it has a member tools"));
    }
  }
  if (front.members.contains("mode")) {
    head.agent.mode = ParseApprovalMode(front.Text("mode"));
    if (!head.agent.mode) {
      return Fail(WrongFrontMatter("has the mode \"" + VisibleOnOneLine(front.Text("mode")) + "\", which is none"));
    }
  }
  if (head.agent.instructions.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "there are no instructions after the front matter");
  }
  return head;
}

}  // namespace

void ReadAgentHeads(std::vector<File>& files) {
  ReadNamedHeads(files, Kind::kAgent, [](std::string_view text) {
    return ReadAgent(text).map([](Head&& head) { return head.description; });
  });
}

Result<Agent> AgentNamed(const std::vector<File>& files, std::string_view name) {
  // The nearest is the last. An unusable file has no name, but hides none either.
  const auto file = std::find_if(files.rbegin(), files.rend(),
                                 [&](const File& each) { return each.state != State::kUnusable && each.name == name; });
  if (file == files.rend()) {
    const auto broken = std::find_if(files.rbegin(), files.rend(),
                                     [&](const File& each) { return std::filesystem::path(each.path).stem() == name; });
    if (broken != files.rend()) return Fail(ErrorCode::kInvalidArgument, broken->problem);
    return Fail(Reason::kNoSuchAgent, "there is no agent " + VisibleOnOneLine(name) + " in this folder");
  }
  if (file->state != State::kUsed) return Fail(NotAllowedYet(*file));
  auto head = TRY(ReadAgent(file->text));
  head.agent.name = file->name;
  return std::move(head.agent);
}

}  // namespace reprise
