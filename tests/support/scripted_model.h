#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "reprise/model_client.h"

namespace reprise {

// A model client that plays one function per request, on its own thread, and records the requests.
class ScriptedModel : public ModelClient {
 public:
  // A round may not have returned from Generate yet, where it started the next one.
  ~ScriptedModel() override {
    for (;;) {
      std::vector<std::jthread> joined;
      const std::lock_guard lock(mutex_);
      if (threads_.empty()) return;
      joined.swap(threads_);
    }
  }

  using Round = std::function<Result<ModelResponse>(const Messages&, ModelStream&, std::stop_token)>;

  void Then(Round round) {
    const std::lock_guard lock(mutex_);
    rounds_.push_back(std::move(round));
  }
  // Drops the rounds not yet requested.
  void Forget() {
    const std::lock_guard lock(mutex_);
    rounds_.clear();
  }
  void ThenAnswer(std::string text) {
    Then([text](const auto&, ModelStream& stream, std::stop_token) -> Result<ModelResponse> {
      stream.OnText(text);
      stream.OnBatchEnd();
      return ModelResponse{};
    });
  }
  void ThenCall(std::vector<ToolCall> calls, std::string text = {}) {
    Then([calls, text](const auto&, ModelStream& stream, std::stop_token) -> Result<ModelResponse> {
      if (!text.empty()) stream.OnText(text);
      stream.OnBatchEnd();
      ModelResponse response;
      response.tool_calls = calls;
      return response;
    });
  }
  // Sends `text` and is then silent until it is stopped.
  void ThenHang(std::string text) {
    Then([this, text](const auto&, ModelStream& stream, std::stop_token stop) -> Result<ModelResponse> {
      stream.OnText(text);
      stream.OnBatchEnd();
      std::unique_lock lock(mutex_);
      hanging_ = true;
      changed_.notify_all();
      changed_.wait(lock, stop, [] { return false; });
      hanging_ = false;
      return Fail(ErrorCode::kCancelled, "stopped");
    });
  }
  void AwaitHanging() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return hanging_; });
  }

  void Generate(const ModelRequest& request, ModelStream& stream, std::stop_token stop, Done done) override {
    Round round = [](const auto&, ModelStream&, std::stop_token) -> Result<ModelResponse> {
      return Fail(ErrorCode::kProvider, "the script is at its end");
    };
    const std::lock_guard lock(mutex_);
    requests_.push_back(request.messages);
    system_prompts_.emplace_back(request.system);
    if (!rounds_.empty()) {
      round = std::move(rounds_.front());
      rounds_.pop_front();
    }
    threads_.emplace_back([round = std::move(round), messages = request.messages, &stream, stop = std::move(stop),
                           done = std::move(done)] { done(round(messages, stream, stop)); });
  }
  std::vector<Messages> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  std::vector<std::string> system_prompts() const {
    const std::lock_guard lock(mutex_);
    return system_prompts_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Round> rounds_;
  std::vector<Messages> requests_;
  std::vector<std::string> system_prompts_;
  bool hanging_ = false;
  std::vector<std::jthread> threads_;  // guarded by mutex_; one per request
};

// A directory with only this model, named "scripted".
class ScriptedDirectory : public ModelDirectory {
 public:
  explicit ScriptedDirectory(ModelClient& client) : client_(client) {}
  Result<Resolved> Resolve(std::string_view name) const override {
    if (!name.empty() && name != name_) {
      return Fail(Error{.code = ErrorCode::kInvalidArgument, .reason = "unknown_model", .message = "unknown model"});
    }
    return Resolved{&client_, name_, name_};
  }
  const std::string& default_model() const override { return name_; }
  std::vector<Entry> List() const override { return {{name_, "scripted"}}; }

 private:
  ModelClient& client_;
  const std::string name_ = "scripted";
};

}  // namespace reprise
