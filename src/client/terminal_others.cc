// What other clients do in the chat: their runs, and how they change the chat itself.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include "base/terminal_text.h"
#include "base/text.h"
#include "client/answers.h"
#include "client/server_access.h"
#include "client/terminal_client.h"

namespace reprise {
namespace {

constexpr std::chrono::seconds kFirstWatchAgain{1}, kLastWatchAgain{32};
constexpr std::size_t kShownWords = 50;  // of a turn that is named

// "turn 2 NAMED: its message", of the branch of GET /chats/ID; empty if it is not there.
std::string NameTurn(const Json& turns, const std::string& id, const std::string& named = {}) {
  std::size_t number = 0;
  for (const Json& turn : turns) {
    const std::string message = TextMember(turn, "user_message");
    if (!message.empty()) ++number;
    if (TextMember(turn, "id") != id) continue;
    return "turn " + std::to_string(number) + named + ": " + Shortened(VisibleLine(message), kShownWords);
  }
  return {};
}

bool HasTurn(const Json& turns, const std::string& id) {
  return std::ranges::any_of(turns, [&](const Json& turn) { return TextMember(turn, "id") == id; });
}

}  // namespace

void TerminalClient::Watch() {
  changes_ = server_.Stream("GET", "/events", Json(nullptr));
  between_watches_ = std::clamp(2 * between_watches_, kFirstWatchAgain, kLastWatchAgain);
}

// Shows runs that others begin in the chat, when no other run is shown.
void TerminalClient::HearOfOthers() {
  if (!changes_ && std::chrono::steady_clock::now() >= watched_from_) Watch();
  if (!changes_) return;
  changes_->Receive();
  while (const auto event = changes_->Next()) {
    if (event->name == "open") between_watches_ = {};
    const bool opens_again = event->name == "open" && std::exchange(catches_up_, false);
    if (opens_again && lost_) FollowAgain();
    bool differs = opens_again || event->name == "reset";
    if (TextMember(event->data, "chat_id") == chat_) {
      if (event->name == "interaction_started") started_.push_back(TextMember(event->data, "interaction_id"));
      const Json& chat = MemberOf(event->data, "chat");
      const bool has_other_mode = chat.is_object() && VisibleLine(TextMember(chat, "approval_mode")) != chats_mode_;
      const bool has_moved = chat.is_object() && TextMember(chat, "workspace") != named_folder_;
      differs = differs || has_other_mode || has_moved || event->name == "head_moved" || event->name == "chat_deleted";
    }
    if (differs) LookAgain();
  }
  if (changes_->ended()) {
    changes_.reset();
    catches_up_ = true;
    watched_from_ = std::chrono::steady_clock::now() + between_watches_;
  }
  if (!asks_from_list_) ShowNext();  // because a run has questions of its own
}

// The chat may have changed in any way. An event is no reason to believe so: this client may have made the change.
void TerminalClient::LookAgain() {
  const auto chat = server_.Call("GET", path_ + "?state=none");
  deleted_ = !chat && chat.error().Is(Reason::kNotFound) && !head_.empty();
  if (!chat) return;
  HearOfMode(*chat);
  HearOfFolder(*chat);
  HearOfHead(ListedIn(*chat, "interactions"));
}

// Whoever sets a chat's mode means all of its clients.
void TerminalClient::HearOfMode(const Json& chat) {
  const std::string before = chats_mode_;
  TakeMode(chat);
  if (chats_mode_ == before || !is_mode_chosen_) return;
  Tell("(another client has set the mode of this chat, so /mode " +
       std::string(kModeNames[static_cast<std::size_t>(allows_)]) + " holds no longer)");
  allows_ = Allows::kNothing;
  is_mode_chosen_ = false;
}

// Of a chat as the server shows it; null: it is new.
void TerminalClient::TakeFolder(const Json* chat) {
  elsewhere_ = chat != nullptr && !link_.WorksHere(*chat);
  named_folder_ = chat != nullptr ? TextMember(*chat, "workspace") : "";
  folder_ = elsewhere_ ? named_folder_ : link_.folder();
  if (elsewhere_ && folder_.empty()) folder_ = link_.workspace();
  about_.branch = VisibleLine(GitBranch(folder_));
}

void TerminalClient::HearOfFolder(const Json& chat) {
  if (TextMember(chat, "workspace") == named_folder_) return;
  const std::string before = std::exchange(
      about_.folder, StatusOf(link_, {.chat = chat_, .known = &chat, .model = model_, .home = home_}).folder);
  TakeFolder(&chat);
  if (about_.folder == before) return;
  Tell("(another client has moved this chat: it works in " + about_.folder + " now)");
  TellOfInstructions();
}

// Tells that the chat's end is not that of the screen any more. Turns that were added behind it are shown.
void TerminalClient::HearOfHead(const Json& turns) {
  std::string last;  // that is finished
  for (const Json& turn : turns) {
    const bool is_said = !TextMember(turn, "user_message").empty() && !IsRunning(TextMember(turn, "status"));
    if (is_said) last = TextMember(turn, "id");
    if (TextMember(turn, "id") == head_) last.clear();
  }
  const bool has_grown = head_.empty() || HasTurn(turns, head_);
  if (has_grown && !shown_.contains(last)) {  // or nothing is behind it
    for (const Json& turn : turns) started_.push_back(TextMember(turn, "id"));
    return;
  }
  if (last.empty()) return;  // the run that begins the chat anew tells so
  Tell("(another client has moved this chat: " + NameTurn(turns, last, " is the last one now") + ")");
  head_ = last;
  undone_.clear();
  for (const Json& turn : turns) {
    if (!IsRunning(TextMember(turn, "status"))) shown_.insert(TextMember(turn, "id"));
  }
}

// Tells that a run does not follow the last turn on the screen.
void TerminalClient::TellOfParent(const std::string& parent) {
  if (head_.empty() || parent == head_) return;
  const auto chat = server_.Call("GET", path_ + "?state=none");
  if (!chat) return;
  const Json& turns = ListedIn(*chat, "interactions");
  if (HasTurn(turns, head_)) return;  // between them are turns without a message
  const std::string named = NameTurn(turns, parent);
  if (named.empty() && !parent.empty()) return;  // it has been moved on
  Tell("(another client has moved this chat: this turn " + (named.empty() ? "is its first" : "follows " + named) + ")");
  undone_.clear();
}

void TerminalClient::HearOfBeginning(const event::InteractionStarted& begun) {
  const std::string& id = begun.interaction_id;
  shown_.insert(id);
  if (whose_ == Whose::kOwn) own_.insert(id);
  if (std::exchange(follows_, false)) TellOfParent(begun.parent_id.value_or(""));
  head_ = id;
}

// A message would begin another chat under the name of the one that was deleted.
void TerminalClient::LeaveDeleted() {
  Tell("(another client has deleted this chat: `reprise restore " + chat_ + "` brings it back, and /resume " + chat_ +
       " opens it then. This is a new chat:)");
  NewChat({});
}

}  // namespace reprise
