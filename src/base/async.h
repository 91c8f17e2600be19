#pragma once

#include <atomic>
#include <chrono>
#include <coroutine>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

// Work that waits without holding a thread, written as one function from top to bottom (C++20 coroutines):
//
//   Async<std::string> Greet(const Executor& executor) {
//     FromCallback<std::string> name(executor, [](auto done) { AskForName(done); });
//     co_return "Hello, " + co_await name;
//   }
//
// Give every awaited object a name, because GCC 12 destroys some temporaries of a co_await expression twice.
namespace reprise {

// Runs a job on a thread that may block.
using Executor = std::function<void(std::function<void()>)>;
// Calls a function later, on a thread that must not be held up.
using Delay = std::function<void(std::chrono::milliseconds, std::function<void()>)>;

// A coroutine that starts when it is awaited, at most once, and returns a T. Its exceptions propagate to the awaiter.
// Arguments taken by reference must outlive it.
template <typename T>
class [[nodiscard]] Async {
 public:
  struct promise_type {
    Async get_return_object() { return Async(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct GoOn {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> ended) noexcept {
          return ended.promise().waiting;
        }
        void await_resume() noexcept {}
      };
      return GoOn{};
    }
    void return_value(T value) { result.template emplace<T>(std::move(value)); }
    void unhandled_exception() { result.template emplace<std::exception_ptr>(std::current_exception()); }

    std::variant<std::monostate, T, std::exception_ptr> result;
    std::coroutine_handle<> waiting;
  };

  Async(Async&& other) noexcept : coroutine_(std::exchange(other.coroutine_, {})) {}
  Async& operator=(Async&&) = delete;
  ~Async() {
    if (coroutine_) coroutine_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiting) noexcept {
    coroutine_.promise().waiting = waiting;
    return coroutine_;
  }
  T await_resume() {
    auto& result = coroutine_.promise().result;
    if (auto* thrown = std::get_if<std::exception_ptr>(&result)) std::rethrow_exception(*thrown);
    return std::move(std::get<T>(result));
  }

 private:
  explicit Async(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}
  std::coroutine_handle<promise_type> coroutine_;
};

// The result of coroutines that return no value.
struct Nothing {};

// The first coroutine of a chain. It starts at once and is never awaited. Its exceptions propagate to the code that
// resumed it last.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    [[noreturn]] void unhandled_exception() { throw; }
  };
};

// Awaits an operation that calls back once, from any thread and perhaps immediately. `begin` receives the callback. The
// awaiter resumes as a job of `executor` after `begin` has returned, so everything that `begin` refers to stays alive.
template <typename T>
class [[nodiscard]] FromCallback {
 public:
  using Done = std::function<void(T)>;
  FromCallback(const Executor& executor, std::function<void(Done)> begin)
      : executor_(executor), begin_(std::move(begin)) {}
  FromCallback(const FromCallback&) = delete;
  FromCallback& operator=(const FromCallback&) = delete;

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    waiting_ = waiting;
    begin_([this](T value) {
      value_.emplace(std::move(value));
      Arrive();
    });
    Arrive();
  }
  T await_resume() { return *std::move(value_); }

 private:
  // The second arrival resumes the coroutine, which may destroy this object. So nothing after that touches a member.
  void Arrive() {
    if (arrived_.fetch_add(1) == 0) return;
    const Executor executor = executor_;
    executor([waiting = waiting_] { waiting.resume(); });
  }

  const Executor& executor_;
  const std::function<void(Done)> begin_;
  std::coroutine_handle<> waiting_;
  std::optional<T> value_;
  std::atomic<int> arrived_ = 0;
};

// Blocks until `work` has ended. The work must not need this thread to proceed.
template <typename T>
T WaitFor(Async<T> work) {
  // Shared, because the waiting thread may return before set_value does.
  const auto ended = std::make_shared<std::promise<T>>();
  [](Async<T> awaited, std::shared_ptr<std::promise<T>> end) -> Detached {
    try {
      end->set_value(co_await awaited);
    } catch (...) {
      end->set_exception(std::current_exception());
    }
  }(std::move(work), ended);
  return ended->get_future().get();
}

}  // namespace reprise
