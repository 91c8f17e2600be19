#include "wire/threads.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <exception>
#include <iterator>
#include <new>
#include <system_error>
#include <utility>

#include "base/logging.h"

namespace reprise {

namespace asio = boost::asio;
using boost::system::error_code;

class IoLoop::Impl {
 public:
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> keep_running{context.get_executor()};
  asio::steady_timer timer{context};
  std::jthread thread;
};

IoLoop::IoLoop() : impl_(std::make_unique<Impl>()) {}
IoLoop::~IoLoop() { Stop(); }

void IoLoop::Start() {
  impl_->thread = std::jthread([this] {
    for (;;) {
      try {
        impl_->context.run();
        return;
      } catch (const std::bad_alloc&) {  // a task was lost; its connection will time out
        LogWarning("a connection could not be served: out of memory", {});
      } catch (const std::exception& error) {  // the same here
        LogError("a connection could not be served", {{"what", error.what()}});
      } catch (...) {
        LogError("a connection could not be served", {});
      }
    }
  });
}

void IoLoop::Stop() {
  impl_->context.stop();
  if (impl_->thread.joinable()) impl_->thread.join();
}

void IoLoop::Post(Task task) { asio::post(impl_->context, std::move(task)); }

void IoLoop::After(std::chrono::milliseconds delay, Task task) {
  impl_->timer.expires_after(delay);
  impl_->timer.async_wait([task = std::move(task)](error_code ec) {
    if (!ec) task();
  });
}

class IoLoop::Socket::Impl {
 public:
  Impl(asio::io_context& context, int fd) : descriptor(context, fd) {}
  asio::posix::stream_descriptor descriptor;
};

IoLoop::Socket::Socket(IoLoop& loop, int fd) : impl_(std::make_unique<Impl>(loop.impl_->context, fd)) {}
IoLoop::Socket::~Socket() { Close(); }

int IoLoop::Socket::fd() const { return impl_->descriptor.is_open() ? impl_->descriptor.native_handle() : -1; }

void IoLoop::Socket::WhenReadable(Task task) {
  impl_->descriptor.async_wait(asio::posix::stream_descriptor::wait_read, [task = std::move(task)](error_code ec) {
    if (ec != asio::error::operation_aborted) task();
  });
}

void IoLoop::Socket::WhenWritable(Task task) {
  impl_->descriptor.async_wait(asio::posix::stream_descriptor::wait_write, [task = std::move(task)](error_code ec) {
    if (ec != asio::error::operation_aborted) task();
  });
}

void IoLoop::Socket::Close() {
  error_code ignored;  // the descriptor is closed in any case
  impl_->descriptor.close(ignored);
}

namespace {

constexpr std::chrono::seconds kIdleFor{10};  // of an additional thread

}  // namespace

WorkerPool::WorkerPool(std::size_t share, std::size_t most) : share_(share), most_(std::max(share, most)) {
  try {
    const MutexLock lock(mutex_);
    for (std::size_t i = 0; i < share_; ++i) AddThread();
  } catch (...) {  // the system has no thread left: those that have begun must end first
    Join();
    throw;
  }
}

WorkerPool::~WorkerPool() { Join(); }

void WorkerPool::AddThread() {
  for (std::thread& thread : ended_) thread.join();
  ended_.clear();
  threads_.emplace_back([this] { Work(); });
}

void WorkerPool::Post(const std::string& whose, std::function<void()> task) {
  MutexLock lock(mutex_);
  if (joining_) return;
  const auto line = lines_.try_emplace(whose).first;
  line->second.tasks.push_back(std::move(task));
  if (line->second.tasks.size() == 1) turns_.push_back(line);
  if (idle_ < Startable() && threads_.size() < most_) {
    try {
      AddThread();
    } catch (const std::system_error&) {  // the task waits for another thread
      LogWarning("the system has no thread left", {{"workers", threads_.size()}});
    }
  }
  lock.unlock();  // so that the woken thread need not wait for it
  changed_.notify_one();
}

// The number of tasks that idle threads could begin now.
std::size_t WorkerPool::Startable() const {
  std::size_t count = 0;
  for (const auto& line : turns_) count += std::min(line->second.tasks.size(), share_ - line->second.running);
  return count;
}

std::optional<WorkerPool::Lines::iterator> WorkerPool::Next() {
  const auto next = std::ranges::find_if(turns_, [&](const auto& line) { return line->second.running < share_; });
  if (next == turns_.end()) return std::nullopt;
  const auto line = *next;
  turns_.erase(next);
  return line;
}

void WorkerPool::Work() {
  MutexLock lock(mutex_);
  for (;;) {
    if (const auto line = Next()) {
      auto& [tasks, running] = (*line)->second;
      auto task = std::move(tasks.front());
      tasks.pop_front();
      ++running;
      if (!tasks.empty()) turns_.push_back(*line);
      lock.unlock();
      Guarded("a request", task);
      task = nullptr;  // before the line counts it as done
      lock.lock();
      --running;
      if (tasks.empty() && running == 0) lines_.erase(*line);
      continue;
    }
    if (joining_) return;
    ++idle_;
    bool in_vain = false;
    if (threads_.size() > share_) {
      in_vain = changed_.wait_for(lock, kIdleFor) == std::cv_status::timeout;
    } else {
      changed_.wait(lock);
    }
    --idle_;
    if (in_vain && turns_.empty() && !joining_ && threads_.size() > share_) break;
  }
  const auto self = std::ranges::find_if(
      threads_, [](const std::thread& thread) { return thread.get_id() == std::this_thread::get_id(); });
  ended_.push_back(std::move(*self));
  threads_.erase(self);
}

void WorkerPool::Join() {
  std::list<std::thread> threads;
  std::vector<std::deque<std::function<void()>>> dropped;  // destroyed unlocked: tasks may own their poster
  {
    const MutexLock lock(mutex_);
    joining_ = true;
    for (const auto& line : turns_) dropped.push_back(std::exchange(line->second.tasks, {}));
    turns_.clear();
    changed_.notify_all();
    threads.swap(threads_);
    std::move(ended_.begin(), ended_.end(), std::back_inserter(threads));
    ended_.clear();
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace reprise
