#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "client/server_client.h"
#include "domain/transcript/transcript.h"
#include "reprise/event.h"
#include "reprise/result.h"

namespace reprise {

// Whether an interaction with this status runs or waits for a person.
bool IsRunning(const std::string& status);
// The running interaction in the answer of GET /chats/ID; null if there is none.
const Json& RunningIn(const Json& chat);
// "a turn waits for you"
std::string SayRunning(const Json& interaction);

// The questions in the answer of GET /approvals.
std::vector<PendingQuestion> QuestionsIn(const Json& waiting);
bool Has(const std::vector<PendingQuestion>& questions, const std::string& id);
// The call that asks to be allowed, in a few words, or the question.
std::string AskedBy(const PendingQuestion& question);
// "/chats/ID/interactions/ID"
std::string RunPath(const InteractionRef& run);

// The events of a run: begun by this client, or found running. If the server is lost, the stream can be resumed, also
// at another server: after the last event, or by the same request, which does not begin the run twice. For one thread.
class RunStream {
 public:
  // `server` must outlive this. `chat` is the id.
  RunStream(ServerClient& server, const std::string& chat) : server_(server), chat_(chat) {}

  // Begins a run by POST of `body` to `path`.
  void Start(std::string path, Json body);
  // Follows an interaction from its first event.
  void Attach(const std::string& interaction);
  // Does the same again after the last event received.
  void Resume();
  // From now on, pieces of text that arrive together become one event.
  void MergeText() { stream_->MergeText(); }

  int descriptor() const { return stream_->descriptor(); }
  // Takes the events that have arrived; does not wait.
  void Receive();
  struct Heard {
    std::string name;
    Json data;
    // nullopt: a frame of the stream ("queued", "stream_open", "stream_live"), or an event unknown to this program.
    std::optional<AgentEvent> event;
  };
  // The next event, in order and each number once; nullopt if all received events were returned.
  std::optional<Heard> Next();
  const std::deque<Heard>& received() const { return heard_; }
  // As ArrivingEvents::ended.
  const std::optional<Result<void>>& ended() const { return stream_->ended(); }

  // Covers all received events, even those that Next has not returned yet. Callers remove a question they answered.
  RunState& state() { return state_; }
  bool is_complete() const { return state_.status.has_value(); }
  // False while recorded events arrive, whose questions may already be answered.
  bool is_live() const { return is_live_; }
  // Whether the stream follows an interaction, and is not the response to the request that begins it.
  bool is_attached() const { return is_attached_; }
  // Empty until the run has begun.
  const std::string& interaction() const { return interaction_; }
  std::string path() const { return "/chats/" + chat_ + "/interactions/" + interaction_; }

 private:
  ServerClient& server_;
  const std::string chat_;
  std::unique_ptr<ArrivingEvents> stream_;
  std::string start_path_, key_;
  Json start_body_;
  RunState state_;
  std::string interaction_;
  std::uint64_t last_seq_ = 0;
  std::deque<Heard> heard_;
  bool is_live_ = false, is_attached_ = false;
};

}  // namespace reprise
