#pragma once

#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

#include "process/supervised_process.h"

namespace reprise {

// Serves a command until it is gone: reads its output, writes its input and, if asked, ends it step by step, all on the
// thread of Run. Subclasses handle the output.
class ChildLoop {
 public:
  ChildLoop(const ChildLoop&) = delete;
  ChildLoop& operator=(const ChildLoop&) = delete;

 protected:
  // The steps of ending a command, in order.
  enum class Ending { kNot, kInputClosed, kTerminated, kKilled, kForced, kGivenUp };
  struct Patience {  // how long each step may take
    std::chrono::milliseconds input_closed{}, terminated{}, killed{}, forced{};
  };

  // `wake` is an event descriptor (eventfd(2)) that must live as long.
  ChildLoop(SupervisedProcess process, int wake, Patience patience)
      : process_(std::move(process)), wake_(wake), patience_(patience) {}
  virtual ~ChildLoop() = default;

  // Returns when the command is gone; false if a part of it cannot be ended.
  bool Run();
  // Takes this step now, and each next step when the patience is over.
  void End(Ending step);
  void EndAfter(std::chrono::milliseconds patience) { deadline_ = Clock::now() + patience; }
  void StopReading() { output_open_ = errors_open_ = false; }

  Ending ending() const { return ending_; }
  bool is_reading() const { return output_open_; }
  SupervisedProcess& process() { return process_; }

  virtual void OnWake() = 0;
  virtual void OnOutput(std::string_view bytes) = 0;
  virtual void OnOutputEnd() {}
  virtual void OnErrors(std::string_view /*bytes*/) {}
  // Called when the patience with `ending()` is over.
  virtual void OnDeadline() { End(static_cast<Ending>(static_cast<int>(ending_) + 1)); }
  // The input to write next; empty if there is none now.
  virtual std::string_view Unsent() const = 0;
  // Reports so many bytes as written, or as impossible to write.
  virtual void Sent(std::size_t bytes) = 0;

 private:
  using Clock = std::chrono::steady_clock;

  void Step();
  int TimeLeft() const;
  // False if there is no output now or the output has ended.
  bool ReadOutput();
  bool ReadErrors();
  void WriteInput();

  SupervisedProcess process_;
  const int wake_;
  const Patience patience_;
  Ending ending_ = Ending::kNot;
  std::optional<Clock::time_point> deadline_;
  bool output_open_ = true;
  bool errors_open_ = process_.errors() >= 0;
  bool gone_ = false;
  std::vector<char> buffer_ = std::vector<char>(64 * 1024);
};

}  // namespace reprise
