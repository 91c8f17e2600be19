#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <stop_token>

#include "base/system.h"

namespace reprise {

// A descriptor that becomes readable, and stays so, when a stop is requested.
class StopEvent {
 public:
  explicit StopEvent(const std::stop_token& stop)
      : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), signal_(stop, Signal{fd_.get()}) {}
  int fd() const { return fd_.get(); }

 private:
  struct Signal {
    int fd;
    void operator()() const {
      const std::uint64_t one = 1;
      [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof one);
    }
  };

  UniqueFd fd_;
  std::stop_callback<Signal> signal_;  // last, so that it goes before the descriptor
};

}  // namespace reprise
