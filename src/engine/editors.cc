#include "engine/editors.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/random.h"
#include "base/utf8.h"

namespace reprise {
namespace {

constexpr std::size_t kMostEditors = 1000;
constexpr std::size_t kMostPending = 64;  // of one editor: tool calls that run at once
constexpr std::size_t kIdBytes = 16;
constexpr std::chrono::seconds kPatience{10};  // an editor that has this in memory answers at once

std::string Frame(std::string_view name, const Json& data) {
  return "event: " + std::string(name) + "\ndata: " + DumpJson(data) + "\n\n";
}

Error NoEditor(const char* why) { return MakeError(ErrorCode::kUnavailable, why); }

}  // namespace

class Editors::Files final : public EditorFiles {
 public:
  Files(std::shared_ptr<State> state, ChatId chat) : state_(std::move(state)), chat_(std::move(chat)) {}

  std::optional<std::string> Read(const std::string& path, const std::stop_token& stop) override {
    auto answer = Ask({{"method", "read"}, {"path", path}}, /*needs_writes=*/false, stop);
    if (!answer || !answer->content) return std::nullopt;
    return ToValidUtf8(*answer->content);
  }

  Result<void> Write(const std::string& path, const std::string& content, const std::stop_token& stop) override {
    const auto answer = Ask({{"method", "write"}, {"path", path}, {"content", content}}, /*needs_writes=*/true, stop);
    if (!answer) return Fail(answer.error());
    if (!answer->error.empty()) return Fail(MakeError(ErrorCode::kIo, "the editor says: " + answer->error));
    return {};
  }

 private:
  Result<EditorAnswer> Ask(Json request, bool needs_writes, const std::stop_token& stop) {
    const std::string id = RandomHex(kIdBytes);
    request["request_id"] = id;
    const std::string frame = Frame("editor_request", request);
    MutexLock lock(state_->mutex);
    const auto found = state_->editors.find(chat_);
    if (found == state_->editors.end()) return Fail(NoEditor("no editor is connected"));
    const std::shared_ptr<Editor> editor = found->second;
    if (needs_writes && !editor->writes) return Fail(NoEditor("the editor cannot write for others"));
    if (editor->pending.size() >= kMostPending) return Fail(NoEditor("the editor has too much to answer"));
    const auto pending = editor->pending.emplace(id, Pending{}).first;
    editor->log->AppendFrames(frame);
    lock.unlock();
    editor->log->Publish();  // may write to the editor's socket
    lock.lock();
    const auto is_over = [&]() REQUIRES(state_->mutex) { return pending->second.answer || editor->is_gone; };
    static_cast<void>(state_->changed.wait_for(lock, stop, kPatience, is_over));
    auto answer = std::move(pending->second.answer);
    editor->pending.erase(pending);
    if (!answer) return Fail(NoEditor(editor->is_gone ? "the editor has gone" : "the editor does not answer"));
    return *std::move(answer);
  }

  const std::shared_ptr<State> state_;
  const ChatId chat_;
};

Editors::Editors() : state_(std::make_shared<State>()) {}

Result<EditorConnection> Editors::Connect(const ChatId& chat, bool writes) {
  auto editor = std::make_shared<Editor>();
  editor->log = std::make_shared<EventLog>();
  editor->writes = writes;
  std::shared_ptr<Editor> before;
  {
    const MutexLock lock(state_->mutex);
    if (state_->editors.size() >= kMostEditors && !state_->editors.contains(chat)) {
      return Fail(
          Error{.code = ErrorCode::kUnavailable, .reason = "overloaded", .message = "too many editors are connected"});
    }
    before = std::exchange(state_->editors[chat], editor);
    if (before) before->is_gone = true;
  }
  state_->changed.notify_all();
  if (before) before->log->Close();
  editor->log->AppendFrames(Frame("editor_open", {{"chat_id", chat.str()}}));
  editor->log->Publish();
  const auto leave = [state = state_, chat, editor](void*) {
    {
      const MutexLock lock(state->mutex);
      editor->is_gone = true;
      const auto found = state->editors.find(chat);
      if (found != state->editors.end() && found->second == editor) state->editors.erase(found);
    }
    state->changed.notify_all();
  };
  return EditorConnection{.log = editor->log, .hold = std::shared_ptr<void>(nullptr, leave)};
}

Result<void> Editors::Answer(const ChatId& chat, std::string_view request_id, EditorAnswer answer) {
  {
    const MutexLock lock(state_->mutex);
    const auto editor = state_->editors.find(chat);
    const auto none = [] { return Fail(ErrorCode::kNotFound, "no such request waits for this chat's editor"); };
    if (editor == state_->editors.end()) return none();
    const auto pending = editor->second->pending.find(request_id);
    if (pending == editor->second->pending.end() || pending->second.answer) return none();
    pending->second.answer = std::move(answer);
  }
  state_->changed.notify_all();
  return {};
}

std::unique_ptr<EditorFiles> Editors::FilesOf(const ChatId& chat) { return std::make_unique<Files>(state_, chat); }

}  // namespace reprise
