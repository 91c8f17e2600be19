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
#include "reprise/event.h"
#include "reprise/result.h"
#include "transcript/transcript.h"

namespace reprise {

// Whether an interaction with this status runs or waits for a person.
bool IsRunning(const std::string& status);
// The running interaction in the answer of GET /chats/ID; null if there is none.
const Json& RunningIn(const Json& chat);
// "int_001 waits for you"
std::string SayRunning(const Json& interaction);

// What GET /approvals says that waits for people.
std::vector<PendingQuestion> QuestionsIn(const Json& waiting);
bool Has(const std::vector<PendingQuestion>& questions, const std::string& id);
// "/chats/ID/interactions/ID"
std::string RunPath(const InteractionRef& run);

// A run of a chat, as its server tells of it: begun by this client, or found running. When the server has gone, the
// stream can be taken up again at another one: behind the last event, or by the same request, which begins nothing
// twice. For one thread.
class RunStream {
 public:
  // `server` must outlive this. `chat`: the id.
  RunStream(ServerClient& server, const std::string& chat) : server_(server), chat_(chat) {}

  // Begins a run by a POST of this.
  void Start(std::string path, Json body);
  // Follows an interaction from its beginning.
  void Attach(const std::string& interaction);
  // The same again, behind what has come.
  void Resume();
  // From now on pieces of a text that have come together are one event.
  void MergeText() { stream_->MergeText(); }

  int descriptor() const { return stream_->descriptor(); }
  // Takes what has come; does not wait.
  void Receive();
  struct Heard {
    std::string name;
    Json data;
    // nullopt: a frame of the stream ("queued", "stream_open", "stream_live"), or an event that this program does not
    // know.
    std::optional<AgentEvent> event;
  };
  // In their order, each number once; nullopt if no more have been received.
  std::optional<Heard> Next();
  const std::deque<Heard>& received() const { return heard_; }
  // As ArrivingEvents::ended.
  const std::optional<Result<void>>& ended() const { return stream_->ended(); }

  // By all that was received, even if Next has not returned it yet. Whoever has answered a question takes it away.
  RunState& state() { return state_; }
  bool is_complete() const { return state_.status.has_value(); }
  // Nothing that comes is a recording, whose questions may have been answered.
  bool is_live() const { return is_live_; }
  // The stream is of a run that was found, and not the answer to the request that begins it.
  bool is_attached() const { return is_attached_; }
  // Empty: the run has not begun.
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
