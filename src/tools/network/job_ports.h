#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "reprise/jobs.h"
#include "tools/network/inner_network.h"

namespace reprise {

// The ports of a job in the sandbox, whose network nobody else reaches. An open one is a listener on a loopback address
// that this object picks at random; it lets in programs of this user alone. Its connections are led into the sandbox,
// with a thread each, as many as there are ways in.
class SandboxPorts final : public JobPorts {
 public:
  // `own_host`: where this server listens, which is never the address. `taken`: ports of loopback there that are ours.
  SandboxPorts(std::string own_host, std::vector<std::uint16_t> taken);
  ~SandboxPorts() override;

  InnerNetwork& network() { return network_; }
  // Lets open connections end, for a second if `in_peace`, and ends the others. Nothing opens afterwards.
  void End(bool in_peace);

  std::vector<JobPort> List() const override;
  Result<JobPort> Open(std::uint16_t port) override;
  bool Close(std::uint16_t port) override;

 private:
  class Opened;

  std::map<std::uint16_t, JobPort> Listening() const;

  const std::string address_;
  const std::vector<std::uint16_t> taken_;
  mutable InnerNetwork network_;
  mutable Mutex mutex_;
  bool ended_ GUARDED_BY(mutex_) = false;
  std::map<std::uint16_t, std::unique_ptr<Opened>> opened_ GUARDED_BY(mutex_);
};

// The ports of a job without a sandbox: those of all processes below its supervisor.
class MachinePorts final : public JobPorts {
 public:
  // `own_host`: where this server listens, to which no link leads.
  explicit MachinePorts(const std::string& own_host);
  void Begin(pid_t supervisor) { supervisor_ = supervisor; }
  void End() { supervisor_ = 0; }

  std::vector<JobPort> List() const override;
  Result<JobPort> Open(std::uint16_t port) override;
  bool Close(std::uint16_t port) override;

 private:
  const std::string address_;
  std::atomic<pid_t> supervisor_ = 0;
};

}  // namespace reprise
