#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "app/options.h"
#include "base/environment.h"
#include "base/unique_fd.h"
#include "reprise/options.h"
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

// The URL of the server that uses the data folder of `options`. If there is none it is started with `flags` and kept in
// `own`. Waits while another one is just starting or ending.
Result<std::string> FindOrStartServer(const Options& options, const Flags& flags, const Environment& environment,
                                      std::unique_ptr<OwnServer>& own);

// In the server: sends this process SIGTERM when nobody holds the other end of `held` any more and `is_used` says no,
// which it is asked by a thread of its own, five times a second from then on. The destructor ends the watch.
class ReleaseWatch {
 public:
  ReleaseWatch(int held, std::function<bool()> is_used);
  ReleaseWatch(const ReleaseWatch&) = delete;
  ReleaseWatch& operator=(const ReleaseWatch&) = delete;
  ~ReleaseWatch();

 private:
  void Watch(int held) const;

  const std::function<bool()> is_used_;
  const UniqueFd ended_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace reprise
