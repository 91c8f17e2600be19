#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "app/options.h"
#include "app/settings.h"
#include "base/system.h"
#include "client/server_access.h"
#include "reprise/options.h"
#include "reprise/result.h"

namespace reprise {

// A server that a client starts for itself, in the background. It ends when it is unused: this process is gone, however
// it ended, no other client is connected, and nothing runs (runs that wait for an answer are stored).
class OwnServer {
 public:
  // Starts `reprise serve` with these flags and this environment on a free port. Returns when it listens. Its log goes
  // to $XDG_STATE_HOME/reprise/server.log (else ~/.local/state/reprise/server.log). It asks for a passphrase at the
  // terminal. A failure's message is for the person there, such as the last line that the server logged.
  static Result<std::unique_ptr<OwnServer>> Start(const Flags& flags, const Environment& environment);

  const std::string& url() const { return url_; }

 private:
  OwnServer(std::string url, UniqueFd held) : url_(std::move(url)), held_(std::move(held)) {}

  const std::string url_;
  const UniqueFd held_;  // the server watches the other end until this one is closed
};

// Finds the server of the data folder, or starts one and keeps it in `own`. Waits for a server that is just starting or
// ending. A client gives its chats their folder, mode and model. kConflict (reason "other_settings") if the server has
// other SettingsOfAllChats than these flags and environment give; the message names the differences and how to stop it.
Result<RunningServer> FindOrStartServer(const Flags& flags, const Environment& environment,
                                        std::unique_ptr<OwnServer>& own);

// The settings (SettingsOfTurns, or SettingsOfAllChats) that the data folder's server has noted; empty if it has not.
TurnSettings NotedSettings(const Options& options, bool of_all_chats = false);

// For the server: sends this process SIGTERM when the other end of `held` is closed and `close_if_unused` returns true.
// A thread of its own waits for the first and then calls `close_if_unused` five times a second. The destructor ends
// the watch.
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
  std::thread thread_;  // last, because it uses the others
};

}  // namespace reprise
