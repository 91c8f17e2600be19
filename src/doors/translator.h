#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "reprise/engine.h"
#include "reprise/event.h"
#include "reprise/event_log.h"

namespace reprise {

// An event as an EventLog frames it. The views are valid as long as the log's bytes.
struct EventFrame {
  std::uint64_t seq = 0;
  std::string_view name = {};  // "text_delta"
  std::string_view data = {};  // one line of JSON

  // The member "content" of a delta as written, a JSON string with its quotes; empty if this is no text_delta,
  // thinking_delta or tool_output_delta. Does not parse, because every token takes this path.
  std::string_view ContentLiteral() const;
};

// Removes the first frame from `frames`, which come from EventLog::Read and are not empty. nullopt if it is no event.
std::optional<EventFrame> TakeFrame(std::string_view& frames);

// Calls `take` with each event that the log shows now.
template <typename Take>
void EachEvent(const EventLog& log, const Take& take) {
  for (std::uint64_t offset = 0;;) {
    std::string_view frames = log.Read(offset).bytes;
    if (frames.empty()) return;
    offset += frames.size();
    while (!frames.empty()) {
      if (const auto event = TakeFrame(frames)) take(*event);
    }
  }
}

// Translates the events of a run for a client of another protocol. One object translates one response. One thread at a
// time calls it and holds locks of the run, so it must neither block nor call the engine.
class Translator {
 public:
  virtual ~Translator() = default;

  // Called before any event. Like the others, appends the bytes for the client to `out`.
  virtual void Begin(std::string& out) { static_cast<void>(out); }
  void Take(const EventFrame& frame, std::string& out);
  // All events published so far have been taken; events that belong together are published together.
  virtual void Rest(std::string& out) { static_cast<void>(out); }
  // The run's log is closed. `complete`: with its interaction_complete. Otherwise the server is stopping and the run
  // waits for its next start, or the run never began.
  virtual void End(bool complete, std::string& out) = 0;
  // Asked after each Take and Rest: true if the response ends here, whatever becomes of the run (it no longer counts as
  // watched).
  virtual bool is_over() const { return false; }

 protected:
  enum class Piece { kText, kThinking };
  // A delta of a text or of thinking. `escaped` is the inside of a JSON string and never empty. It is not parsed,
  // because every token takes this path.
  virtual void TakePiece(std::uint64_t seq, Piece piece, std::string_view escaped, std::string& out) {
    static_cast<void>(seq), static_cast<void>(piece), static_cast<void>(escaped), static_cast<void>(out);
  }
  // Any other event.
  virtual void TakeEvent(const AgentEvent& event, std::string& out) = 0;
};

// A response that is made of a run's events while they are published. The publishing thread also translates, so an
// event crosses no thread.
struct TranslatedStream {
  std::shared_ptr<EventLog> log;  // for one client: frames without ids, forgotten once sent
  std::shared_ptr<void> hold;     // the client's hold on the run (EventSubscription); drop it when the client is gone
  std::weak_ptr<EventLogListener> translation;  // its OnPublished has the translator look again without a new event
};

// Translates the events of `run` from `offset` of its log. Sends everything that the log holds now, however much it is.
// Later the client is cut off if it reads nothing while some megabytes wait.
TranslatedStream Translate(EventSubscription run, std::unique_ptr<Translator> translator, std::uint64_t offset = 0);

}  // namespace reprise
