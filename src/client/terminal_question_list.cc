// The questions that are open together, as one list: those of the shown run, or what waits in every chat (/approvals).
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/terminal_text.h"
#include "base/text.h"
#include "client/answers.h"
#include "client/terminal_client.h"
#include "terminal/menu.h"
#include "terminal/wrapped_text.h"

namespace reprise {
namespace {

constexpr int kRowsOfOneListed = 5;  // of the terminal, for each question of the list
constexpr std::size_t kLeastListed = 2, kMostListed = 9;

}  // namespace

// The one that the person went on to, or the first. REQUIRES: one is open.
const PendingQuestion& TerminalClient::NextQuestion() {
  const auto chosen = std::ranges::find(Open(), chosen_, QuestionId);
  return chosen == Open().end() ? Open().front() : *chosen;
}

// Goes to the question above or below the asked one; to none if that needs no answer any more.
void TerminalClient::Choose(int by) {
  const auto count = static_cast<std::ptrdiff_t>(Open().size());
  const auto asked = std::ranges::find(Open(), asking_, QuestionId) - Open().begin();
  if (asked < count) chosen_ = QuestionId(Open()[static_cast<std::size_t>((asked + by + count) % count)]);
}

// What is said of the others; empty if there are none.
std::string TerminalClient::OthersThatWait() {
  if (asking_.empty() || Open().size() < 2) return {};
  const bool are_calls = std::ranges::all_of(
      Open(), [](const PendingQuestion& each) { return std::holds_alternative<PendingApproval>(each); });
  return Counted(Open().size() - 1, are_calls ? "more approval" : "more question") + " after this";
}

std::vector<std::string> TerminalClient::QuestionList() {
  std::vector<std::string> lines;
  const std::string others = OthersThatWait();
  if (others.empty()) return lines;
  std::vector<MenuItem> items;
  std::size_t asked = 0;
  for (const PendingQuestion& each : Open()) {
    if (QuestionId(each) == asking_) asked = items.size();
    const auto* const approval = std::get_if<PendingApproval>(&each);
    std::string details = approval != nullptr ? approval->request.agent : "";
    if (asks_from_list_) details = QuestionRun(each).chat_id.str();
    items.push_back({.name = AskedBy(each), .details = std::move(details), .line = {}});
  }
  const auto room = static_cast<std::size_t>(screen_.rows() / kRowsOfOneListed);
  const std::string keys = style_.Paint(Style::kDim, " · Up and Down choose");
  lines.push_back(CutToWidth(style_.Paint(Style::kWarning, others) + keys, screen_.columns()));
  std::vector<const MenuItem*> listed;
  for (const MenuItem& item : items) listed.push_back(&item);
  for (std::string& line :
       ItemLines(listed, asked, std::clamp(room, kLeastListed, kMostListed), screen_.columns(), style_)) {
    lines.push_back(std::move(line));
  }
  return lines;
}

// The question, with the calls of the same tool that are open now: after all were shown, one key answers them. Later
// ones were not shown.
std::vector<TerminalClient::OpenQuestion> TerminalClient::Together(const OpenQuestion& question) {
  std::vector<OpenQuestion> together{question};
  if (auto left = left_.extract(question.id())) together.front() = std::move(left.mapped());
  for (const PendingQuestion& each : Open()) {
    OpenQuestion open{.asked = each, .from_list = question.from_list};
    const bool is_other = open.is_approval() && open.id() != question.id();
    if (is_other && open.call().tool_name == question.call().tool_name) together.push_back(std::move(open));
  }
  return together;
}

// Allows all of them. If an answer fails, its question stays in `shown` and open.
void TerminalClient::AllowAll(std::vector<OpenQuestion>& shown) {
  std::erase_if(shown, [&](const OpenQuestion& each) {
    // What asks to leave the sandbox is answered by itself.
    if (!each.call().allows("approve") || !Give(each, AnswerTo(each.call(), /*approved=*/true))) return false;
    std::erase_if(Open(), [&](const PendingQuestion& open) { return QuestionId(open) == each.id(); });
    return true;
  });
}

// Cancels their runs, as a plain no does: the person's next message says what to do instead.
void TerminalClient::StopRunsOf(const std::vector<OpenQuestion>& questions) {
  std::set<std::string> runs;
  for (const OpenQuestion& each : questions) runs.insert(RunPath(QuestionRun(each.asked)));
  if (!asks_from_list_) static_cast<void>(TakeBack());
  std::erase_if(Open(), [&](const PendingQuestion& each) { return runs.contains(RunPath(QuestionRun(each))); });
  for (const std::string& run : runs) {
    if (const auto done = Call("POST", run + "/cancel"); !done) Complain(done.error().message);
  }
}

// Polls, because no stream reports on questions of other chats.
void TerminalClient::LookAtList() {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < kBetweenLooks) return;
  looked_ = now;
  const auto waiting = server_.Call("GET", "/approvals");
  if (!waiting) return;  // unknown
  const std::vector<PendingQuestion> open = QuestionsIn(*waiting);
  std::erase_if(waiting_, [&](const PendingQuestion& each) { return !Has(open, QuestionId(each)); });
  if (!Has(waiting_, asking_)) AnsweredElsewhere(asking_);
}

void TerminalClient::Approvals(const std::string& id) {
  if (running()) return Complain("this chat is running; what it asks is asked here");
  const auto waiting = Call("GET", "/approvals");
  if (!waiting) return Failed(waiting.error());
  waiting_ = QuestionsIn(*waiting);
  if (waiting_.empty()) return Tell("nothing waits for you");
  if (!id.empty() && id != "all") {
    std::erase_if(waiting_, [&](const PendingQuestion& each) { return QuestionId(each) != id; });
    if (waiting_.empty()) return Complain("nothing called " + id + " waits for you (/approvals asks what does)");
  }
  while (!waiting_.empty()) {
    if (!Ask({.asked = NextQuestion(), .from_list = true}) && !answered_elsewhere_) return waiting_.clear();
  }
  if (const auto chat = Call("GET", path_)) Follow(*chat);
}

}  // namespace reprise
