#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/result.h"
#include "reprise/timestamp.h"

namespace reprise {

// How a background job has ended.
struct JobEnd {
  // "exited", "signalled", "timed_out", "stopped" (by a person, an agent or the server), "failed" (it could not be
  // started) or "lost" (it ended with its server, or another server has taken over the chat).
  std::string reason{};
  std::optional<int> status{};  // "exited": the exit status; "signalled": the number of the signal
  std::string message{};        // "failed": why
  bool operator==(const JobEnd&) const = default;
};

// A TCP port that a job listens on.
struct JobPort {
  enum class State {
    kClosed,   // in the sandbox, out of everybody's reach
    kOpen,     // a person has opened it to browsers of this user on this machine
    kOutside,  // the job has no sandbox and listens on the machine itself
  };
  std::uint16_t port = 0;
  std::vector<std::string> addresses{};  // that it listens at; empty: at none any more
  State state = State::kClosed;
  std::string url{};  // where browsers find it, if it speaks HTTP; empty: nowhere
};
// "closed", "open", "outside".
std::string_view ToString(JobPort::State state);

// The ports of one job. Thread-safe.
class JobPorts {
 public:
  virtual ~JobPorts() = default;
  // Those that it listens on now, and those that are open; ascending. At most some dozens.
  virtual std::vector<JobPort> List() const = 0;
  // Opens a port on a loopback address that no server of ours has, so that no cookie of ours is sent there. Does
  // nothing if it is open. kConflict (reason "not_listening"), kUnavailable (reason "too_many_ports", "unavailable").
  virtual Result<JobPort> Open(std::uint16_t port) = 0;
  // Closes it and ends its connections. False: it was not open.
  virtual bool Close(std::uint16_t port) = 0;
};

// A command that runs in the background, beyond the call that started it. It belongs to its chat, not to a branch.
struct Job {
  std::string id{};  // "job_" and 64 random bits in lower-case hex
  std::string command{};
  Timestamp started_at{};
  std::optional<Timestamp> ended_at{};
  std::optional<JobEnd> end{};     // nullopt: it runs
  std::uint64_t output_bytes = 0;  // so far, after redaction
  std::string kept{};              // says where the whole output is kept, after the end; empty: it is short
  std::vector<JobPort> ports{};    // while it runs
};

// A part of a job's output.
struct JobOutput {
  Job job;
  std::string text{};          // valid UTF-8
  std::uint64_t left_out = 0;  // bytes before `text` that the caller has not read and that memory no longer holds
  std::uint64_t next = 0;      // where to read on
};

// "runs, with 12 bytes of output so far", "has ended with exit status 1", ...
std::string Described(const Job& job);

// The background jobs of one chat. Thread-safe. kNotFound (reason "no_such_job"): the chat has no job of this id.
class JobsOfChat {
 public:
  virtual ~JobsOfChat() = default;
  // Runs a command to its end. Called on a thread of its own; returns, with all processes gone, soon after `stop`.
  using Main = std::function<JobEnd(std::stop_token stop, const std::function<void(std::string_view)>& on_bytes)>;
  // `ports` may be null: they are not known. kUnavailable (reason "too_many_jobs"): so many run that no more may start.
  // Nothing here opens a port, because only people may.
  virtual Result<Job> Start(std::string command, Main main, std::shared_ptr<JobPorts> ports) = 0;
  // The output after `after` bytes; nullopt: after what the last such call returned. Waits for output or the end, at
  // most `wait`, or until `stop`.
  virtual Result<JobOutput> Read(const std::string& id, std::optional<std::uint64_t> after,
                                 std::chrono::milliseconds wait, const std::stop_token& stop) = 0;
  // Kills the job with all its processes and waits for its end. Does nothing if it has ended.
  virtual Result<Job> Stop(const std::string& id) = 0;
  // Those that run, and the last ones that have ended; oldest first.
  virtual std::vector<Job> List() const = 0;
};

}  // namespace reprise
