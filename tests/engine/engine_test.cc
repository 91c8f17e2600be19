#include "reprise/engine.h"

#include <sys/resource.h>
#include <unistd.h>

#include <condition_variable>
#include <fstream>
#include <future>
#include <mutex>
#include <semaphore>
#include <stop_token>
#include <system_error>
#include <thread>

#include "store/local_run_store.h"
#include "store/memory_interaction_store.h"
#include "support/await_log.h"
#include "support/fake_tools.h"
#include "support/scripted_model.h"
#include "support/test.h"

namespace reprise::engine_test {

using namespace std::chrono_literals;

namespace {

const ChatId kChat = *ChatId::Parse("c");
InteractionId Id(std::uint32_t number) { return InteractionId::FromNumber(number); }

// A store whose saves can be made to fail or to hang until they are let go.
class TroubledStore : public InteractionStore {
 public:
  Result<void> SaveInteraction(const Interaction& interaction) override {
    std::unique_lock lock(mutex_);
    if (fail) return Fail(ErrorCode::kStorageFull, "the disk is full");
    changed_.wait(lock, [this] { return !hang; });
    return store_.SaveInteraction(interaction);
  }
  void LetGo() {
    const std::lock_guard lock(mutex_);
    hang = hang_record = hang_begin = false;
    changed_.notify_all();
  }
  bool fail = false, hang = false;

  Result<ChatSummary> CreateChat(const ChatId& c, const ChatSettings& settings) override {
    return store_.CreateChat(c, settings);
  }
  Result<InteractionId> ReserveInteraction(const ChatId& c) override { return store_.ReserveInteraction(c); }
  Result<std::unique_ptr<Journal>> BeginJournal(const ChatId&, InteractionId,
                                                const std::vector<std::string>&) override {
    std::unique_lock lock(mutex_);
    begins_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !hang_begin; });
    return std::make_unique<TroubledJournal>(*this);
  }
  bool hang_begin = false;
  void AwaitBegin() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return begins_; });
  }
  // Of the journals, for records with an answer.
  bool fail_record = false, hang_record = false;
  void AwaitRecord() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return record_hangs_; });
  }
  Result<std::vector<InteractionRef>> ListUnfinished() override { return {}; }
  Result<JournalContent> ReadJournal(const ChatId& c, InteractionId i) override { return store_.ReadJournal(c, i); }
  Result<void> DropJournal(const ChatId& c, InteractionId i) override { return store_.DropJournal(c, i); }
  QueueStore& queues() override { return store_.queues(); }
  Result<Interaction> LoadInteraction(const ChatId& c, InteractionId i) override {
    return store_.LoadInteraction(c, i);
  }
  Result<Chat> LoadChat(const ChatId& c) override { return store_.LoadChat(c); }
  Result<ChatSummary> LoadSummary(const ChatId& c) override { return store_.LoadSummary(c); }
  Result<std::optional<AgentState>> LoadFinalState(const ChatId& c, InteractionId i) override {
    return store_.LoadFinalState(c, i);
  }
  Result<std::optional<AgentState>> LoadPreviousState(const ChatId& c, InteractionId i) override {
    return store_.LoadPreviousState(c, i);
  }
  Result<std::vector<ChatSummary>> ListChats() override { return store_.ListChats(); }
  Result<ChatPage> ListPage(const std::optional<ChatPlace>& after, std::size_t limit,
                            const ChatFilter& wanted) override {
    return store_.ListPage(after, limit, wanted);
  }
  Result<ChatSummary> ChangeChat(const ChatId& c, const ChatSettings& settings) override {
    return store_.ChangeChat(c, settings);
  }
  Result<ChatSummary> MoveHead(const ChatId& c, InteractionId i) override { return store_.MoveHead(c, i); }
  Result<ChatSummary> ForkChat(const ChatId& source, InteractionId last, const ChatId& c,
                               const std::optional<std::string>& title) override {
    return store_.ForkChat(source, last, c, title);
  }
  bool fail_delete = false;
  Result<void> DeleteChat(const ChatId& c) override {
    return fail_delete ? Fail(ErrorCode::kIo, "the disk fails") : store_.DeleteChat(c);
  }

 private:
  class TroubledJournal : public Journal {
   public:
    explicit TroubledJournal(TroubledStore& store) : store_(store) {}
    Result<void> Append(std::string_view record, Reach) override {
      const auto has = [&](std::string_view text) { return record.find(text) != std::string_view::npos; };
      if (!has("approved") && !has("rejected\n")) return {};
      std::unique_lock lock(store_.mutex_);
      if (store_.fail_record) return Fail(ErrorCode::kStorageFull, "the disk is full");
      store_.record_hangs_ = true;
      store_.changed_.notify_all();
      store_.changed_.wait(lock, [this] { return !store_.hang_record; });
      return {};
    }

   private:
    TroubledStore& store_;
  };
  bool record_hangs_ = false, begins_ = false;
  MemoryInteractionStore store_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

struct Fixture {
  Fixture() {
    tools.Add("danger", true, [](std::string_view, const ToolContext&) { return ToolOutcome{"boom", false}; });
    options.disconnect_grace = 1ms;
  }
  Engine& engine() {
    if (!engine_) engine_.emplace(Engine::Parts{store, runs, {&fallback}, directory, tools}, options);
    return *engine_;
  }
  Result<EventSubscription> Start(const std::string& text, OnDisconnect policy = OnDisconnect::kCancel) {
    return engine().Start(kChat, {.user_message = text, .model = {}, .on_disconnect = policy});
  }
  // Starts, waits for the end, returns the stream's text.
  std::string Turn(const std::string& text) { return AwaitEnd(Start(text)->log); }

  TroubledStore store;
  MemoryInteractionStore fallback;
  LocalRunStore runs{store};
  ScriptedModel model;
  ScriptedDirectory directory{model};
  FakeTools tools;
  EngineOptions options;

 private:
  std::optional<Engine> engine_;
};

std::vector<std::string> Contents(const Messages& messages) {
  std::vector<std::string> contents;
  for (const Message& message : messages) contents.push_back(message.content.value_or("(null)"));
  return contents;
}
using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("Engine: a turn streams its events, is stored, and the next one continues from its state", "[engine]") {
  Fixture f;
  f.model.ThenAnswer("first");
  f.model.ThenAnswer("second");
  const std::string stream = f.Turn("hi");
  CHECK(stream.find("event: interaction_started\n") == std::string("id: 1\n").size());
  CHECK(stream.find("\"status\":\"COMPLETED\"") != std::string::npos);
  f.Turn("again");
  CHECK(Contents(f.model.requests().at(1)) == Texts{"hi", "first", "again"});
  const auto stored = f.store.LoadInteraction(kChat, Id(2));
  REQUIRE(stored);
  CHECK(stored->parent_id == Id(1));
  CHECK(stored->status == InteractionStatus::kCompleted);
}

TEST_CASE("Engine: who sees interaction_complete finds the checkpoint stored and the chat free", "[engine]") {
  Fixture f;
  for (int i = 0; i < 50; ++i) f.model.ThenAnswer("a");
  for (std::uint32_t i = 1; i <= 50; ++i) {
    const auto started = f.Start("x");
    REQUIRE(started);
    AwaitEvent(started->log, "interaction_complete");
    CHECK(f.store.LoadInteraction(kChat, Id(i)));
  }
}

TEST_CASE("Engine: one run per chat, the refusal names it", "[engine]") {
  Fixture f;
  f.model.ThenHang("...");
  const auto started = f.Start("x");
  f.model.AwaitHanging();
  const auto second = f.Start("y");
  REQUIRE_FALSE(second);
  CHECK(second.error().reason == "busy");
  CHECK(second.error().details_json == R"({"interaction_id":"int_001"})");
  CHECK(f.engine().Edit(kChat, Id(1), {.user_message = "z"}).error().reason == "busy");
  CHECK(f.engine().MoveHead(kChat, Id(1)).error().reason == "busy");
  CHECK(f.engine().Start(*ChatId::Parse("other"), {.user_message = "z", .model = "nope"}).error().reason ==
        "unknown_model");
}

TEST_CASE("Engine: the preview of an edit counts the run that is under way", "[engine]") {
  Fixture f;
  f.model.ThenAnswer("a");
  f.Turn("x");
  f.model.ThenHang("half");
  const auto running = f.Start("y");
  f.model.AwaitHanging();
  const auto preview = f.engine().PreviewEdit(kChat, Id(1));
  REQUIRE(preview);
  CHECK(preview->superseded == std::vector{Id(1), Id(2)});
  CHECK(f.engine().PreviewEdit(kChat, Id(2)).error().reason == "busy");
}

TEST_CASE("Engine: cancelling a silent model stores what was said", "[engine]") {
  Fixture f;
  f.model.ThenHang("half");
  const auto started = f.Start("x");
  f.model.AwaitHanging();
  CHECK(f.engine().GetInteraction(kChat, Id(1))->status == InteractionStatus::kRunning);
  CHECK(f.engine().Cancel(kChat, Id(1))->was_running);
  const std::string stream = AwaitEnd(started->log);
  CHECK(stream.find("\"reason\":\"requested\"") != std::string::npos);
  const auto stored = f.store.LoadInteraction(kChat, Id(1));
  REQUIRE(stored);
  CHECK(stored->status == InteractionStatus::kCancelled);
  CHECK(Contents(stored->final_agent_state->messages) == Texts{"x", "half"});
  const auto again = f.engine().Cancel(kChat, Id(1));
  REQUIRE(again);
  CHECK_FALSE(again->was_running);
  CHECK(again->status == InteractionStatus::kCancelled);
  CHECK(f.engine().Cancel(kChat, Id(9)).error().code == ErrorCode::kNotFound);
}

TEST_CASE("Engine: an approval is listed, answered once, and a late answer is told so", "[engine]") {
  Fixture f;
  f.model.ThenCall({{"1", "danger", "{}"}});
  f.model.ThenAnswer("done");
  const auto started = f.Start("x");
  AwaitEvent(started->log, "approval_required");
  const auto waiting = f.engine().PendingApprovals();
  REQUIRE(waiting.size() == 1);
  CHECK(f.engine().GetInteraction(kChat, Id(1))->status == InteractionStatus::kWaitingApproval);
  const std::string id = waiting[0].request.approval_id;
  const Engine::InteractionRef ref{kChat, Id(1)};
  CHECK(
      f.engine()
          .AnswerApproval(
              id, {.approved = true, .arguments = {}, .feedback = {}, .scope = {}, .arguments_digest = "sha256:0"}, ref)
          .error()
          .reason == "digest_mismatch");
  CHECK(f.engine().AnswerApproval(id, {.approved = true, .arguments = "[]"}, ref).error().code ==
        ErrorCode::kInvalidArgument);
  CHECK(f.engine().AnswerApproval(id, {.approved = true}, ref));
  AwaitEnd(started->log);
  CHECK(f.engine().AnswerApproval(id, {.approved = true}, ref).error().reason == "already_processed");
  CHECK(f.engine().AnswerApproval("approval_unknown", {.approved = true}, ref).error().code == ErrorCode::kNotFound);
  CHECK(f.engine().PendingApprovals().empty());
}

TEST_CASE("Engine: what a waiting call would change is its tool's word on the arguments that were shown", "[engine]") {
  Fixture f;
  ToolTraits traits;
  traits.spec = {"change", "a fake", R"({"type":"object"})"};
  traits.read_only = false;
  traits.requires_approval = true;
  int ran = 0, asked = 0;
  f.tools
      .Add(traits,
           [&](std::string_view, const ToolContext&) {
             ++ran;
             return ToolOutcome{"changed", false};
           })
      .preview = [&](std::string_view arguments) -> Result<FileChange> {
    ++asked;
    return FileChange{.path = "notes", .before = std::nullopt, .after = std::string(arguments)};
  };
  f.model.ThenCall({{"1", "change", R"({"a": 1})"}, {"2", "danger", "{}"}});
  f.model.ThenAnswer("done");
  const auto started = f.Start("x");
  AwaitEvent(started->log, "approval_required");
  std::vector<std::string> ids;
  for (const PendingApproval& each : f.engine().PendingApprovals()) ids.push_back(each.request.approval_id);
  REQUIRE(ids.size() == 2);  // both are asked about in one step
  CHECK(asked == 0);         // nobody wanted to see it yet
  const auto change = f.engine().PreviewChange(ids[0]);
  REQUIRE(change);
  CHECK(change->path == "notes");
  CHECK(change->after == R"({"a": 1})");
  CHECK(ran == 0);
  CHECK(f.engine().PreviewChange(ids[1]).error().reason == "no_change_to_show");
  CHECK(f.engine().PreviewChange("approval_unknown").error().code == ErrorCode::kNotFound);
  CHECK(f.engine().AnswerApproval(ids[0], {.approved = true, .arguments = R"({"a": 2})"}));
  CHECK(f.engine().PreviewChange(ids[0]).error().code == ErrorCode::kNotFound);
  CHECK(f.engine().AnswerApproval(ids[1], {.approved = false}));
  AwaitEnd(started->log);
  CHECK(ran == 1);
  CHECK(asked == 1);
}

TEST_CASE("Engine: an answer is taken when it is on record", "[engine]") {
  Fixture f;
  const bool approved = GENERATE(true, false);
  f.model.ThenCall({{"1", "danger", "{}"}});
  f.model.ThenAnswer("done");
  SECTION("not before") {
    f.store.hang_record = true;
    const auto started = f.Start("x");
    AwaitEvent(started->log, "approval_required");
    const std::string id = f.engine().PendingApprovals().at(0).request.approval_id;
    auto answered =
        std::async(std::launch::async, [&] { return f.engine().AnswerApproval(id, {.approved = approved}); });
    f.store.AwaitRecord();
    CHECK(answered.wait_for(50ms) == std::future_status::timeout);
    f.store.LetGo();
    CHECK(answered.get());
    AwaitEnd(started->log);
  }
  SECTION("never, if the disk does not respond") {
    f.store.hang_record = true;
    const auto started = f.Start("x");
    AwaitEvent(started->log, "approval_required");
    const std::string id = f.engine().PendingApprovals().at(0).request.approval_id;
    const auto answered = f.engine().AnswerApproval(id, {.approved = approved});
    CHECK(answered.error().code == ErrorCode::kUnavailable);
    CHECK(answered.error().reason == "not_on_record");
    f.store.LetGo();
    AwaitEnd(started->log);
  }
  SECTION("not at all on a full disk") {
    f.store.fail_record = true;
    const auto started = f.Start("x");
    AwaitEvent(started->log, "approval_required");
    const std::string id = f.engine().PendingApprovals().at(0).request.approval_id;
    const auto answered = f.engine().AnswerApproval(id, {.approved = approved});
    CHECK(answered.error().code == ErrorCode::kStorageFull);
    CHECK(answered.error().message.find("send the message again") != std::string::npos);
    AwaitEnd(started->log);
    CHECK(f.store.LoadInteraction(kChat, Id(1))->status == InteractionStatus::kFailed);
  }
}

TEST_CASE("Engine: a tool's question is listed, answered once, and must be answered in its form", "[engine]") {
  Fixture f;
  f.tools.Add("asks", false, [](std::string_view arguments, const ToolContext& context) {
    const bool form = arguments.find("form") != std::string_view::npos;
    const auto answer =
        context.ask({.text = "Which?", .schema = form ? R"({"type":"object"})" : "", .url = {}}, context.stop);
    return ToolOutcome{answer.content, false};
  });
  const bool form = GENERATE(false, true);
  f.model.ThenCall({{"1", "asks", form ? R"({"form":1})" : "{}"}});
  f.model.ThenAnswer("done");
  const auto started = f.Start("x");
  AwaitEvent(started->log, "input_required");
  const auto waiting = f.engine().PendingInputs();
  REQUIRE(waiting.size() == 1);
  CHECK(f.engine().PendingApprovals().empty());
  CHECK(f.engine().GetInteraction(kChat, Id(1))->status == InteractionStatus::kWaitingInput);
  CHECK(f.engine().Attach(kChat, Id(1), 0)->pending_inputs.size() == 1);
  const std::string id = waiting[0].request.request_id;
  const Engine::InteractionRef ref{kChat, Id(1)};
  CHECK(f.engine().AnswerInput("request_unknown", {.response = "a"}, ref).error().code == ErrorCode::kNotFound);
  if (form) CHECK(f.engine().AnswerInput(id, {.response = "a"}, ref).error().reason == "invalid_answer");
  CHECK(f.engine().AnswerInput(id, {.response = "{}"}, ref));
  AwaitEnd(started->log);
  CHECK(f.engine().AnswerInput(id, {.response = "{}"}, ref).error().reason == "already_processed");
  CHECK(f.engine().PendingInputs().empty());
  CHECK(f.store.LoadInteraction(kChat, Id(1))->final_agent_state->messages[2].content == "{}");
}

TEST_CASE("Engine: a chat that is deleted while a run in it is about to start ends that run", "[engine]") {
  Fixture f;
  f.model.ThenHang("...");
  f.store.hang_begin = true;
  auto starting = std::async(std::launch::async, [&] { return f.Start("x", OnDisconnect::kContinue); });
  f.store.AwaitBegin();
  auto deleting = std::async(std::launch::async, [&] { return f.engine().DeleteChat(kChat); });
  // However far the deletion has come: the run is not there yet.
  CHECK(deleting.wait_for(20ms) == std::future_status::timeout);
  f.store.LetGo();
  const auto started = starting.get();
  REQUIRE(started);
  CHECK(AwaitEnd(started->log).find("\"status\":\"CANCELLED\"") != std::string::npos);
  CHECK(deleting.get());
  CHECK(f.store.LoadSummary(kChat).error().code == ErrorCode::kNotFound);
}

// Holds all threads that the process may have, until it goes.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    REQUIRE(::getrlimit(RLIMIT_AS, &before_) == 0);
    std::ifstream file("/proc/self/statm");
    std::uint64_t pages = 0;
    file >> pages;
    // Less than a thread's stack of 8 MiB. Stacks of earlier threads that wait for another one are taken here.
    struct rlimit small = before_;
    small.rlim_cur = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + (7u << 20);
    threads_.reserve(1000);
    REQUIRE(::setrlimit(RLIMIT_AS, &small) == 0);
    try {
      while (threads_.size() < threads_.capacity()) {
        threads_.emplace_back([over = over_.get_token()] {
          std::mutex mutex;
          std::unique_lock lock(mutex);
          std::condition_variable_any().wait(lock, over, [] { return false; });
        });
      }
    } catch (const std::system_error&) {  // as it should
    }
  }
  ~NoMoreThreads() {
    ::setrlimit(RLIMIT_AS, &before_);
    over_.request_stop();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  struct rlimit before_ {};
  std::stop_source over_;
  std::vector<std::thread> threads_;
};

TEST_CASE("Engine: when runs that work hold all threads, no more start, and answers are taken", "[engine]") {
  Fixture f;
  f.options.max_rounds = 1;
  std::counting_semaphore<> works(0), may_end(0);
  f.tools.Add("work", false, [&](std::string_view, const ToolContext&) {
    works.release();
    may_end.acquire();
    return ToolOutcome{"done", false};
  });
  f.model.ThenCall({{"1", "danger", "{}"}});
  const auto waiting = f.Start("x", OnDisconnect::kContinue);
  AwaitEvent(waiting->log, "approval_required");
  const auto id = f.engine().PendingApprovals().at(0).request.approval_id;
  // A run that waits for a person holds no thread: one that was idle is taken first, so it takes a few runs.
  std::vector<Result<EventSubscription>> working;
  for (const char* chat : {"w1", "w2", "w3"}) {
    f.model.ThenCall({{"1", "work", "{}"}});
    working.push_back(f.engine().Start(*ChatId::Parse(chat), {.user_message = "x"}));
    REQUIRE(working.back());
    works.acquire();
  }
  {
    const NoMoreThreads none;
    const auto refused = f.engine().Start(*ChatId::Parse("other"), {.user_message = "x"});
    const auto answered = f.engine().AnswerApproval(id, {.approved = true});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kUnavailable);
    CHECK(refused.error().reason == "overloaded");
    CHECK(refused.error().retryable);
    CHECK(answered);
  }
  may_end.release(3);
  for (const auto& each : working) CHECK(AwaitEnd(each->log).find("done") != std::string::npos);
  CHECK(AwaitEnd(waiting->log).find("boom") != std::string::npos);
}

TEST_CASE("Engine: cancelling voids a pending approval", "[engine]") {
  Fixture f;
  f.model.ThenCall({{"1", "danger", "{}"}});
  const auto started = f.Start("x");
  AwaitEvent(started->log, "approval_required");
  const std::string id = f.engine().PendingApprovals().at(0).request.approval_id;
  f.engine().Cancel(kChat, Id(1));
  AwaitEnd(started->log);
  CHECK(f.engine().AnswerApproval(id, {.approved = true}).error().reason == "already_processed");
  CHECK(f.store.LoadInteraction(kChat, Id(1))->status == InteractionStatus::kCancelled);
}

TEST_CASE("Engine: an edit runs from the state before and supersedes what followed", "[engine]") {
  Fixture f;
  for (const char* text : {"a1", "a2", "a3", "b2", "c1"}) f.model.ThenAnswer(text);
  f.Turn("q1");
  f.Turn("q2");
  f.Turn("q3");
  const auto old = f.store.LoadInteraction(kChat, Id(2));
  const auto preview = f.engine().PreviewEdit(kChat, Id(2));
  REQUIRE(preview);
  CHECK(preview->superseded == std::vector<InteractionId>{Id(2), Id(3)});
  AwaitEnd(f.engine().Edit(kChat, Id(2), {.user_message = "q2'"})->log);
  CHECK(Contents(f.model.requests().at(3)) == Texts{"q1", "a1", "q2'"});
  const auto edited = f.store.LoadInteraction(kChat, Id(4));
  REQUIRE(edited);
  CHECK(edited->edited_from == Id(2));
  CHECK(edited->parent_id == Id(1));
  CHECK(*f.store.LoadInteraction(kChat, Id(2)) == *old);

  const auto history = f.engine().GetHistory(kChat, false);
  REQUIRE(history);
  REQUIRE(history->entries.size() == 2);
  CHECK(history->entries[1].interaction.id == Id(4));
  const auto all = f.engine().GetHistory(kChat, true);
  REQUIRE(all->entries.size() == 4);
  CHECK(all->entries[1].superseded);
  CHECK_FALSE(all->entries[3].superseded);

  SECTION("the first message can be edited as well") {
    AwaitEnd(f.engine().Edit(kChat, Id(1), {.user_message = "q1'"})->log);
    CHECK(Contents(f.model.requests().at(4)) == Texts{"q1'"});
  }
  SECTION("the head can be moved back, and the chat goes on there") {
    CHECK(f.engine().MoveHead(kChat, Id(3)));
    f.Turn("q4");
    CHECK(Contents(f.model.requests().at(4)) == Texts{"q1", "a1", "q2", "a2", "q3", "a3", "q4"});
  }
  SECTION("regenerate asks the same again") {
    AwaitEnd(f.engine().Regenerate(kChat, Id(4), {})->log);
    CHECK(Contents(f.model.requests().at(4)) == Texts{"q1", "a1", "q2'"});
  }
  SECTION("an unknown one is not found, and the chat is not left busy") {
    CHECK(f.engine().Edit(kChat, Id(77), {.user_message = "x"}).error().code == ErrorCode::kNotFound);
    CHECK(f.engine().GetHistory(*ChatId::Parse("none"), false).error().code == ErrorCode::kNotFound);
    f.Turn("q5");
  }
}

TEST_CASE("Engine: when the last client goes the run is cancelled, unless it should go on", "[engine]") {
  Fixture f;
  const auto policy = GENERATE(OnDisconnect::kCancel, OnDisconnect::kContinue);
  f.model.ThenHang("...");
  auto started = f.Start("x", policy);
  f.model.AwaitHanging();
  const std::shared_ptr<EventLog> log = started->log;
  if (policy == OnDisconnect::kCancel) {
    started = Fail(ErrorCode::kInternal, "");  // drops the subscription
    CHECK(AwaitEnd(log).find("client_disconnected") != std::string::npos);
  } else {
    started = Fail(ErrorCode::kInternal, "");
    f.engine().Cancel(kChat, Id(1));
    CHECK(AwaitEnd(log).find("\"reason\":\"requested\"") != std::string::npos);
  }
}

TEST_CASE("Engine: a second listener keeps the run alive", "[engine]") {
  Fixture f;
  f.model.ThenHang("...");
  auto started = f.Start("x");
  f.model.AwaitHanging();
  auto attached = f.engine().Attach(kChat, Id(1), 0);
  REQUIRE(attached);
  f.engine().Listen(attached->subscription);
  const std::shared_ptr<EventLog> log = started->log;
  started = Fail(ErrorCode::kInternal, "");

  // Another chat is left a moment later: when its time is over, that of the first would be as well.
  f.model.ThenHang("...");
  auto other = f.engine().Start(*ChatId::Parse("other"), {.user_message = "y", .model = {}});
  REQUIRE(other);
  const std::shared_ptr<EventLog> other_log = other->log;
  other = Fail(ErrorCode::kInternal, "");
  CHECK(AwaitEnd(other_log).find("client_disconnected") != std::string::npos);

  CHECK(f.engine().GetInteraction(kChat, Id(1))->status == InteractionStatus::kRunning);
  attached = Fail(ErrorCode::kInternal, "");
  CHECK(AwaitEnd(log).find("client_disconnected") != std::string::npos);
}

TEST_CASE("Engine: a pending approval outlives its client and the run goes on once it is answered", "[engine]") {
  Fixture f;
  f.model.ThenCall({{"1", "danger", "{}"}});
  f.model.ThenAnswer("done");
  auto started = f.Start("x");
  const std::shared_ptr<EventLog> log = started->log;
  AwaitEvent(log, "approval_required");
  started = Fail(ErrorCode::kInternal, "");
  CHECK(f.engine().AnswerApproval(f.engine().PendingApprovals().at(0).request.approval_id, {.approved = true}));
  CHECK(AwaitEnd(log).find("\"status\":\"COMPLETED\"") != std::string::npos);
}

TEST_CASE("Engine: events are the same live and from the store, at every cursor", "[engine]") {
  Fixture f;
  f.model.ThenAnswer("hello");
  const std::string live = f.Turn("x");  // 1 started, 2 text_delta, 3 answer, 4 complete
  for (std::uint64_t seq = 0; seq <= 4; ++seq) {
    const auto attached = f.engine().Attach(kChat, Id(1), seq);
    REQUIRE(attached);
    CHECK(attached->last_seq == 4);
    const std::string rest = ReadLog(*attached->subscription.log).substr(attached->offset);
    CHECK(live.ends_with(seq < 1 ? rest.substr(rest.find("id: 3")) : rest));
  }
  CHECK(f.engine().Attach(kChat, Id(1), 5).error().reason == "cursor_ahead");
}

TEST_CASE("Engine: a checkpoint that cannot be stored fails the run, is told, and goes to the fallback", "[engine]") {
  Fixture f;
  f.store.fail = true;
  f.model.ThenAnswer("precious");
  const std::string stream = f.Turn("x");
  CHECK(stream.find("\"code\":\"storage_full\"") != std::string::npos);
  CHECK(stream.find("\"status\":\"FAILED\"") != std::string::npos);
  const auto rescued = f.fallback.LoadInteraction(kChat, Id(1));
  REQUIRE(rescued);
  CHECK(rescued->status == InteractionStatus::kFailed);
  CHECK(Contents(rescued->final_agent_state->messages) == Texts{"x", "precious"});
  CHECK(rescued->events.back().payload.index() == EventPayload(event::Failed{}).index());
}

TEST_CASE("Engine: a chat that cannot be deleted keeps its unsaved interaction", "[engine]") {
  Fixture f;
  f.store.fail = true;
  f.model.ThenAnswer("precious");
  f.Turn("x");
  REQUIRE(f.fallback.LoadInteraction(kChat, Id(1)));
  f.store.fail_delete = true;
  CHECK_FALSE(f.engine().DeleteChat(kChat));
  CHECK(f.fallback.LoadInteraction(kChat, Id(1)));
  f.store.fail_delete = false;
  static_cast<void>(f.engine().DeleteChat(kChat));  // whether the store has the chat at all
  CHECK_FALSE(f.fallback.LoadInteraction(kChat, Id(1)));
}

TEST_CASE("Engine: a chat that cannot be deleted keeps the messages that wait in it", "[engine]") {
  Fixture f;
  f.model.ThenAnswer("a");
  f.Turn("x");
  f.model.ThenHang("half");
  REQUIRE(f.Start("y"));
  f.model.AwaitHanging();
  const auto waiting = f.engine().Start(kChat, {.user_message = "z", .if_running = IfRunning::kQueue});
  REQUIRE(waiting);
  f.store.fail_delete = true;
  f.model.ThenAnswer("b");
  CHECK_FALSE(f.engine().DeleteChat(kChat));
  CHECK(AwaitEnd(waiting->log).find("\"status\":\"COMPLETED\"") != std::string::npos);
  CHECK(f.store.LoadInteraction(kChat, Id(3))->user_message == "z");
}

TEST_CASE("Engine: a disk that hangs holds nobody up for longer than the limit", "[engine]") {
  Fixture f;
  f.options.save_timeout = 500ms;
  f.store.hang = true;
  f.model.ThenAnswer("precious");
  CHECK(f.Turn("x").find("\"code\":\"save_timeout\"") != std::string::npos);
  CHECK(f.fallback.LoadInteraction(kChat, Id(1)));
  f.store.LetGo();
}

TEST_CASE("Engine: Stop gives every run its last event and its checkpoint, and refuses new ones", "[engine]") {
  Fixture f;
  std::vector<std::shared_ptr<EventLog>> logs;
  std::vector<EventSubscription> subscriptions;
  for (int i = 0; i < 8; ++i) {
    f.model.ThenHang("...");
    auto started = f.engine().Start(*ChatId::Parse("c" + std::to_string(i)), {.user_message = "x"});
    REQUIRE(started);
    logs.push_back(started->log);
    subscriptions.push_back(*std::move(started));
  }
  f.engine().Stop();
  for (std::size_t i = 0; i < logs.size(); ++i) {
    CHECK(logs[i]->end().closed);
    CHECK(ReadLog(*logs[i]).find("server_stopping") != std::string::npos);
    CHECK(f.store.LoadInteraction(*ChatId::Parse("c" + std::to_string(i)), Id(1)));
  }
  CHECK(f.Start("y").error().reason == "stopping");
}

TEST_CASE("Engine: deleting a chat ends its run first", "[engine]") {
  Fixture f;
  f.model.ThenHang("...");
  const auto started = f.Start("x");
  f.model.AwaitHanging();
  CHECK(f.engine().DeleteChat(kChat));
  CHECK(AwaitEnd(started->log).find("chat_deleted") != std::string::npos);
  CHECK(f.engine().GetHistory(kChat, true).error().code == ErrorCode::kNotFound);
  CHECK(f.engine().DeleteChat(kChat).error().code == ErrorCode::kNotFound);
}

TEST_CASE("Engine: an edit restores the tasks of its time, a change by hand is an interaction", "[engine]") {
  Fixture f;
  f.tools.Add("add", false, [](std::string_view, const ToolContext& context) {
    context.change_agenda([](Agenda& agenda) { agenda.tasks.push_back({NextTaskId(agenda.tasks), "task", "todo"}); });
    return ToolOutcome{"added", false};
  });
  for (int i = 0; i < 2; ++i) {
    f.model.ThenCall({{"1", "add", "{}"}});
    f.model.ThenAnswer("ok");
    f.Turn("go");
  }
  CHECK(f.engine().GetAgenda(kChat)->tasks.size() == 2);
  const std::vector<Task> by_hand = {{"2", "kept", "done"}, {"", "new", "todo"}};
  const auto changed = f.engine().ChangeAgenda(kChat, {.tasks = by_hand, .plan = {}});
  REQUIRE(changed);
  CHECK(changed->tasks == std::vector<Task>{{"2", "kept", "done"}, {"3", "new", "todo"}});
  CHECK(f.store.LoadSummary(kChat)->head == Id(3));
  CHECK(f.engine().ChangeAgenda(kChat, {.tasks = changed->tasks, .plan = {}}) == *changed);
  CHECK(f.store.LoadSummary(kChat)->head == Id(3));  // nothing has changed
  const std::vector<Task> twice = {{"1", "a", "todo"}, {"1", "b", "todo"}};
  CHECK(f.engine().ChangeAgenda(kChat, {.tasks = twice, .plan = {}}).error().reason == "invalid_member");
  CHECK(f.engine().Regenerate(kChat, Id(3), {}).error().reason == "no_message");
  CHECK(f.engine().GetAgenda(*ChatId::Parse("none")).error().code == ErrorCode::kNotFound);
  CHECK(f.engine().ChangeAgenda(*ChatId::Parse("none"), {}).error().code == ErrorCode::kNotFound);
  f.model.ThenAnswer("edited");
  AwaitEnd(f.engine().Edit(kChat, Id(2), {.user_message = "instead"})->log);
  CHECK(f.engine().GetAgenda(kChat)->tasks == std::vector<Task>{{"1", "task", "todo"}});
  f.model.ThenHang("half");
  const auto started = f.Start("x");
  f.model.AwaitHanging();
  CHECK(f.engine().ChangeAgenda(kChat, {.tasks = by_hand, .plan = {}}).error().reason == "busy");
  CHECK(f.engine().GetAgenda(kChat)->tasks.size() == 1);
  f.engine().Cancel(kChat, Id(5));
  AwaitEnd(started->log);
}

}  // namespace reprise::engine_test
