#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "crypto/key_set.h"
#include "fault/ledger.h"
#include "reprise/engine.h"
#include "reprise/file_system.h"
#include "store/file_interaction_store.h"
#include "store/local_run_store.h"
#include "support/fake_tools.h"
#include "support/scripted_model.h"

namespace reprise {

// A disk as seen by one process: after the process's end, no call of it reaches the disk.
class MortalFileSystem final : public FileSystem {
 public:
  explicit MortalFileSystem(FileSystem& base) : base_(base) {}

  void Die();
  // Calls `function` unless it is dead, and does not die meanwhile.
  void WhileAlive(const std::function<void()>& function);

  Result<std::string> ReadFile(const std::string& path, std::uint64_t max_bytes) override;
  Result<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override;
  Result<void> Rename(const std::string& from, const std::string& to) override;
  Result<void> SyncDirectory(const std::string& path) override;
  SyncReach sync_reach(const std::string& folder) override { return base_.sync_reach(folder); }
  Result<bool> CreateDirectory(const std::string& path) override;
  Result<void> RemoveFile(const std::string& path) override;
  Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path) override;

 private:
  class File;
  template <typename Call>
  auto IfAlive(Call call) -> decltype(call());

  FileSystem& base_;
  std::shared_mutex mutex_;
  bool dead_ = false;  // guarded by mutex_
};

inline const std::string kDataFolder = "/data/chats";
inline const std::string kFallbackFolder = "/state/unsaved";

struct LifeOptions {
  std::shared_ptr<const KeySet> keys{};  // null: plain
  FileSystem* fallback = nullptr;        // has kFallbackFolder; null: none
  std::chrono::milliseconds index_delay{1};
  // Doubles to put in between; empty: none.
  std::function<std::unique_ptr<FileSystem>(FileSystem&)> disk_double{};
  std::function<std::unique_ptr<InteractionStore>(InteractionStore&)> store_double{};
};

// One process: store, engine, a scripted model, and the tools "danger", which asks first, and "look", which does not.
// Everything that it tells its clients goes into the ledger.
class Life {
 public:
  // Opens the store, brings unsaved interactions home and recovers. `ledger` may be null.
  Life(FileSystem& disk, Ledger* ledger, const LifeOptions& options);
  ~Life();

  const std::optional<Error>& not_opened() const { return not_opened_; }
  const Engine::Recovered& recovered() const { return recovered_; }
  Engine& engine() { return *engine_; }
  InteractionStore& store() { return *store_; }
  ScriptedModel& model() { return model_; }
  // The refusals and failures of the server, in order.
  const std::vector<Error>& errors() const { return errors_; }
  std::vector<std::string> StreamErrors() const;  // codes of the shown error events

  // Ends the process: nothing it does from now on reaches the disk or its clients.
  void Kill();

  // --- actions of clients; null: refused --------------------------------------------------------------------------
  using Log = std::shared_ptr<EventLog>;
  Log Start(const ChatId& chat, const std::string& message);
  Log Edit(const ChatId& chat, InteractionId id, const std::string& message);
  bool CreateChat(const ChatId& chat, const std::string& title);
  bool Rename(const ChatId& chat, const std::string& title);
  bool MoveHead(const ChatId& chat, InteractionId head);
  bool Delete(const ChatId& chat);
  void Answer(const ChatId& chat, InteractionId id, bool approved);
  void Cancel(const ChatId& chat, InteractionId id);
  InteractionId IdOf(const Log& log) const;
  // Blocks until the log is closed.
  void Finish(const Log& log);
  // Blocks until the stream has shown this text or is closed.
  void AwaitText(const Log& log, const std::string& text);
  // Blocks until the run waits for an approval or the stream is closed. Returns whether it waits.
  bool AwaitApproval(const Log& log);
  // Listens to a recovered interaction.
  Log Attach(const ChatId& chat, InteractionId id);

  // Add a round of the model for the run that is started or answered next. The model begins when a client listens.
  void ThenAnswer(std::vector<std::string> deltas);
  void ThenCall(std::vector<ToolCall> calls, std::string text);
  void ThenHang(std::vector<std::string> deltas);

 private:
  class Witness;

  void Note(Ledger::Entry entry);
  template <typename T>
  bool Told(const Result<T>& result);
  Log Launched(const ChatId& chat, Result<EventSubscription> started);
  void Listen(const ChatId& chat, InteractionId id, const Log& log);
  void Say(const std::vector<std::string>& deltas, ModelStream& stream);
  void BeforeLaunch(const ChatId& chat);
  void HandRoundsToModel();
  // Notes what `log` shows, because its publisher may not have done so yet and later notes must come after it.
  void CatchUp(const Log& log);

  MortalFileSystem disk_;
  Ledger* const ledger_;
  std::unique_ptr<FileSystem> disk_double_;
  std::unique_ptr<FileInteractionStore> file_store_;
  std::unique_ptr<MortalFileSystem> fallback_disk_;
  std::unique_ptr<InteractionStore> fallback_store_, store_double_;
  InteractionStore* store_ = nullptr;
  std::optional<LocalRunStore> runs_;
  std::vector<ScriptedModel::Round> rounds_;
  ScriptedModel model_;
  ScriptedDirectory directory_{model_};
  FakeTools tools_;
  std::unique_ptr<Engine> engine_;
  std::optional<Error> not_opened_;
  Engine::Recovered recovered_;
  std::vector<Error> errors_;
  std::vector<EventSubscription> subscriptions_;
  std::map<const EventLog*, std::shared_ptr<Witness>> witnesses_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool listening_ = false;  // guarded by mutex_
};

}  // namespace reprise
