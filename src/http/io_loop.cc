#include "http/io_loop.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include "base/guarded.h"
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
      } catch (const std::bad_alloc&) {  // one task was not done; its connection's time limit ends it
        LogWarning("a connection could not be served: no memory left", {});
      } catch (const std::exception& error) {  // likewise
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
  error_code ignored;  // the descriptor is gone either way
  impl_->descriptor.close(ignored);
}

}  // namespace reprise
