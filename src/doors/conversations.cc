#include "doors/conversations.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/try.h"
#include "crypto/digest.h"
#include "domain/codec.h"
#include "doors/shown_text.h"

namespace reprise {
namespace {

constexpr std::size_t kMostNoted = 4'096;
constexpr std::size_t kMostClients = 20'000;
constexpr std::size_t kMostUnknown = 1'000;          // each is written to disk
constexpr std::size_t kMostRead = 20;                // chats with the same first message, for an unnamed conversation
constexpr std::size_t kSureTurns = 4;                // turns that two people never share word for word
constexpr std::chrono::minutes kRepeatedWithin{10};  // as RepeatedRequests::kUnrepeatable

// A user's message without the white space that clients change: at its ends and at the ends of lines.
std::string WrittenText(std::string_view text) {
  std::string written;
  written.reserve(text.size());
  std::size_t kept = 0;  // up to the last character that is no white space, or the end of its line
  for (const char c : text) {
    if (c == '\n') written.resize(kept);
    if (c == '\r' || (written.empty() && (c == ' ' || c == '\t' || c == '\n'))) continue;
    written += c;
    if (c == '\n' || (c != ' ' && c != '\t')) kept = written.size();
  }
  const std::size_t last = written.find_last_not_of(" \t\n");
  return written.erase(last == std::string::npos ? 0 : last + 1);
}

std::string DigestBehind(const std::string& before, std::string_view user, std::size_t files,
                         std::string_view answer_digest) {
  constexpr std::size_t kFrom = 7, kDigits = 32;  // after "sha256:"
  return Sha256Digest({before, "\x1e", WrittenText(user), "\x1d", std::to_string(files), "\x1f", answer_digest})
      .substr(kFrom, kDigits);
}

// The beginning of a conversation's digests: other chats may have the same words.
std::string NameOf(const ForeignConversation& conversation) {
  return conversation.chat ? conversation.chat->str() : conversation.workspace;
}

// Digests of the conversation up to each turn.
std::vector<std::string> Digests(const ForeignConversation& conversation) {
  std::vector<std::string> digests;
  std::string last = NameOf(conversation);
  for (const ForeignTurn& turn : conversation.before) {
    digests.push_back(last = DigestBehind(last, turn.user, turn.files, SpokenDigest(turn.answer.value_or(""))));
  }
  return digests;
}

// A client's turn, prepared to be compared with ours.
struct ToldTurn {
  std::string_view message;  // as the client sent it
  std::string user, answer;
  bool has_answer = false, is_tool_result = false;
};

std::vector<ToldTurn> ToldTurns(const std::vector<ForeignTurn>& turns) {
  std::vector<ToldTurn> told;
  for (const ForeignTurn& turn : turns) {
    told.push_back({.message = turn.user,
                    .user = WrittenText(turn.user),
                    .answer = SpokenText(turn.answer.value_or("")),
                    .has_answer = turn.answer && !turn.answer->empty(),
                    .is_tool_result = turn.is_tool_result});
  }
  return told;
}

std::string SpokenIn(const Interaction& ours) {
  std::string shown;
  for (const AgentEvent& event : ours.events) {
    const auto* message = std::get_if<event::MessageText>(&event.payload);
    const auto* answer = std::get_if<event::Answer>(&event.payload);
    if (message || answer) shown.append(message ? message->content : answer->content) += '\n';
  }
  return SpokenText(shown);
}

// False for an interaction without a message, such as a change of the agenda by hand.
bool IsTurn(const Interaction& interaction) {
  return !interaction.user_message.empty() && interaction.user_message != kContinueMessage;
}

// The answer to one of our turns.
struct OurAnswer {
  std::string spoken;
  bool was_cut = false;  // the client may have seen more than we kept
};

// The interactions of a chat as a tree. Some are no turns (IsTurn).
class Tree {
 public:
  using Id = std::optional<InteractionId>;  // nullopt: before the first interaction

  explicit Tree(const History& history) : head_(history.summary.head) {
    for (const auto& entry : history.entries) {
      const Interaction& each = entry.interaction;
      children_[each.parent_id].push_back(&entry);
      if (!IsFinished(each.status)) head_ = each.id;  // it will become the head
    }
  }

  Id head() const { return head_; }

  // `id` and the interactions that follow it without a turn between.
  std::vector<Id> WithoutTurns(Id id) const {
    std::vector<Id> all{id};
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (const HistoryEntry* entry : ChildrenOf(all[i])) {
        if (!IsTurn(entry->interaction)) all.push_back(entry->interaction.id);
      }
    }
    return all;
  }
  bool EndsAt(Id id) const {
    const auto all = WithoutTurns(id);
    return std::find(all.begin(), all.end(), head_) != all.end();
  }
  // The turns after `id`: first those on the head's branch, then the newest ones.
  std::vector<const Interaction*> TurnsAfter(Id id) const {
    std::vector<const HistoryEntry*> turns;
    for (const Id& each : WithoutTurns(id)) {
      for (const HistoryEntry* entry : ChildrenOf(each)) {
        if (IsTurn(entry->interaction)) turns.push_back(entry);
      }
    }
    std::stable_sort(turns.begin(), turns.end(), IsLikelier);
    std::vector<const Interaction*> found;
    for (const HistoryEntry* entry : turns) found.push_back(&entry->interaction);
    return found;
  }
  // The answer to a turn, including its continuations.
  OurAnswer AnswerOf(const Interaction& turn) const {
    OurAnswer answer;
    for (const Interaction* each = &turn; each != nullptr;) {
      answer.spoken += SpokenIn(*each);
      answer.was_cut = each->status != InteractionStatus::kCompleted;
      const HistoryEntry* next = nullptr;
      for (const HistoryEntry* child : ChildrenOf(each->id)) {
        if (child->interaction.user_message != kContinueMessage) continue;
        if (next == nullptr || IsLikelier(child, next)) next = child;
      }
      each = next ? &next->interaction : nullptr;
    }
    return answer;
  }
  // The turns on the head's branch.
  std::vector<const Interaction*> Branch() const {
    std::map<InteractionId, const Interaction*> by_id;
    for (const auto& [parent, entries] : children_) {
      for (const HistoryEntry* entry : entries) by_id.emplace(entry->interaction.id, &entry->interaction);
    }
    std::vector<const Interaction*> branch;
    for (Id id = head_; id;) {
      const auto found = by_id.find(*id);
      if (found == by_id.end()) break;
      if (IsTurn(*found->second)) branch.push_back(found->second);
      id = found->second->parent_id;
    }
    std::reverse(branch.begin(), branch.end());
    return branch;
  }

 private:
  static bool IsLikelier(const HistoryEntry* a, const HistoryEntry* b) {
    if (a->superseded != b->superseded) return b->superseded;
    return b->interaction.id < a->interaction.id;
  }
  const std::vector<const HistoryEntry*>& ChildrenOf(Id id) const {
    static const std::vector<const HistoryEntry*> kNone;
    const auto found = children_.find(id);
    return found == children_.end() ? kNone : found->second;
  }

  Id head_;
  std::map<Id, std::vector<const HistoryEntry*>> children_;
};

// See the comment of Conversations.
bool IsSameAnswer(const Tree& tree, const std::string& told, const Interaction& ours) {
  if (told.empty()) return true;
  const OurAnswer answer = tree.AnswerOf(ours);
  return answer.spoken.starts_with(told) || (answer.was_cut && told.starts_with(answer.spoken));
}

bool IsSameTurn(const Tree& tree, const ToldTurn& told, const Interaction& ours) {
  return told.user == WrittenText(ours.user_message) && IsSameAnswer(tree, told.answer, ours);
}

struct Match {
  std::size_t turns = 0;
  Tree::Id at{};  // the interaction of the last one
};

// The longest path from `root` that the conversation follows; if there are several, the one to the head. Turns without
// an answer may have been joined with the next one (TakeUnknown). A result of a client's tool may stand before an
// answer that was given without it.
Match LongestMatch(const Tree& tree, Tree::Id root, const std::vector<ToldTurn>& turns) {
  struct Way {
    Tree::Id at{};
    const Interaction* last = nullptr;
  };
  std::vector<Way> ways{{root}};
  Match match;
  std::string open;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    ToldTurn turn = turns[i];
    if (!open.empty()) turn.user = WrittenText(open.append(turn.message));
    std::vector<Way> further;
    for (const Way& way : ways) {
      for (const Interaction* next : tree.TurnsAfter(way.at)) {
        if (IsSameTurn(tree, turn, *next)) further.push_back({next->id, next});
      }
    }
    if (further.empty() && turn.is_tool_result && turn.has_answer) {
      std::copy_if(ways.begin(), ways.end(), std::back_inserter(further),
                   [&](const Way& way) { return way.last != nullptr && IsSameAnswer(tree, turn.answer, *way.last); });
    }
    if (further.empty()) {
      if (turn.has_answer) break;
      if (open.empty()) open = turn.message;
      open += "\n\n";
      continue;
    }
    open.clear();
    ways = std::move(further);
    match.turns = i + 1;
  }
  const auto to_head = std::find_if(ways.begin(), ways.end(), [&](const Way& way) { return tree.EndsAt(way.at); });
  match.at = to_head == ways.end() ? ways.front().at : to_head->at;
  return match;
}

// True if the sender of this conversation knows the chat: all of its turns, its last answer, and no fewer files than it
// has.
bool IsKnown(const Tree& tree, const Match& match, const ForeignConversation& conversation,
             const std::vector<ToldTurn>& told) {
  const auto branch = tree.Branch();
  if (match.turns == 0 || branch.empty() || !tree.EndsAt(match.at) || branch.back()->id != match.at) return false;
  std::size_t had = 0, has = 0;
  for (const Interaction* each : branch) had += each->attachments.size();
  for (std::size_t i = 0; i < match.turns; ++i) has += conversation.before[i].files;
  if (has < had) return false;
  const std::string& answer = told[match.turns - 1].answer;
  const auto [spoken, was_cut] = tree.AnswerOf(*branch.back());
  if (answer.empty() || spoken.empty()) return false;
  return answer == spoken || (was_cut && (answer.starts_with(spoken) || spoken.starts_with(answer)));
}

// A client whose model has a short window omits the oldest turns. Then its turns are the newest ones of the chat,
// perhaps without the last, which is being asked again. One turn is too few, because it may also belong to an edited
// conversation.
std::optional<Match> MatchOfWindow(const Tree& tree, const std::vector<ToldTurn>& turns) {
  constexpr std::size_t kFewest = 2;
  const auto branch = tree.Branch();
  for (std::size_t left_out = 0; left_out < 2; ++left_out) {
    if (turns.size() < kFewest || turns.size() + left_out > branch.size()) break;
    const auto end = branch.end() - static_cast<std::ptrdiff_t>(left_out);
    const auto begin = end - static_cast<std::ptrdiff_t>(turns.size());
    const auto is_same = [&](const Interaction* ours, const ToldTurn& turn) { return IsSameTurn(tree, turn, *ours); };
    if (std::equal(begin, end, turns.begin(), is_same)) return Match{turns.size(), (*(end - 1))->id};
  }
  return std::nullopt;
}

// Turns without an answer are joined with the next message.
void TakeUnknown(ConversationPlan& plan, const ForeignConversation& conversation, std::size_t from) {
  std::string open;
  for (std::size_t i = from; i < conversation.before.size(); ++i) {
    const ForeignTurn& turn = conversation.before[i];
    open += turn.user;
    if (turn.answer && !turn.answer->empty()) {
      plan.unknown.push_back({std::exchange(open, {}), *turn.answer});
    } else {
      open += "\n\n";
    }
  }
  plan.message = open + conversation.message;
}

ConversationPlan PlanFrom(const ChatId& chat, const Tree& tree, const Match& match,
                          const ForeignConversation& conversation) {
  ConversationPlan plan{.chat = chat};
  TakeUnknown(plan, conversation, match.turns);
  plan.after = match.at;
  const auto next = tree.TurnsAfter(match.at);
  if (tree.EndsAt(match.at)) {
    plan.after = tree.head();
    return plan;
  }
  if (!plan.unknown.empty()) {
    if (!next.empty()) plan.replaces = next.front()->id;
    return plan;
  }
  if (next.empty()) {
    plan.moves_head = true;
    return plan;
  }
  const std::string message = WrittenText(plan.message);
  const auto same = std::find_if(next.begin(), next.end(),
                                 [&](const Interaction* each) { return WrittenText(each->user_message) == message; });
  plan.kind = same == next.end() ? ConversationPlan::Kind::kEdit : ConversationPlan::Kind::kRegenerate;
  plan.may_repeat = same != next.end();
  plan.interaction = same == next.end() ? next.front()->id : (*same)->id;
  return plan;
}

ConversationPlan NewChat(const ChatId& chat, const ForeignConversation& conversation) {
  ConversationPlan plan{.chat = chat};
  TakeUnknown(plan, conversation, 0);
  return plan;
}

ConversationPlan UnnamedChat(const ForeignConversation& conversation) {
  auto plan = NewChat(ChatId::Random(), conversation);
  plan.is_unnamed = plan.may_repeat = true;
  return plan;
}

}  // namespace

std::optional<ChatId> ChatNamed(std::string_view name) {
  if (name.empty() || name == "new" || name == "null" || name == "undefined" ||
      name.find("{{") != std::string_view::npos) {
    return std::nullopt;
  }
  if (auto chat = ChatId::Parse(name)) return *chat;
  constexpr std::size_t kFrom = 7, kDigits = 32;  // after "sha256:"
  return *ChatId::Parse("foreign_" + Sha256Digest({name}).substr(kFrom, kDigits));
}

std::string InstructionsFor(const ForeignConversation& conversation, std::string instructions) {
  if (conversation.opening.empty()) return instructions;
  if (!instructions.empty()) instructions += "\n\n";
  return instructions.append("Before the user wrote, they were shown this message of yours:\n") + conversation.opening;
}

std::optional<Conversations::End> Conversations::Noted(const std::string& digest) {
  const MutexLock lock(mutex_);
  const auto found = ends_.find(digest);
  return found == ends_.end() ? std::nullopt : std::optional(found->second);
}

// Handles the most common request, the next turn of a conversation that has continued here. Reads only the head of the
// chat and, for a short unnamed conversation, the titles of all chats.
Result<std::optional<ConversationPlan>> Conversations::FindNoted(const ForeignConversation& conversation,
                                                                 const std::vector<std::string>& digests) {
  if (digests.empty()) return std::nullopt;
  const auto end = Noted(digests.back());
  if (!end || end->is_ambiguous || engine_.RunningIn(end->at.chat_id)) return std::nullopt;
  const auto entry = engine_.GetListEntry(end->at.chat_id);
  if (!entry || IsElsewhere(*entry, conversation) || entry->is_running() ||
      entry->summary.head != end->at.interaction_id)
    return std::nullopt;
  if (!conversation.chat && digests.size() < kSureTurns && TRY(HasTwin(end->at.chat_id, entry->summary.title)))
    return std::nullopt;
  return ConversationPlan{.chat = end->at.chat_id, .message = conversation.message, .after = end->at.interaction_id};
}

bool Conversations::IsElsewhere(const ChatListEntry& entry, const ForeignConversation& conversation) const {
  if (conversation.chat || conversation.workspace.empty()) return false;
  if (!entry.summary.workspace.empty()) return entry.summary.workspace != conversation.workspace;
  const auto home = engine_.WorkspaceOf(std::nullopt);
  return !home || (*home)->path != conversation.workspace;
}

Result<bool> Conversations::HasTwin(const ChatId& chat, const std::string& title) {
  const auto chats = TRY(engine_.ListChats());
  return std::any_of(chats.begin(), chats.end(), [&](const ChatListEntry& entry) {
    return entry.summary.title == title && entry.summary.id != chat;
  });
}

Result<ConversationPlan> Conversations::Find(const ForeignConversation& conversation) {
  const auto digests = Digests(conversation);
  if (auto noted = TRY(FindNoted(conversation, digests))) return *std::move(noted);
  if (!conversation.chat) return FindUnnamed(conversation, digests);
  const auto entry = engine_.GetListEntry(*conversation.chat);
  if (!entry && entry.error().code == ErrorCode::kNotFound && !engine_.RunningIn(*conversation.chat)) {
    return NewChat(*conversation.chat, conversation);
  }
  if (!entry) return Fail(entry.error());
  return TRY(FindIn(*conversation.chat, conversation)).plan;
}

Result<Conversations::Found> Conversations::FindIn(const ChatId& chat, const ForeignConversation& conversation) {
  const auto history = TRY(engine_.GetHistory(chat, /*all_branches=*/true));
  const Tree tree(history);
  const auto told = ToldTurns(conversation.before);
  Match match = LongestMatch(tree, std::nullopt, told);
  if (match.turns == 0 && conversation.chat) match = MatchOfWindow(tree, told).value_or(match);
  if (!conversation.chat && !IsKnown(tree, match, conversation, told)) return Found{{.chat = chat}};
  Found found{PlanFrom(chat, tree, match, conversation), match.turns};
  // An abandoned run is cancelled; any other makes the chat busy.
  if (IsAbandoned(chat)) {
    found.plan.cancels = true;
    const auto running = engine_.RunningIn(chat);
    if (found.plan.kind == ConversationPlan::Kind::kStart && running && found.plan.after != running) {
      found.plan.cancels = false;
    }
  }
  found.is_busy = !found.plan.cancels && engine_.RunningIn(chat).has_value();
  return found;
}

// If the conversation knows several chats, the one with the most shared turns is meant. If two of them share as many,
// or the chat is busy with another client, it becomes a new chat.
Result<ConversationPlan> Conversations::FindUnnamed(const ForeignConversation& conversation,
                                                    const std::vector<std::string>& digests) {
  if (conversation.before.empty()) return UnnamedChat(conversation);
  std::optional<Found> best;
  bool is_ambiguous = false;
  std::set<ChatId> looked_at;
  const auto consider = [&](const ChatId& chat) {
    if (!looked_at.insert(chat).second) return;
    auto found = FindIn(chat, conversation);
    if (!found || found->turns == 0 || (best && found->turns < best->turns)) return;
    is_ambiguous = best && found->turns == best->turns;
    best = *std::move(found);
  };
  for (auto digest = digests.rbegin(); digest != digests.rend() && !best; ++digest) {
    const auto end = Noted(*digest);
    if (!end) continue;
    const auto entry = engine_.GetListEntry(end->at.chat_id);
    if (entry && !IsElsewhere(*entry, conversation)) consider(end->at.chat_id);
  }
  const bool is_sure = best && best->turns >= kSureTurns;
  if (!is_sure) {
    auto chats = TRY(engine_.ListChats());
    const std::string title = TitleFromMessage(conversation.before.front().user);
    std::erase_if(chats, [&](const ChatListEntry& entry) { return IsElsewhere(entry, conversation); });
    const auto read = [&](bool has_title) {
      std::size_t count = 0;
      for (const ChatListEntry& entry : chats) {
        if ((entry.summary.title == title) != has_title) continue;
        if (++count > kMostRead) return false;
        consider(entry.summary.id);
      }
      return true;
    };
    // A chat that was not read may match as well.
    if (!read(/*has_title=*/true) && (!best || best->turns < kSureTurns)) is_ambiguous = true;
    if (!best) read(/*has_title=*/false);  // the chat may be renamed, or its first message edited
  }
  return best && !is_ambiguous && !best->is_busy ? best->plan : UnnamedChat(conversation);
}

Result<ConversationPlan> Conversations::FindAfter(const InteractionRef& last, const ForeignConversation& conversation) {
  const auto history = TRY(engine_.GetHistory(last.chat_id, /*all_branches=*/true));
  const bool is_there = std::any_of(history.entries.begin(), history.entries.end(), [&](const HistoryEntry& entry) {
    return entry.interaction.id == last.interaction_id;
  });
  if (!is_there) return Fail(ErrorCode::kNotFound, "there is no such interaction");
  const Tree tree(history);
  const Match match = LongestMatch(tree, last.interaction_id, ToldTurns(conversation.before));
  auto plan = PlanFrom(last.chat_id, tree, match, conversation);
  plan.cancels = IsAbandoned(last.chat_id);
  return plan;
}

ConversationPlan Conversations::AtEndOf(const ChatId& chat, const ForeignConversation& conversation) {
  auto plan = NewChat(chat, conversation);
  if (const auto entry = engine_.GetListEntry(chat)) plan.after = entry->summary.head;
  plan.may_repeat = plan.after || engine_.RunningIn(chat);
  return plan;
}

Result<std::optional<EventSubscription>> Conversations::FollowRepeated(const ConversationPlan& plan,
                                                                       const ClientRequest& request) {
  if (!plan.may_repeat || !request.is_unnamed()) return std::nullopt;
  const auto look = [&](const ChatId& chat) -> Result<std::optional<EventSubscription>> {
    const auto running = engine_.RunningIn(chat);
    if (running && HasClient(chat, *running)) return std::nullopt;
    return engine_.FollowRepeated(chat, request);
  };
  if (!plan.is_unnamed) return look(plan.chat);
  // The repeated request would have begun a chat with this title.
  const std::string title = TitleFromMessage(plan.unknown.empty() ? plan.message : plan.unknown.front().user_message);
  const Timestamp oldest = Now() - kRepeatedWithin;
  for (const ChatListEntry& entry : TRY(engine_.ListChats())) {
    if (entry.status == InteractionStatus::kCompleted || entry.summary.title != title) continue;
    if (entry.summary.updated_at < oldest && !entry.is_running()) continue;
    if (auto before = TRY(look(entry.summary.id))) return before;
  }
  return std::nullopt;
}

Result<EventSubscription> Conversations::Begin(const ConversationPlan& plan, StartRequest request) {
  request.user_message = plan.message;
  if (plan.cancels) request.if_running = IfRunning::kCancel;
  switch (plan.kind) {
    case ConversationPlan::Kind::kEdit:
      return engine_.Edit(plan.chat, *plan.interaction, std::move(request));
    case ConversationPlan::Kind::kRegenerate:
      return engine_.Regenerate(plan.chat, *plan.interaction, std::move(request));
    case ConversationPlan::Kind::kStart:
      break;
  }
  if (!plan.unknown.empty() && request.request) {  // a repeated request must not add the turns again
    if (auto before = TRY(engine_.FollowRepeated(plan.chat, *request.request))) return *std::move(before);
  }
  std::optional<InteractionId> after = plan.after;
  if (plan.unknown.size() > kMostUnknown) {
    return Fail(Reason::kConversationTooLong, "no chat has the first " + std::to_string(plan.unknown.size()) +
                                                  " turns of this conversation, and only " +
                                                  std::to_string(kMostUnknown) +
                                                  " can be added at a time: import it, or send its newest turns");
  }
  if (!plan.unknown.empty()) {
    after = TRY(engine_.AddTurns(plan.chat, plan.after, plan.replaces, plan.unknown));
  } else if (plan.moves_head) {
    TRY(engine_.MoveHead(plan.chat, *plan.after));
  }
  request.follows.emplace(after);
  return engine_.Start(plan.chat, std::move(request));
}

void Conversations::NoteClient(const ChatId& chat, InteractionId interaction, std::weak_ptr<void> client) {
  const MutexLock lock(mutex_);
  if (clients_.size() >= kMostClients)
    std::erase_if(clients_, [](const auto& each) { return each.second.client.expired(); });
  clients_.insert_or_assign(chat, Client{interaction, std::move(client)});
}

bool Conversations::HasClient(const ChatId& chat, InteractionId interaction) {
  const MutexLock lock(mutex_);
  const auto found = clients_.find(chat);
  return found != clients_.end() && found->second.interaction == interaction && !found->second.client.expired();
}

bool Conversations::IsAbandoned(const ChatId& chat) {
  const auto running = engine_.RunningIn(chat);
  if (!running) return false;
  {
    const MutexLock lock(mutex_);
    const auto found = clients_.find(chat);
    if (found == clients_.end() || found->second.interaction != *running || !found->second.client.expired())
      return false;
  }
  const auto entry = engine_.GetListEntry(chat);
  return entry && entry->waiting == 0;
}

void Conversations::NoteEnd(const ForeignConversation& conversation, std::string_view spoken_digest,
                            const InteractionRef& end) {
  const auto before = Digests(conversation);
  std::string digest = DigestBehind(before.empty() ? NameOf(conversation) : before.back(), conversation.message,
                                    conversation.files, spoken_digest);
  const MutexLock lock(mutex_);
  clients_.erase(end.chat_id);
  const auto [noted, is_new] = ends_.try_emplace(digest, End{end});
  if (is_new) noted_.push_back(std::move(digest));
  noted->second.is_ambiguous = noted->second.is_ambiguous || noted->second.at.chat_id != end.chat_id;
  noted->second.at = end;
  while (noted_.size() > kMostNoted) ends_.erase(noted_.front()), noted_.pop_front();
}

}  // namespace reprise
