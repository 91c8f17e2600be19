#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "doors/event_frames.h"
#include "reprise/event.h"

namespace reprise {

// Turns the events of a run into what a client of another protocol is sent. One object translates one response; it is
// called by one thread at a time, which holds locks of the run: it must not block, nor ask the engine for anything.
class Translator {
 public:
  virtual ~Translator() = default;

  // Before any event. Adds the bytes that the client is sent, as the others below.
  virtual void Begin(std::string& out) { static_cast<void>(out); }
  void Take(const EventFrame& frame, std::string& out);
  // All that the run has published so far has been taken: what it shows at once comes before this together.
  virtual void Rest(std::string& out) { static_cast<void>(out); }
  // The run's log is closed. `complete`: with its interaction_complete; otherwise the server stops, and the run goes on
  // waiting at its next start, or it never began.
  virtual void End(bool complete, std::string& out) = 0;
  // Asked after each Take: the response ends here, whatever becomes of the run (which counts as listened to no more).
  virtual bool is_over() const { return false; }

 protected:
  enum class Piece { kText, kThinking };
  // A delta: more of what is being said. `escaped` is the inside of a JSON string, and never empty. It is not parsed,
  // because every token takes this path.
  virtual void TakePiece(std::uint64_t seq, Piece piece, std::string_view escaped, std::string& out) {
    static_cast<void>(seq), static_cast<void>(piece), static_cast<void>(escaped), static_cast<void>(out);
  }
  // Any other event.
  virtual void TakeEvent(const AgentEvent& event, std::string& out) = 0;
};

}  // namespace reprise
