#include "engine/editors.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "approval/decision.h"
#include "base/json.h"
#include "base/mutex.h"
#include "base/system.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "reprise/event_log.h"

namespace reprise {
namespace {

constexpr std::size_t kMostEditors = 1000;
constexpr std::size_t kMostPending = 64;  // of one editor: tool calls at once
constexpr std::size_t kIdBytes = 16;
constexpr std::size_t kMostOffered = 64u << 20;  // bytes of the tools of all editors
constexpr std::chrono::seconds kPatience{10};    // an editor answers at once from memory

using OfferedTools = std::shared_ptr<const std::vector<std::shared_ptr<Tool>>>;

std::string Frame(std::string_view name, const Json& data) {
  return "event: " + std::string(name) + "\ndata: " + DumpJson(data) + "\n\n";
}

Error NoEditor(const char* why) { return MakeError(ErrorCode::kUnavailable, why); }

}  // namespace

struct Editors::Editor {
  struct Pending {
    std::string method;
    std::optional<EditorAnswer> answer{};
  };
  const std::shared_ptr<EventLog> log = std::make_shared<EventLog>();
  const EditorAbilities abilities;
  // Guarded by the state's mutex.
  bool is_gone = false;
  std::map<std::string, Pending, std::less<>> pending{};
  OfferedTools tools{};  // null: none
  std::size_t offered_bytes = 0;
};

struct Editors::State {
  std::shared_ptr<Editor> EditorOf(const ChatId& chat) {
    const MutexLock lock(mutex);
    const auto found = editors.find(chat);
    return found == editors.end() ? nullptr : found->second;
  }

  // Null if there are none.
  OfferedTools ToolsOf(const ChatId& chat) {
    const MutexLock lock(mutex);
    const auto found = editors.find(chat);
    return found == editors.end() ? nullptr : found->second->tools;
  }

  // Asks and waits for the answer. kUnavailable, with the reason, if there is none.
  Result<EditorAnswer> Ask(Editor& editor, Json request, std::chrono::milliseconds patience,
                           const std::stop_token& stop) {
    const std::string id = RandomHex(kIdBytes), method = TextMember(request, "method");
    request["request_id"] = id;
    const std::string frame = Frame("editor_request", request);
    MutexLock lock(mutex);
    if (editor.is_gone) return Fail(NoEditor("the editor has gone"));
    if (editor.pending.size() >= kMostPending) return Fail(NoEditor("the editor has too much to answer"));
    const auto pending = editor.pending.emplace(id, Editor::Pending{.method = method}).first;
    editor.log->AppendFrames(frame);
    lock.unlock();
    editor.log->Publish();  // may write to the editor's socket
    lock.lock();
    const auto is_over = [&]() REQUIRES(mutex) { return pending->second.answer || editor.is_gone; };
    static_cast<void>(changed.wait_for(lock, stop, patience, is_over));
    auto answer = std::move(pending->second.answer);
    editor.pending.erase(pending);
    if (answer) return *std::move(answer);
    if (editor.is_gone) return Fail(NoEditor("the editor has gone"));
    if (method == "call") {
      editor.log->AppendFrames(Frame("editor_cancel", {{"request_id", id}}));
      lock.unlock();
      editor.log->Publish();
    }
    return Fail(NoEditor("the editor does not answer"));
  }

  // The editor has gone or is replaced.
  void Leave(Editor& editor) REQUIRES(mutex) {
    editor.is_gone = true;
    editor.tools.reset();  // they hold a reference to the editor
    offered_bytes -= std::exchange(editor.offered_bytes, 0);
  }

  Mutex mutex;
  std::condition_variable_any changed;
  std::map<ChatId, std::shared_ptr<Editor>> editors GUARDED_BY(mutex);
  std::size_t offered_bytes GUARDED_BY(mutex) = 0;
};

// --- files -----------------------------------------------------------------------------------------------------------

class Editors::Files final : public EditorFiles {
 public:
  Files(std::shared_ptr<State> state, ChatId chat) : state_(std::move(state)), chat_(std::move(chat)) {}

  std::optional<std::string> Read(const std::string& path, const std::stop_token& stop) override {
    auto answer = Ask({{"method", "read"}, {"path", path}}, /*needs_writes=*/false, stop);
    if (!answer || !answer->content) return std::nullopt;
    return ToValidUtf8(*answer->content);
  }

  Result<void> Write(const std::string& path, const std::string& content, const std::stop_token& stop) override {
    const auto answer =
        TRY(Ask({{"method", "write"}, {"path", path}, {"content", content}}, /*needs_writes=*/true, stop));
    if (!answer.error.empty()) return Fail(MakeError(ErrorCode::kIo, "the editor says: " + answer.error));
    return {};
  }

 private:
  Result<EditorAnswer> Ask(Json request, bool needs_writes, const std::stop_token& stop) {
    const auto editor = state_->EditorOf(chat_);
    if (!editor) return Fail(NoEditor("no editor is connected"));
    if (!editor->abilities.reads) return Fail(NoEditor("the editor does not show its files"));
    if (needs_writes && !editor->abilities.writes) return Fail(NoEditor("the editor cannot write for others"));
    return state_->Ask(*editor, std::move(request), kPatience, stop);
  }

  const std::shared_ptr<State> state_;
  const ChatId chat_;
};

// --- tools -----------------------------------------------------------------------------------------------------------

// The server does not know what the tool does, so each call asks, and grants hold only for the tool as it was, by its
// terms.
class Editors::OfferedTool final : public Tool {
 public:
  OfferedTool(std::shared_ptr<State> state, std::shared_ptr<Editor> editor, EditorTool offer)
      : state_(std::move(state)),
        editor_(std::move(editor)),
        server_(offer.server),
        terms_(offer.terms),
        any_arguments_(offer.any_arguments) {
    traits_.spec = std::move(offer.spec);
    traits_.read_only = traits_.idempotent = false;
    traits_.requires_approval = true;
    traits_.risk = Risk::kHigh;
    traits_.approval_reason = "runs beside the editor, by " + offer.server;
    traits_.origin = {.kind = ToolOrigin::Kind::kClient,
                      .name = offer.server,
                      .digest = Sha256Digest({traits_.spec.description, "\n", traits_.spec.parameters})};
    traits_.terms = DumpJson({"editor", offer.server, offer.terms});
  }

  const ToolTraits& traits() const override { return traits_; }

  std::vector<CallPattern> PatternsOf(std::string_view) const override {
    if (!any_arguments_) return {};
    return {{std::string(every_call::kPattern), *MeaningOf(every_call::kPattern, PatternUse::kAllow)}};
  }
  Result<std::string> MeaningOf(std::string_view pattern, PatternUse) const override {
    if (!any_arguments_) return Fail(ErrorCode::kInvalidArgument, "this tool has no patterns");
    return every_call::MeaningOf(pattern, "Calls " + traits_.spec.name + ", which runs beside the editor, by " +
                                              server_ + ", with any arguments, as long as both are what they are now.");
  }
  std::optional<std::vector<std::size_t>> CoveredBy(const std::vector<std::string>& patterns,
                                                    std::string_view) const override {
    return any_arguments_ ? every_call::CoveredBy(patterns) : std::nullopt;
  }
  Touch Touches(std::string_view, std::string_view) const override { return Touch::kYes; }

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    auto given = ParseJson(arguments.empty() ? "{}" : arguments);
    if (!given) return {.output = given.error().message, .is_error = true};
    auto answer = state_->Ask(
        *editor_,
        {{"method", "call"}, {"tool", traits_.spec.name}, {"arguments", *std::move(given)}, {"terms", terms_}},
        context.timeout, context.stop);
    if (!answer) return {.output = "The call came to nothing: " + answer.error().message, .is_error = true};
    if (!answer->outcome) return {.output = "The editor says: " + answer->error, .is_error = true};
    return *std::move(answer->outcome);
  }

 private:
  const std::shared_ptr<State> state_;
  const std::shared_ptr<Editor> editor_;
  const std::string server_, terms_;
  const bool any_arguments_;
  ToolTraits traits_;
};

class Editors::ChatTools final : public ToolRegistry {
 public:
  ChatTools(std::shared_ptr<State> state, ChatId chat, const ToolRegistry& all)
      : state_(std::move(state)), chat_(std::move(chat)), all_(all) {}

  std::shared_ptr<const ToolSet> Current() const override {
    auto base = all_.Current();
    OfferedTools offered = state_->ToolsOf(chat_);
    if (!offered) return base;
    const MutexLock lock(mutex_);
    if (base != base_ || offered != offered_) {
      current_ = all_.With(*offered);
      base_ = std::move(base);
      offered_ = std::move(offered);
    }
    return current_;
  }
  std::vector<ToolServer> Servers() const override { return all_.Servers(); }

 private:
  const std::shared_ptr<State> state_;
  const ChatId chat_;
  const ToolRegistry& all_;
  mutable Mutex mutex_;
  mutable std::shared_ptr<const ToolSet> base_ GUARDED_BY(mutex_), current_ GUARDED_BY(mutex_);  // made of base_
  mutable OfferedTools offered_ GUARDED_BY(mutex_);                                              // and of offered_
};

// --- connections -----------------------------------------------------------------------------------------------------

Editors::Editors() : state_(std::make_shared<State>()) {}

Result<EditorConnection> Editors::Connect(const ChatId& chat, EditorAbilities abilities) {
  const std::shared_ptr<Editor> editor(new Editor{.abilities = abilities});
  std::shared_ptr<Editor> before;
  {
    const MutexLock lock(state_->mutex);
    if (state_->editors.size() >= kMostEditors && !state_->editors.contains(chat)) {
      return Fail(Reason::kOverloaded, "too many editors are connected");
    }
    before = std::exchange(state_->editors[chat], editor);
    if (before) state_->Leave(*before);
  }
  state_->changed.notify_all();
  if (before) before->log->Close();
  editor->log->AppendFrames(Frame("editor_open", {{"chat_id", chat.str()}}));
  editor->log->Publish();
  const auto leave = [state = state_, chat, editor](void*) {
    {
      const MutexLock lock(state->mutex);
      state->Leave(*editor);
      const auto found = state->editors.find(chat);
      if (found != state->editors.end() && found->second == editor) state->editors.erase(found);
    }
    state->changed.notify_all();
  };
  return EditorConnection{.log = editor->log, .hold = std::shared_ptr<void>(nullptr, leave)};
}

Result<std::size_t> Editors::Offer(const ChatId& chat, std::vector<EditorTool> tools, const ToolRegistry& all) {
  const auto none = [] { return Fail(ErrorCode::kNotFound, "no editor is connected with this chat"); };
  const auto editor = state_->EditorOf(chat);
  if (!editor) return none();
  std::vector<std::shared_ptr<Tool>> offered;
  std::size_t bytes = 0;
  for (EditorTool& tool : tools) {
    bytes += tool.spec.name.size() + tool.spec.description.size() + tool.spec.parameters.size() + tool.terms.size();
    offered.push_back(std::make_shared<OfferedTool>(state_, editor, std::move(tool)));
  }
  const auto set = all.With(offered);
  const std::size_t taken = static_cast<std::size_t>(std::ranges::count_if(
      offered, [&](const auto& tool) { return set->Find(tool->traits().spec.name) == tool.get(); }));
  const MutexLock lock(state_->mutex);
  if (editor->is_gone) return none();
  if (state_->offered_bytes - editor->offered_bytes + bytes > kMostOffered) {
    return Fail(Reason::kOverloaded, "the tools of all editors that are connected are too much");
  }
  state_->offered_bytes += bytes - std::exchange(editor->offered_bytes, bytes);
  editor->tools =
      offered.empty() ? nullptr : std::make_shared<const std::vector<std::shared_ptr<Tool>>>(std::move(offered));
  return taken;
}

Result<void> Editors::Answer(const ChatId& chat, std::string_view request_id, EditorAnswer answer) {
  {
    const MutexLock lock(state_->mutex);
    const auto editor = state_->editors.find(chat);
    const auto none = [] { return Fail(ErrorCode::kNotFound, "no such request waits for this chat's editor"); };
    if (editor == state_->editors.end()) return none();
    const auto pending = editor->second->pending.find(request_id);
    if (pending == editor->second->pending.end() || pending->second.answer) return none();
    const std::string& method = pending->second.method;
    if (answer.error.empty() && answer.outcome.has_value() != (method == "call")) {
      return Fail(ErrorCode::kInvalidArgument, "this does not answer a request of the method \"" + method + "\"");
    }
    pending->second.answer = std::move(answer);
  }
  state_->changed.notify_all();
  return {};
}

std::unique_ptr<EditorFiles> Editors::FilesOf(const ChatId& chat) { return std::make_unique<Files>(state_, chat); }

std::shared_ptr<const ToolSet> Editors::ToolsNow(const ChatId& chat, const ToolRegistry& all) const {
  const OfferedTools offered = state_->ToolsOf(chat);
  return offered ? all.With(*offered) : all.Current();
}

std::unique_ptr<ToolRegistry> Editors::ToolsOf(const ChatId& chat, const ToolRegistry& all) {
  return std::make_unique<ChatTools>(state_, chat, all);
}

}  // namespace reprise
