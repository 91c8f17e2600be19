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
// What is awaited has a name: GCC 12 destroys some temporaries of a co_await expression twice.
namespace reprise {

// Runs a job on a thread that may block.
using Executor = std::function<void(std::function<void()>)>;
// Calls a function later, on a thread that must not be held up.
using Delay = std::function<void(std::chrono::milliseconds, std::function<void()>)>;

// A coroutine that begins when it is awaited, at most once, and gives a T. An exception that leaves it goes on in who
// awaits it. Arguments that it takes by reference must live until it has ended.
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

// For coroutines that give nothing.
struct Nothing {};

// The first coroutine of a chain: begins at once, and nobody awaits it. An exception that leaves it goes to whoever
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

// Awaits something that ends by calling back, once, from any thread and perhaps at once. `begin` is given the function
// to call. What awaits goes on with a job of `executor`, not before `begin` has returned: until then all that `begin`
// refers to is there.
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
  // The second to arrive lets the coroutine go on, and after that nothing of this object may be left in use.
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

// Blocks until `work` has ended. What it awaits must not need this thread to go on.
template <typename T>
T WaitFor(Async<T> work) {
  // Kept by both: who waits may be gone before the other one has said its last.
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
