// What is drawn below the lines that stay: what runs, waits and is asked, the status line, and the menu.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/terminal_text.h"
#include "client/start_line.h"
#include "client/terminal_client.h"
#include "terminal/wrapped_text.h"

namespace reprise {
namespace {

constexpr std::size_t kMostMenuLines = 10;
constexpr int kRowsOfOneQueued = 5;  // of the terminal, for each queued message that is shown
constexpr std::chrono::milliseconds kBetweenDraws{33}, kStatusStep{250};
constexpr std::chrono::milliseconds kWaitingStep{1000};  // the same while a person is asked

// With two digits that count.
std::string ShortNumber(double number) {
  char text[32];
  std::snprintf(text, sizeof text, number >= 0.1 ? "%.2f" : "%.2g", number);
  return text;
}

}  // namespace

// What the chat has cost so far, its mode, and the branch, which a command may have changed.
void TerminalClient::LookAtStatus() {
  about_.branch = VisibleLine(GitBranch(folder_));
  if (const auto chat = server_.Call("GET", path_ + "?limit=1&state=none")) HearOfMode(*chat);
  if (!may_have_cost_) return;
  const auto usage = server_.Call("GET", path_ + "/usage");  // for this the server reads the whole chat
  const Json cost = usage ? MemberOf(MemberOf(*usage, "all"), "cost") : Json();
  may_have_cost_ = !usage || cost.is_number();
  about_.cost = cost.is_number() && cost.get<double>() > 0 ? "cost " + ShortNumber(cost.get<double>()) : "";
}

// Of a chat as the server lists or shows it.
void TerminalClient::TakeMode(const Json& chat) { chats_mode_ = VisibleLine(TextMember(chat, "approval_mode")); }

// The chat has the mode of an approved plan now.
void TerminalClient::UseModeOfPlan() {
  allows_ = Allows::kNothing;
  is_mode_chosen_ = false;
  LookAtStatus();
}

// The mode that holds for this client's messages if the chat has none of its own.
std::string TerminalClient::ModeOfMessages() const {
  const std::string& usual = link_.approval_mode();
  if (allows_ == Allows::kAuto) return std::string(ToString(ApprovalMode::kAuto));
  if (allows_ == Allows::kPlan) return std::string(ToString(ApprovalMode::kPlan));
  // "deny_all" holds in every chat.
  const bool asks = is_mode_chosen_ && usual != ToString(ApprovalMode::kDenyAll);
  return asks ? std::string(ToString(ApprovalMode::kAsk)) : usual;
}

// What the server allows unasked, or, if this client allows more, that.
std::string TerminalClient::ShownMode() const {
  const bool refuses = link_.approval_mode() == ToString(ApprovalMode::kDenyAll);  // in every chat
  const std::string of_server = chats_mode_.empty() || refuses ? VisibleLine(ModeOfMessages()) : chats_mode_;
  const bool asks_of_edits =
      of_server == ToString(ApprovalMode::kAsk) || of_server == ToString(ApprovalMode::kReadOnly);
  const bool allows_more = allows_ == Allows::kAll || (allows_ == Allows::kEdits && asks_of_edits);
  return allows_more ? kModeNames[static_cast<std::size_t>(allows_)] : of_server;
}

std::chrono::milliseconds TerminalClient::StepOfStatus() const {
  return stale_ ? kBetweenDraws : asking_.empty() ? kStatusStep : kWaitingStep;
}

void TerminalClient::UpdateScreen(bool at_once) {
  ShowState();
  const auto now = std::chrono::steady_clock::now();
  if (!at_once && running() && now - drawn_ < StepOfStatus()) return;
  drawn_ = now;
  stale_ = false;
  screen_.SetBelow(Below());
  screen_.Draw();
}

std::vector<std::string> TerminalClient::Below() {
  std::vector<std::string> below = view_.Below(!asking_.empty());
  const std::size_t most_queued = std::max(1, screen_.rows() / kRowsOfOneQueued);
  for (std::size_t i = 0; i < std::min(queued_.size(), most_queued); ++i) {
    const std::string line = WithoutTabs("queued: " + VisibleLine(queued_[i].text));
    below.push_back(style_.Paint(Style::kDim, CutToWidth(line, screen_.columns())));
  }
  if (queued_.size() > most_queued) {
    below.push_back(style_.Paint(Style::kDim, "queued: " + std::to_string(queued_.size() - most_queued) + " more"));
  }
  if (compact_)
    below.push_back(
        style_.Paint(Style::kDim, "with the next message, the model gets a summary in place of earlier ones"));
  if (!attachments_.empty()) {
    below.push_back(style_.Paint(Style::kDim, Counted(attachments_.size(), "file") + " with the next message"));
  }
  if (!aside_.empty()) {
    const std::string line = WithoutTabs("kept for later: " + VisibleLine(aside_));
    below.push_back(style_.Paint(Style::kDim, CutToWidth(line, screen_.columns())));
  }
  const std::vector<std::string> list = QuestionList();
  below.insert(below.end(), list.begin(), list.end());
  below.insert(below.end(), question_text_.begin(), question_text_.end());
  if (at_prompt_ && !menu_.is_open()) {
    Status shown = about_;
    if (!model_.empty()) shown.model = VisibleLine(model_);
    shown.mode = ShownMode();
    shown.context = view_.Context();
    below.push_back(StatusLine(shown, screen_.columns(), style_));
  }
  if (at_prompt_) {
    const std::size_t most = std::min(kMostMenuLines, static_cast<std::size_t>(screen_.rows()) / 2);
    const std::vector<std::string> menu = menu_.Lines(screen_.columns(), most, style_);
    below.insert(below.end(), menu.begin(), menu.end());
  }
  return below;
}

}  // namespace reprise
