#include "fault/check.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/history.h"
#include "support/await_log.h"

namespace reprise {
namespace {

// Fails a check; caught in BrokenPromise.
struct Broken {
  std::string what;
};
void Expect(bool kept, const std::string& what) {
  if (!kept) throw Broken{what};
}

bool WaitsForAnswer(const Engine& engine, const std::string& approval_id) {
  const auto waiting = engine.PendingApprovals();
  return std::any_of(waiting.begin(), waiting.end(),
                     [&](const PendingApproval& each) { return each.request.approval_id == approval_id; });
}

bool IsWellFormed(const Interaction& interaction) {
  if (!interaction.final_agent_state) return !IsFinished(interaction.status);
  Messages messages = interaction.final_agent_state->messages;
  return CompleteToolCalls(messages, "") == 0;
}

bool Has(const Interaction& stored, const AgentEvent& event) {
  return std::find(stored.events.begin(), stored.events.end(), event) != stored.events.end();
}

// A save whose last step fails is reported as failed, although the interaction may have reached the disk, without that
// report.
bool WasSavedAfterAll(const Interaction& stored, const SeenEvents& seen) {
  const auto report = std::find_if(seen.frames.rbegin(), seen.frames.rend(),
                                   [](const SeenEvents::Frame& frame) { return frame.name == event::Failed::kName; });
  return seen.ended == InteractionStatus::kFailed && report != seen.frames.rend() && !Has(stored, *report->event);
}

std::string SaidIn(const Interaction& interaction) {
  std::string said;
  for (const AgentEvent& event : interaction.events) {
    if (const auto* message = std::get_if<event::MessageText>(&event.payload)) said += message->content;
    if (const auto* answer = std::get_if<event::Answer>(&event.payload)) said += answer->content;
  }
  return said;
}

class Checker {
 public:
  Checker(FileSystem& disk, const Promises& promises, const CheckOptions& options)
      : disk_(disk), promises_(promises), options_(options), life_(disk, nullptr, options.life) {}

  void Check() {
    Expect(!life_.not_opened(), "the store does not open: " + life_.not_opened().value_or(Error{}).message);
    Expect(life_.recovered().left == 0, "an interrupted interaction was left behind");
    Expect(life_.errors().empty(), "bringing home failed");
    for (const auto& [id, chat] : promises_.chats) CheckChat(id, chat);
    for (const auto& [place, run] : promises_.runs) CheckRun(place.first, place.second, run);
    if (options_.go_on) GoOn();
  }

 private:
  void CheckChat(const ChatId& id, const Promises::Chat& promised) {
    const std::string name = id.str() + ": ";
    auto chat = life_.store().LoadChat(id);
    if (promised.deleting && !chat) {
      Expect(chat.error().code == ErrorCode::kNotFound, name + chat.error().message);
      Expect(IsInTrash(id), name + "deleted and not in the trash");
      return;
    }
    Expect(!promised.deleted, name + "was deleted and is back");
    if (!chat && chat.error().code == ErrorCode::kNotFound) {
      Expect(!promised.exists, name + "is gone");
      return;
    }
    Expect(chat.has_value(), name + (chat ? "" : chat.error().message));
    Expect(chat->damaged.empty(), name + "damaged: " + (chat->damaged.empty() ? "" : chat->damaged[0].error.message));
    for (const Interaction& interaction : chat->interactions) {
      Expect(IsWellFormed(interaction), name + interaction.id.str() + " is not well-formed");
    }
    if (promised.exists && !promised.moving && !promised.heads.empty()) {
      Expect(promised.heads.contains(chat->summary.head), name + "its head is elsewhere");
    }
    if (promised.exists && !promised.titles.empty()) {
      Expect(promised.titles.contains(chat->summary.title), name + "its title is \"" + chat->summary.title + "\"");
    }
  }

  bool IsInTrash(const ChatId& id) {
    return IsIn(disk_, kDataFolder + "/.trash", id) || !WasFinished(id) ||
           (options_.life.fallback && IsIn(*options_.life.fallback, kFallbackFolder + "/.trash", id));
  }

  static bool IsIn(FileSystem& disk, const std::string& trash, const ChatId& id) {
    const auto entries = disk.ListDirectory(trash);
    return entries && std::any_of(entries->begin(), entries->end(), [&](const DirectoryEntry& entry) {
             if (!entry.name.starts_with(id.str() + ".")) return false;
             const auto files = disk.ListDirectory(trash + "/" + entry.name + "/interactions");
             return files && !files->empty();
           });
  }

  bool WasFinished(const ChatId& id) const {
    return std::any_of(promises_.runs.begin(), promises_.runs.end(),
                       [&](const auto& each) { return each.first.first == id && each.second.ended; });
  }

  void CheckRun(const ChatId& chat, InteractionId id, const Promises::Run& run) {
    const auto found = promises_.chats.find(chat);
    if (!run.seen || (found != promises_.chats.end() && found->second.deleting)) return;
    const std::size_t count = options_.process_only ? run.seen->frames.size() : run.seen->acted_upon;
    if (count == 0) return;
    const std::string name = chat.str() + "/" + id.str() + ": ";
    const auto stored = life_.engine().GetInteraction(chat, id);
    Expect(stored.has_value(), name + "lost: " + (stored ? "" : stored.error().message));
    CheckEvents(name, *stored, *run.seen, count);
    CheckEnd(name, *stored, run, count);
    for (const std::string& call : run.ran) CheckRan(name, *stored, call);
  }

  static void CheckEvents(const std::string& name, const Interaction& stored, const SeenEvents& seen,
                          std::size_t count) {
    std::uint64_t last = 1;
    for (const AgentEvent& event : stored.events) {
      Expect(event.seq > last, name + "its events are not in order");
      last = event.seq;
    }
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
      const SeenEvents::Frame& frame = seen.frames[i];
      text += frame.text;
      if (!frame.event || (WasSavedAfterAll(stored, seen) && frame.name == event::Failed::kName)) continue;
      Expect(Has(stored, *frame.event), name + "lost its event " + frame.name + " " + std::to_string(frame.event->seq));
    }
    // The deltas of a running interaction are in the log only, where CheckEnd looks.
    if (IsFinished(stored.status)) Expect(SaidIn(stored).starts_with(text), name + "lost what the model said");
  }

  void CheckEnd(const std::string& name, const Interaction& stored, const Promises::Run& run, std::size_t count) {
    const SeenEvents& seen = *run.seen;
    const auto& last = seen.frames[count - 1];
    if (run.ended && !WasSavedAfterAll(stored, seen)) Expect(stored.status == *run.ended, name + "ended otherwise");
    const auto* asked = last.event ? std::get_if<event::ApprovalRequired>(&last.event->payload) : nullptr;
    if (asked && !run.answered && !run.ended && count == seen.frames.size()) {
      Expect(WaitsForAnswer(life_.engine(), asked->approval_id), name + "does not wait for its answer any more");
    }
    if (IsFinished(stored.status)) {
      Expect(IsWellFormed(stored), name + "is not well-formed");
      return;
    }
    const auto attached = life_.engine().Attach(stored.chat_id, stored.id, 0);
    Expect(attached.has_value(), name + "cannot be listened to");
    const std::string shown = ReadLog(*attached->subscription.log);
    // An answered run continues by itself and may have ended since `stored` was read. Ended runs keep no deltas.
    const auto now = life_.engine().GetInteraction(stored.chat_id, stored.id);
    Expect(now.has_value(), name + "lost: " + (now ? "" : now.error().message));
    if (IsFinished(now->status)) return;
    Expect(shown.starts_with(seen.bytes.substr(0, last.end)), name + "shows other bytes than before");
  }

  void CheckRan(const std::string& name, const Interaction& stored, const std::string& call) {
    const bool recorded = std::any_of(stored.events.begin(), stored.events.end(), [&](const AgentEvent& event) {
      const auto* started = std::get_if<event::ToolCallStarted>(&event.payload);
      return started && started->id == call;
    });
    Expect(recorded, name + "a tool ran that nobody knows of");
    const auto waiting = life_.engine().PendingApprovals();
    Expect(std::none_of(waiting.begin(), waiting.end(),
                        [&](const PendingApproval& each) {
                          return each.chat_id == stored.chat_id && each.interaction_id == stored.id &&
                                 each.request.call_id == call;
                        }),
           name + "a tool that ran would run again");
  }

  // Waits for a run that was answered just before its process ended, because it continues by itself.
  void AwaitRunOf(const ChatId& chat) {
    const auto history = life_.engine().GetHistory(chat, /*all_branches=*/true);
    if (!history || history->entries.empty()) return;
    const Interaction& last = history->entries.back().interaction;
    if (IsFinished(last.status)) return;
    const auto attached = life_.engine().Attach(chat, last.id, 0);
    if (attached) AwaitEnd(attached->subscription.log);
  }

  // Waits for the runs that continue by themselves first, because all chats share the model's script and such a run
  // would take an answer meant for another chat.
  void GoOn() {
    std::vector<ChatId> idle;
    for (const auto& [id, chat] : promises_.chats) {
      if (chat.deleting || IsAsking(id)) continue;
      AwaitRunOf(id);
      idle.push_back(id);
    }
    for (const ChatId& id : idle) {
      life_.ThenAnswer({"on"});
      const auto log = life_.Start(id, "and now?");
      Expect(log != nullptr, id.str() + ": does not go on");
      const SeenEvents seen(AwaitEnd(log));
      Expect(seen.ended == InteractionStatus::kCompleted,
             id.str() + ": the next turn fails" + (seen.errors.empty() ? "" : ": " + seen.errors.back()));
    }
  }

  bool IsAsking(const ChatId& chat) {
    const auto waiting = life_.engine().PendingApprovals();
    return std::any_of(waiting.begin(), waiting.end(),
                       [&](const PendingApproval& each) { return each.chat_id == chat; });
  }

  FileSystem& disk_;
  const Promises& promises_;
  const CheckOptions& options_;
  Life life_;
};

}  // namespace

std::string BrokenPromise(FileSystem& disk, const Promises& promises, const CheckOptions& options) {
  try {
    Checker(disk, promises, options).Check();
    return "";
  } catch (const Broken& broken) {
    return broken.what;
  }
}

}  // namespace reprise
