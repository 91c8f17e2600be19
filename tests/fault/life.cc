#include "fault/life.h"

#include <algorithm>
#include <utility>

#include "store/unsaved.h"
#include "support/await_log.h"

namespace reprise {

// --- a process's disk ------------------------------------------------------------------------------------------------

template <typename Call>
auto MortalFileSystem::IfAlive(Call call) -> decltype(call()) {
  const std::shared_lock lock(mutex_);
  if (dead_) return Fail(ErrorCode::kIo, "this process has ended");
  return call();
}

class MortalFileSystem::File final : public WritableFile {
 public:
  File(MortalFileSystem& owner, std::unique_ptr<WritableFile> base) : owner_(owner), base_(std::move(base)) {}
  Result<void> Append(std::string_view data) override {
    return owner_.IfAlive([&] { return base_->Append(data); });
  }
  Result<void> Sync() override {
    return owner_.IfAlive([&] { return base_->Sync(); });
  }
  Result<void> Close() override {
    return owner_.IfAlive([&] { return base_->Close(); });
  }

 private:
  MortalFileSystem& owner_;
  const std::unique_ptr<WritableFile> base_;
};

void MortalFileSystem::Die() {
  const std::unique_lock lock(mutex_);
  dead_ = true;
}

void MortalFileSystem::WhileAlive(const std::function<void()>& function) {
  const std::shared_lock lock(mutex_);
  if (!dead_) function();
}

Result<std::string> MortalFileSystem::ReadFile(const std::string& path, std::uint64_t max_bytes) {
  return IfAlive([&] { return base_.ReadFile(path, max_bytes); });
}
Result<std::unique_ptr<WritableFile>> MortalFileSystem::CreateFile(const std::string& path) {
  return IfAlive([&]() -> Result<std::unique_ptr<WritableFile>> {
    auto file = base_.CreateFile(path);
    if (!file) return file;
    return std::make_unique<File>(*this, *std::move(file));
  });
}
Result<void> MortalFileSystem::Rename(const std::string& from, const std::string& to) {
  return IfAlive([&] { return base_.Rename(from, to); });
}
Result<void> MortalFileSystem::SyncDirectory(const std::string& path) {
  return IfAlive([&] { return base_.SyncDirectory(path); });
}
Result<bool> MortalFileSystem::CreateDirectory(const std::string& path) {
  return IfAlive([&] { return base_.CreateDirectory(path); });
}
Result<void> MortalFileSystem::RemoveFile(const std::string& path) {
  return IfAlive([&] { return base_.RemoveFile(path); });
}
Result<std::vector<DirectoryEntry>> MortalFileSystem::ListDirectory(const std::string& path) {
  return IfAlive([&] { return base_.ListDirectory(path); });
}

// --- a process -------------------------------------------------------------------------------------------------------

// Notes what a stream shows, at that moment.
class Life::Witness final : public EventLogListener {
 public:
  Witness(Life& life, ChatId chat, InteractionId id, const Log& log)
      : life_(life), chat_(std::move(chat)), id_(id), log_(log) {}

  void OnPublished(std::size_t) noexcept override {
    const std::lock_guard lock(mutex_);
    const Log log = log_.lock();
    std::string text = ReadLog(*log);
    if (text.size() <= seen_) return;
    seen_ = text.size();
    const auto seen = std::make_shared<const SeenEvents>(std::move(text));
    life_.Note([chat = chat_, id = id_, seen](Promises& promises) {
      Promises::Run& run = promises.runs[{chat, id}];
      run.seen = seen;
      const std::string& last = seen->frames.back().name;
      if (last == event::ApprovalRequired::kName) run.answered = false;
      if (!seen->ended) return;
      run.ended = seen->ended;
      Promises::Chat& its = promises.chats[chat];
      its.exists = true;
      its.heads = {id};
      its.moving = !seen->errors.empty();  // if it was not saved, it becomes the head when it is brought home
    });
  }

 private:
  Life& life_;
  const ChatId chat_;
  const InteractionId id_;
  const std::weak_ptr<EventLog> log_;  // weak, because the log holds this
  std::mutex mutex_;
  std::size_t seen_ = 0;  // guarded by mutex_
};

Life::Life(FileSystem& disk, Ledger* ledger, const LifeOptions& options) : disk_(disk), ledger_(ledger) {
  FileSystem* seen_disk = &disk_;
  if (options.disk_double) {
    disk_double_ = options.disk_double(disk_);
    seen_disk = disk_double_.get();
  }
  auto opened = FileInteractionStore::Open({.root = kDataFolder,
                                            .keys = options.keys,
                                            .file_system = *seen_disk,
                                            .lock = false,
                                            .index_delay = options.index_delay});
  if (!opened) {
    not_opened_ = opened.error();
    return;
  }
  file_store_ = *std::move(opened);
  store_ = file_store_.get();
  if (options.store_double) {
    store_double_ = options.store_double(*store_);
    store_ = store_double_.get();
  }
  runs_.emplace(*store_);
  Engine::Parts parts{.store = *store_, .runs = *runs_, .fallback_stores = {}, .models = directory_, .tools = tools_};
  if (options.fallback) {
    fallback_disk_ = std::make_unique<MortalFileSystem>(*options.fallback);
    Told(BringHome(kFallbackFolder, options.keys, *fallback_disk_, *store_));
    fallback_store_ = OpenUnsavedStore(kFallbackFolder, options.keys, *fallback_disk_);
    parts.fallback_stores.push_back(fallback_store_.get());
  }
  const auto body = [this](std::string_view arguments, const ToolContext&) {
    const std::string call(arguments);
    Note([call](Promises& promises) {
      for (auto& [place, run] : promises.runs) {
        if (!run.seen) continue;
        for (const SeenEvents::Frame& frame : run.seen->frames) {
          const auto* started = frame.event ? std::get_if<event::ToolCallStarted>(&frame.event->payload) : nullptr;
          if (started && started->tool_input == call) run.ran.insert(started->id);
        }
      }
    });
    return ToolOutcome{"done with " + call, false};
  };
  tools_.Add("danger", true, body);
  tools_.Add("look", false, body);
  engine_ = std::make_unique<Engine>(std::move(parts), EngineOptions{});
  auto recovered = engine_->Recover();
  if (!recovered) {
    not_opened_ = recovered.error();
    return;
  }
  recovered_ = *recovered;
}

Life::~Life() {
  if (engine_) engine_->Stop();
}

void Life::Kill() {
  if (fallback_disk_) fallback_disk_->Die();
  disk_.Die();
}

void Life::Note(Ledger::Entry entry) {
  if (!ledger_) return;
  disk_.WhileAlive([&] { ledger_->Note(std::move(entry)); });
}

template <typename T>
bool Life::Told(const Result<T>& result) {
  if (!result) errors_.push_back(result.error());
  return result.has_value();
}

// Drops the rounds that a failed run has left.
void Life::HandRoundsToModel() {
  model_.Forget();
  for (ScriptedModel::Round& round : std::exchange(rounds_, {})) model_.Then(std::move(round));
}

void Life::BeforeLaunch(const ChatId& chat) {
  HandRoundsToModel();
  {
    const std::lock_guard lock(mutex_);
    listening_ = false;
  }
  Note([chat](Promises& promises) { promises.chats[chat].moving = true; });
}

Life::Log Life::Launched(const ChatId& chat, Result<EventSubscription> started) {
  if (!Told(started)) return nullptr;
  subscriptions_.push_back(*std::move(started));
  const EventSubscription& subscription = subscriptions_.back();
  Listen(chat, *subscription.interaction_id, subscription.log);
  return subscription.log;
}

void Life::Listen(const ChatId& chat, InteractionId id, const Log& log) {
  const auto witness = std::make_shared<Witness>(*this, chat, id, log);
  witnesses_[log.get()] = witness;
  log->Subscribe(witness);
  witness->OnPublished(1);  // events from before it listened
  const std::lock_guard lock(mutex_);
  listening_ = true;
  changed_.notify_all();
}

Life::Log Life::Start(const ChatId& chat, const std::string& message) {
  BeforeLaunch(chat);
  return Launched(chat, engine_->Start(chat, {.user_message = message}));
}

Life::Log Life::Edit(const ChatId& chat, InteractionId id, const std::string& message) {
  BeforeLaunch(chat);
  return Launched(chat, engine_->Edit(chat, id, {.user_message = message}));
}

Life::Log Life::Attach(const ChatId& chat, InteractionId id) {
  auto attached = engine_->Attach(chat, id, 0);
  if (!Told(attached)) return nullptr;
  engine_->Listen(attached->subscription);
  return Launched(chat, std::move(attached->subscription));
}

bool Life::CreateChat(const ChatId& chat, const std::string& title) {
  Note([=](Promises& promises) {
    promises.chats[chat].titles.insert(title);
    promises.chats[chat].heads.insert(std::nullopt);
  });
  if (!Told(engine_->CreateChat(chat, {.title = title}))) {
    Note([=](Promises& promises) { promises.chats[chat].titles.clear(); });
    return false;
  }
  Note([=](Promises& promises) { promises.chats[chat].exists = true; });
  return true;
}

bool Life::Rename(const ChatId& chat, const std::string& title) {
  Note([=](Promises& promises) {
    if (!promises.chats[chat].titles.empty()) promises.chats[chat].titles.insert(title);
  });
  if (!Told(engine_->ChangeChat(chat, {.title = title}))) return false;
  Note([=](Promises& promises) { promises.chats[chat].titles = {title}; });
  return true;
}

bool Life::MoveHead(const ChatId& chat, InteractionId head) {
  Note([=](Promises& promises) {
    if (!promises.chats[chat].heads.empty()) promises.chats[chat].heads.insert(head);
  });
  if (!Told(engine_->MoveHead(chat, head))) return false;
  Note([=](Promises& promises) {
    promises.chats[chat].heads = {head};
    promises.chats[chat].moving = false;
  });
  return true;
}

bool Life::Delete(const ChatId& chat) {
  Note([=](Promises& promises) { promises.chats[chat].deleting = true; });
  if (!Told(engine_->DeleteChat(chat))) return false;
  Note([=](Promises& promises) { promises.chats[chat].deleted = true; });
  return true;
}

void Life::Answer(const ChatId& chat, InteractionId id, bool approved) {
  for (const PendingApproval& pending : engine_->PendingApprovals()) {
    if (pending.chat_id != chat || pending.interaction_id != id) continue;
    HandRoundsToModel();
    Note([=](Promises& promises) { promises.runs[{chat, id}].answered = true; });
    Told(engine_->AnswerApproval(pending.request.approval_id, {.approved = approved}));
  }
}

void Life::Cancel(const ChatId& chat, InteractionId id) {
  Note([=](Promises& promises) { promises.runs[{chat, id}].answered = true; });
  Told(engine_->Cancel(chat, id));
}

InteractionId Life::IdOf(const Log& log) const {
  return std::find_if(subscriptions_.begin(), subscriptions_.end(),
                      [&](const EventSubscription& each) { return each.log == log; })
      ->interaction_id.value();
}

std::vector<std::string> Life::StreamErrors() const {
  std::vector<std::string> errors;
  for (const EventSubscription& each : subscriptions_) {
    const SeenEvents seen(ReadLog(*each.log));
    errors.insert(errors.end(), seen.errors.begin(), seen.errors.end());
  }
  return errors;
}

void Life::CatchUp(const Log& log) { witnesses_.at(log.get())->OnPublished(1); }

void Life::Finish(const Log& log) {
  if (!log) return;
  AwaitEnd(log);
  CatchUp(log);
}

bool Life::AwaitApproval(const Log& log) {
  if (!log) return false;
  const auto waits = [](const std::string& text) {
    const auto last = text.rfind("\nevent: ");
    return last != std::string::npos && text.compare(last, 25, "\nevent: approval_required") == 0;
  };
  bool waiting = false;
  AwaitLog(log, [&](const std::string& text, bool closed) { return (waiting = waits(text)) || closed; });
  CatchUp(log);
  return waiting;
}

void Life::AwaitText(const Log& log, const std::string& text) {
  if (!log) return;
  AwaitLog(log, [&](const std::string& shown, bool closed) { return closed || shown.find(text) != std::string::npos; });
  CatchUp(log);
}

// Each delta is its own batch.
void Life::Say(const std::vector<std::string>& deltas, ModelStream& stream) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return listening_; });
  }
  for (const std::string& delta : deltas) {
    stream.OnText(delta);
    stream.OnBatchEnd();
  }
}

void Life::ThenAnswer(std::vector<std::string> deltas) {
  rounds_.push_back([this, deltas](const auto&, ModelStream& stream, std::stop_token) -> Result<ModelResponse> {
    Say(deltas, stream);
    return ModelResponse{.tool_calls = {}, .usage = {.input_tokens = 7, .output_tokens = 11}, .extras = {}};
  });
}

void Life::ThenCall(std::vector<ToolCall> calls, std::string text) {
  rounds_.push_back([this, calls, text](const auto&, ModelStream& stream, std::stop_token) -> Result<ModelResponse> {
    Say({text}, stream);
    return ModelResponse{.tool_calls = calls, .usage = {}, .extras = {}};
  });
}

void Life::ThenHang(std::vector<std::string> deltas) {
  rounds_.push_back([this, deltas](const auto&, ModelStream& stream, std::stop_token stop) -> Result<ModelResponse> {
    Say(deltas, stream);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [] { return false; });
    return Fail(ErrorCode::kCancelled, "stopped");
  });
}

}  // namespace reprise
