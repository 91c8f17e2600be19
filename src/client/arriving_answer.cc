#include "client/arriving_answer.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace reprise {

ArrivingAnswer::ArrivingAnswer() : arrived_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void ArrivingAnswer::OnHead(int status, const HttpHeaders& headers) {
  {
    const MutexLock lock(mutex_);
    status_ = status;
    headers_ = headers;
  }
  Tell();
}

bool ArrivingAnswer::OnData(std::string_view bytes) {
  bool is_first = false;
  {
    const MutexLock lock(mutex_);
    is_first = bytes_.empty();
    bytes_.append(bytes);
  }
  if (is_first) Tell();  // else the reader has been told, and has not come yet
  return true;
}

void ArrivingAnswer::Done(Result<void> ended) {
  {
    const MutexLock lock(mutex_);
    ended_ = std::move(ended);
  }
  Tell();
}

ArrivingAnswer::Taken ArrivingAnswer::Take(std::string& bytes) {
  std::uint64_t count;
  [[maybe_unused]] const ssize_t size = ::read(arrived_.get(), &count, sizeof count);  // none: nothing has come
  bytes.clear();
  const MutexLock lock(mutex_);
  bytes_.swap(bytes);
  return {status_, headers_, ended_};
}

void ArrivingAnswer::Tell() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t size = ::write(arrived_.get(), &one, sizeof one);
}

}  // namespace reprise
