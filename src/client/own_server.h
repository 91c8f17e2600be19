#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "app/options.h"
#include "app/turn_settings.h"
#include "base/system.h"
#include "client/server_access.h"
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

// The server that uses the data folder and runs turns as a server would that is started with these flags and this
// environment now. If there is none it is started and kept in `own`. Waits for one that is just starting or ending.
// kConflict (reason "other_settings"): the one that runs does otherwise; the message says in what, and how to stop it.
Result<RunningServer> FindOrStartServer(const Flags& flags, const Environment& environment,
                                        std::unique_ptr<OwnServer>& own);

// What the server of the data folder has noted that it runs turns with (SettingsOfTurns); empty if it has not.
TurnSettings NotedSettings(const Options& options);

// In the server: sends this process SIGTERM when nobody holds the other end of `held` any more and `close_if_unused`
// has said yes, which it is asked by a thread of its own, five times a second from then on. The destructor ends the
// watch.
class ReleaseWatch {
 public:
  ReleaseWatch(int held, std::function<bool()> close_if_unused);
  ReleaseWatch(const ReleaseWatch&) = delete;
  ReleaseWatch& operator=(const ReleaseWatch&) = delete;
  ~ReleaseWatch();

 private:
  void Watch(int held) const;

  const std::function<bool()> close_if_unused_;
  const UniqueFd ended_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace reprise
