#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/system.h"
#include "reprise/result.h"
#include "reprise/transport.h"

namespace reprise {

// An answer that the transport's thread receives, for one other thread that takes it piece by piece.
class ArrivingAnswer final : public HttpResponseHandler {
 public:
  ArrivingAnswer();

  // Readable when Take may find something.
  int descriptor() const { return arrived_.get(); }

  struct Taken {
    int status = 0;  // 0: the head has not come
    HttpHeaders headers;
    std::optional<Result<void>> ended;  // nullopt: it goes on
  };
  // Does not wait. `bytes` becomes what has come since; its memory is used for what comes next.
  Taken Take(std::string& bytes);

  // --- the transport's thread
  void OnHead(int status, const HttpHeaders& headers) override;
  bool OnData(std::string_view bytes) override;
  void Done(Result<void> ended);

 private:
  void Tell();

  const UniqueFd arrived_;
  Mutex mutex_;
  int status_ GUARDED_BY(mutex_) = 0;
  HttpHeaders headers_ GUARDED_BY(mutex_);
  std::string bytes_ GUARDED_BY(mutex_);
  std::optional<Result<void>> ended_ GUARDED_BY(mutex_);
};

}  // namespace reprise
