#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/try.h"
#include "doors/ag_ui/run_input.h"
#include "doors/ag_ui/run_translator.h"
#include "doors/door.h"
#include "doors/shown_text.h"
#include "doors/translator.h"
#include "wire/error_response.h"
#include "wire/request_values.h"

namespace reprise::ag_ui {
namespace {

RunTranslator::Options OptionsOf(const RunInput& input) {
  return {.thread_id = input.thread_id,
          .run_id = input.run_id,
          .parent_run_id = input.parent_run_id,
          .is_current = input.is_current,
          .messages = input.messages};
}

// A stream that is complete.
Outcome Streamed(const std::string& frames) {
  auto log = std::make_shared<EventLog>();
  log->AppendFrames(frames);
  log->Close();
  return StreamReply{.log = std::move(log), .hold = nullptr, .forgets = true};
}

// AG-UI reports mistakes with interrupts in the stream.
Outcome Refuse(const RunInput& input, const std::string& code, const std::string& message) {
  return Streamed(RunTranslator::Refusal(OptionsOf(input), code, message));
}

Json StateOf(const Agenda& agenda) {
  Json tasks = Json::array();
  for (const Task& task : agenda.tasks) {
    tasks.push_back({{"id", task.id}, {"title", task.title}, {"status", task.status}});
  }
  return {{"tasks", std::move(tasks)}, {"plan", agenda.plan}};
}

// A question of an interaction, found in its events.
struct Asked {
  std::uint64_t seq = 0;
  bool is_approval = true, is_open = true;
};
std::map<std::string, Asked> AskedIn(const EventLog& log) {
  std::map<std::string, Asked> asked;
  EachEvent(log, [&](const EventFrame& event) {
    const bool asks_approval = event.name == event::ApprovalRequired::kName;
    const bool asks_input = event.name == event::InputRequired::kName;
    const bool settles = event.name == event::Approved::kName || event.name == event::Rejected::kName ||
                         event.name == event::InputReceived::kName;
    if (!asks_approval && !asks_input && !settles) return;
    const auto data = ParseJson(event.data, 2 * kMaxJsonDepth);
    if (!data) return;
    std::string id = TextMember(*data, "approval_id");
    if (id.empty()) id = TextMember(*data, "request_id");
    if (settles) {
      if (const auto found = asked.find(id); found != asked.end()) found->second.is_open = false;
    } else {
      asked[id] = {.seq = event.seq, .is_approval = asks_approval};
    }
  });
  return asked;
}

class AgUiRoute {
 public:
  explicit AgUiRoute(const Door& door) : door_(door) {}

  Result<Outcome> Run(const Request& request) const {
    RunInput input = TRY(ParseRunInput(request.body));
    const ChatId chat = *input.conversation.chat;
    if (!input.resume.empty()) return Resume(request, input, chat);
    if (!input.has_message) return Show(input, chat);
    if (!OpenIn(chat).empty()) {
      return Refuse(input, "interrupts_pending",
                    "this thread waits for answers: the input must have \"resume\" with an entry for each interrupt");
    }
    return Begin(request, std::move(input));
  }

 private:
  struct OpenQuestions {
    std::vector<PendingApproval> approvals;
    std::vector<PendingInput> inputs;
    bool empty() const { return approvals.empty() && inputs.empty(); }
    std::optional<InteractionId> interaction() const {
      if (!approvals.empty()) return approvals.front().interaction_id;
      if (!inputs.empty()) return inputs.front().interaction_id;
      return std::nullopt;
    }
  };
  OpenQuestions OpenIn(const ChatId& chat) const {
    OpenQuestions open{engine_.PendingApprovals(), engine_.PendingInputs()};
    std::erase_if(open.approvals, [&](const PendingApproval& each) { return each.chat_id != chat; });
    std::erase_if(open.inputs, [&](const PendingInput& each) { return each.chat_id != chat; });
    return open;
  }

  // --- a message
  Result<Outcome> Begin(const Request& request, RunInput input) const {
    auto foreign = TRY(ForeignRequestOf(request, /*is_whole=*/false));
    StartRequest start{.model = input.model,
                       .instructions = InstructionsFor(input.conversation, input.instructions),
                       .request = std::move(foreign),
                       .trace_parent = TraceParentOf(request)};
    TRY(door_.TakeHeaders(request, start, input.conversation));
    const auto find = [&] { return door_.conversations->Find(input.conversation); };
    auto started = TRY(door_.Begin(find, /*is_named=*/true, input.files, start));
    return Follow(std::move(input), std::move(started));
  }

  Result<Outcome> Follow(RunInput input, EventSubscription started) const {
    engine_.Listen(started);  // a repeated request gets the run that it began before
    const auto client = std::make_shared<char>();
    auto options = OptionsOf(input);
    if (auto agenda = engine_.GetAgenda(started.chat_id)) options.state = StateOf(*agenda);
    options.began = [conversations = door_.conversations,
                     weak = std::weak_ptr<void>(client)](const InteractionRef& run) {
      conversations->NoteClient(run.chat_id, run.interaction_id, weak);
    };
    options.ended = [conversations = door_.conversations, conversation = std::move(input.conversation)](
                        const InteractionRef& run, const std::string& answer) {
      conversations->NoteEnd(conversation, SpokenDigest(answer), run);
    };
    return Stream(std::move(started), std::move(options), client);
  }

  static RunTranslator::Options::Before UsedIn(const EventLog& log) {
    return {.last_seq = log.end().last_seq, .pending = log.pending_usage()};
  }

  static Outcome Stream(EventSubscription run, RunTranslator::Options options, std::shared_ptr<void> client = nullptr) {
    options.pending_usage = [log = run.log] { return log->pending_usage(); };
    HeaderList headers = EventsLocation(run);
    return StreamOf(Translate(std::move(run), std::make_unique<RunTranslator>(std::move(options))), std::move(headers),
                    std::move(client));
  }

  // --- answers
  Result<Outcome> Resume(const Request& request, const RunInput& input, const ChatId& chat) const {
    const auto unknown = [&](const std::string& id) {
      return Refuse(input, "unknown_interrupt", "there is no interrupt " + id + " in this thread");
    };
    if (const auto id = ContradictedInterrupt(input.resume)) {
      return Refuse(input, "contradicting_entries",
                    "\"resume\" has entries for the interrupt " + *id + " that contradict each other");
    }
    const OpenQuestions open = OpenIn(chat);
    std::optional<InteractionId> interaction = open.interaction();
    if (!interaction) {
      const auto entry = engine_.GetListEntry(chat);
      if (!entry || !entry->summary.head) return unknown(input.resume.front().interrupt_id);
      interaction = engine_.RunningIn(chat).value_or(*entry->summary.head);
    }
    auto attached = TRY(engine_.Attach(chat, *interaction, 0));
    auto asked = AskedIn(*attached.subscription.log);
    auto options = OptionsOf(input);
    options.interaction = interaction->str();
    options.before = UsedIn(*attached.subscription.log);
    bool answers_open = false;
    for (const ResumeEntry& entry : input.resume) {
      const auto found = asked.find(entry.interrupt_id);
      if (found == asked.end()) return unknown(entry.interrupt_id);
      options.after_seq = std::max(options.after_seq, found->second.seq);
      answers_open = answers_open || found->second.is_open;
      options.answered.insert(entry.interrupt_id);
    }
    for (const std::string& id : IdsOf(open)) {
      if (answers_open && !options.answered.contains(id)) {
        return Refuse(input, "resume_incomplete",
                      "\"resume\" has no entry for the interrupt " + id + ": all that wait are answered together");
      }
    }
    if (input.has_message && !TRY(Began(input, *interaction))) {
      return Refuse(
          input, "message_with_resume",
          "the input has a new message beside \"resume\", and nothing was answered: send \"resume\" without it, "
          "and the message when that run has ended");
    }
    // Listens before it answers, so that the run never counts as abandoned.
    engine_.Listen(attached.subscription);
    const InteractionRef within{chat, *interaction};
    if (auto given = Give(request, input, open, within); !given) {
      if (given.error().code != ErrorCode::kInvalidArgument) return Fail(std::move(given.error()));
      return Refuse(input, given.error().reason.empty() ? "invalid_payload" : given.error().reason,
                    given.error().message);
    }
    if (auto agenda = engine_.GetAgenda(chat)) options.state = StateOf(*agenda);
    return Stream(std::move(attached.subscription), std::move(options));
  }

  // True if the last message is the one that began this interaction.
  Result<bool> Began(const RunInput& input, const InteractionId& interaction) const {
    const auto plan = TRY(door_.conversations->Find(input.conversation));
    return plan.kind == ConversationPlan::Kind::kRegenerate && plan.interaction == interaction;
  }

  static std::vector<std::string> IdsOf(const OpenQuestions& open) {
    std::vector<std::string> ids;
    for (const PendingApproval& each : open.approvals) ids.push_back(each.request.approval_id);
    for (const PendingInput& each : open.inputs) ids.push_back(each.request.request_id);
    return ids;
  }

  // Reads all payloads before it gives the first answer. A question that was answered before, here or elsewhere, stays
  // as it is, because the first answer counts.
  Result<void> Give(const Request& request, const RunInput& input, const OpenQuestions& open,
                    const InteractionRef& within) const {
    std::vector<std::pair<std::string, ApprovalAnswer>> approvals;
    std::vector<std::pair<std::string, InputAnswer>> inputs;
    for (const ResumeEntry& entry : input.resume) {
      for (const PendingApproval& each : open.approvals) {
        if (each.request.approval_id != entry.interrupt_id) continue;
        auto answer = TRY(ApprovalOf(entry));
        answer.answered_by = request.principal.user;
        approvals.emplace_back(entry.interrupt_id, std::move(answer));
      }
      for (const PendingInput& each : open.inputs) {
        if (each.request.request_id != entry.interrupt_id) continue;
        auto answer = TRY(InputOf(entry, each.request));
        answer.answered_by = request.principal.user;
        inputs.emplace_back(entry.interrupt_id, std::move(answer));
      }
    }
    for (auto& [id, answer] : inputs) TRY(UnlessSettled(engine_.AnswerInput(id, std::move(answer), within)));
    for (auto& [id, answer] : approvals) TRY(UnlessSettled(engine_.AnswerApproval(id, std::move(answer), within)));
    return {};
  }

  // --- the current state, for a client that is new or returns
  Result<Outcome> Show(const RunInput& input, const ChatId& chat) const {
    auto options = OptionsOf(input);
    options.shown_messages = Json::array();
    options.state = StateOf({});
    const auto running = engine_.RunningIn(chat);
    const auto history = engine_.GetHistory(chat, /*all_branches=*/false);
    if (!history && (!IsNotFound(history.error()) || running)) return Fail(history.error());
    if (history) {
      for (const HistoryEntry& entry : history->entries) {
        const Interaction& each = entry.interaction;
        if (!each.user_message.empty()) {
          options.shown_messages->push_back(
              {{"id", each.id.str() + "-user"}, {"role", "user"}, {"content", each.user_message}});
        }
        if (running == each.id) break;
        const auto told = TRY(engine_.Attach(chat, each.id, 0));
        RunTranslator::Options silent;
        silent.after_seq = ~std::uint64_t{0};
        RunTranslator translator(std::move(silent));
        std::string nothing;
        EachEvent(*told.subscription.log, [&](const EventFrame& event) { translator.Take(event, nothing); });
        for (const Json& message : translator.messages()) options.shown_messages->push_back(message);
      }
      KeepMessagesOf(input.messages, *options.shown_messages);
      if (auto agenda = engine_.GetAgenda(chat)) options.state = StateOf(*agenda);
    }
    // Tools of the client are not called here, so such a result has no meaning.
    const Json last = input.messages.empty() ? Json() : input.messages.back();
    const auto is_its = [&](const Json& shown) {
      return MemberOf(shown, "role") == "tool" && MemberOf(shown, "toolCallId") == MemberOf(last, "toolCallId");
    };
    if (!running && TextMember(last, "role") == "tool" && std::ranges::none_of(*options.shown_messages, is_its)) {
      return Refuse(input, "unknown_tool_call",
                    "the input ends with the result of a call that this thread has not made: tools of the client are "
                    "not called here");
    }
    if (running) {
      auto attached = TRY(engine_.Attach(chat, *running, 0));
      options.interaction = running->str();
      options.before = UsedIn(*attached.subscription.log);
      engine_.Listen(attached.subscription);
      return Stream(std::move(attached.subscription), std::move(options));
    }
    RunTranslator translator(std::move(options));
    std::string out;
    translator.EndWithNothing(out);
    return Streamed(out);
  }

  const Door door_;
  Engine& engine_ = door_.engine;
};

}  // namespace

void AddRoutes(Router& router, const Door& door) {
  router.Add(
      "POST", "/agui", [route = AgUiRoute(door)](const Request& request) { return route.Run(request); }, Lane::kWork,
      BodyKind::kConversation);
}

}  // namespace reprise::ag_ui
