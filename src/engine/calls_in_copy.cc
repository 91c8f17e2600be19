#include "engine/calls_in_copy.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"

namespace reprise {
namespace {

// The arguments with paths in the copy. Contents of files stay as they are.
std::string ForCopy(const WorkspaceCopy& copy, std::string_view arguments) {
  auto json = ParseJson(arguments);
  if (!json || !json->is_object()) return std::string(arguments);
  bool is_changed = false;
  for (const char* member : {"path", "command", "code", "input"}) {
    const auto found = json->find(member);
    if (found == json->end() || !found->is_string()) continue;
    const std::string& text = found->get_ref<const std::string&>();
    std::string in_copy = copy.ForCopy(text);
    is_changed = is_changed || in_copy != text;
    *found = std::move(in_copy);
  }
  return is_changed ? DumpJson(*json) : std::string(arguments);
}

ToolOutcome NotRun(const std::string& why) { return {.output = "Not run: " + why, .is_error = true}; }

// Nobody answers, and nothing of the chat can be reached but its files, to read.
ToolContext WithoutPeople(const ToolContext& context) {
  return {.stop = context.stop,
          .timeout = context.timeout,
          .on_output = {},
          .ask = {},
          .change_agenda = context.change_agenda,
          .files = context.files,
          .documents = context.documents};
}

}  // namespace

WorkspaceCopies::Place CallsInCopy::PlaceOf(std::string_view tool) const {
  return agent_.workspace.copies == nullptr ? WorkspaceCopies::Place::kNowhere : agent_.workspace.copies->PlaceOf(tool);
}

bool CallsInCopy::IsAllowed(std::string_view tool) const { return std::ranges::find(allowed_, tool) != allowed_.end(); }

void CallsInCopy::Begun(bool runs_here, std::vector<WorkspaceChange> recorded) {
  runs_here_ = runs_here;
  if (copy_) return copy_->Apply(recorded, files_);
  std::ranges::move(recorded, std::back_inserter(recorded_));
}

// The copy, made if need be; null if that failed.
WorkspaceCopy* CallsInCopy::Copy() {
  if (copy_ || failure_) return copy_.get();
  const auto make = [&]() -> Result<void> {
    auto files = then_ ? then_() : PastFiles{.at = Now()};
    if (!files) return Fail(files.error());
    auto copy = agent_.workspace.copies->Make(*files, stop_.get_token());
    if (!copy) return Fail(copy.error());
    files_ = *std::move(files);
    copy_ = *std::move(copy);
    copy_->Apply(std::exchange(recorded_, {}), files_);
    return {};
  };
  if (const auto made = make(); !made) {
    if (!stop_.stop_requested()) failure_ = made.error();
    stop_.request_stop();
  }
  return copy_.get();
}

std::unique_ptr<CallRecorder> CallsInCopy::Begin(const ToolTraits& traits, std::string_view arguments,
                                                 const std::stop_token& stop) {
  if (!runs_here_ || PlaceOf(traits.spec.name) != WorkspaceCopies::Place::kCopy) return nullptr;
  WorkspaceCopy* const copy = Copy();
  Tool* const tool = copy == nullptr ? nullptr : copy->Find(traits.spec.name);
  if (tool == nullptr) return nullptr;
  return copy->recorder().Begin(tool->traits(), ForCopy(*copy, arguments), stop);
}

ToolOutcome CallsInCopy::Run(const std::string& name, std::string_view arguments, const ToolContext& context) {
  Tool* const today = tools_->Find(name);
  if (today == nullptr) return NotRun("there is no tool \"" + name + "\" now.");
  if (today->traits().only_asks) return today->Answered({.action = ToolAnswer::Action::kDecline});
  const ToolContext alone = WithoutPeople(context);
  switch (PlaceOf(name)) {
    case WorkspaceCopies::Place::kAnywhere:
      return today->Run(arguments, alone);
    case WorkspaceCopies::Place::kCopy: {
      WorkspaceCopy* const copy = Copy();
      if (copy == nullptr) return NotRun(failure_ ? failure_->message : "the run was stopped.");
      Tool* const tool = copy->Find(name);
      if (tool == nullptr) return NotRun("\"" + name + "\" cannot work in a copy of the workspace.");
      ToolOutcome outcome = tool->Run(ForCopy(*copy, arguments), alone);
      outcome.output = copy->FromCopy(std::move(outcome.output));
      return outcome;
    }
    case WorkspaceCopies::Place::kNowhere:
      break;
  }
  if (IsAllowed(name)) return today->Run(arguments, alone);
  return NotRun("\"" + name +
                "\" acts outside the copy of the workspace in which this run works. Go on without it, or with another "
                "call.");
}

}  // namespace reprise
