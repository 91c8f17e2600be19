#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "cli/environment.h"
#include "cli/options.h"
#include "reprise/result.h"

namespace reprise {

// A server that a client has started for itself, in the background. It ends when nobody uses it any more: this process
// has gone, however it ended, no other client is connected and nothing runs (what waits for an answer is kept).
class OwnServer {
 public:
  // `reprise serve` with these flags and this environment on a free port of this machine. Returns when it listens. Its
  // log goes to $XDG_STATE_HOME/reprise/server.log (else ~/.local/state/reprise/server.log). A passphrase is asked at
  // the terminal. Failures are for the person at the terminal: what the server has said.
  static Result<std::unique_ptr<OwnServer>> Start(const Flags& flags, const Environment& environment);

  const std::string& url() const { return url_; }

 private:
  OwnServer(std::string url, UniqueFd held) : url_(std::move(url)), held_(std::move(held)) {}

  const std::string url_;
  const UniqueFd held_;  // the server reads its other end, and finds that it is closed
};

// In the server: blocks until nobody holds the other end of `descriptor` any more.
void AwaitRelease(int descriptor);

}  // namespace reprise
