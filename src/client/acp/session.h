#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "client/acp/client_tools.h"
#include "client/acp/messages.h"
#include "client/acp/terminal_tool.h"
#include "client/acp/updates.h"
#include "client/run_stream.h"
#include "client/server_client.h"
#include "client/server_link.h"
#include "reprise/result.h"

namespace reprise::acp {

// The client's capabilities.
struct ClientAbilities {
  UpdateAbilities updates;
  FormAbilities forms;
  bool reads_files = false, writes_files = false;  // the files it has open, with unsaved changes
  bool has_terminal = false;
};

// A session of ACP, which is a chat of the server: the prompt under way, the run that it started, and the run's
// questions. For one thread.
class Session {
 public:
  struct Parts {
    ServerLink& link;
    SessionClient& client;
    ClientAbilities abilities;
    std::string chat, cwd;
    std::string workspace;                 // where the chat works; empty if the server does not say
    bool exists;                           // whether the server has the chat
    std::unique_ptr<ClientTools> tools{};  // null: the client names no MCP servers
  };
  explicit Session(Parts parts);

  const std::string& chat() const { return chat_; }
  const std::string& cwd() const { return cwd_; }
  const std::string& workspace() const { return workspace_; }

  // session/prompt.
  void Prompt(const Json& request_id, const Json& blocks);
  // session/cancel.
  void Cancel();
  // `$/cancel_request`: true if the request is the prompt under way.
  bool CancelRequest(const Json& request_id);
  // session/load and session/resume of an open session: replaces its folder and tools. A run under way continues.
  void Reopen(std::string cwd, std::unique_ptr<ClientTools> tools);
  // session/load: shows the whole history, then answers. Follows a run under way.
  void Load(const Json& request_id, Json response);
  // session/resume: follows a run under way, and asks its open questions again.
  void FollowRun();
  // session/close.
  void Close();

  // The model of later runs; empty: the chat's.
  void UseModel(std::string model) { wanted_model_ = std::move(model); }
  // Settings of the chat (PATCH).
  Result<void> Change(const Json& settings);
  // The chat as the server lists it; an empty object if it does not exist yet.
  Result<Json> Summary();

  // Notifications to the client.
  void Update(Json update);
  void AnnounceCommands();

  // --- for the loop that waits
  // Readable when there is something to do; -1: there is nothing to wait for.
  int descriptor() const { return hears() ? run_->descriptor() : -1; }
  int editor_descriptor() const { return editor_ ? editor_->descriptor() : -1; }
  int tools_descriptor() const { return tools_ ? tools_->descriptor() : -1; }
  // The longest time until Proceed must be called; -1: unlimited.
  int TimeoutMs() const;
  void Proceed();

 private:
  // A question to the user that the run waits for.
  struct OpenQuestion {
    PendingQuestion asked;
    int request = 0;  // the request to the client; 0: the user's next message, or another client, answers it
  };

  Result<void> Create();
  Result<bool> RunCommand(const Json& request_id, const std::string& text);
  Result<Json> Newest();
  void Begin(const std::string& path, Json body);
  Json RunOptions() const;
  void Attach(const std::string& interaction);
  void Resume();
  void Hear(const RunStream::Heard& heard);
  void Hear(const AgentEvent& event);
  void Show(std::vector<Json> updates);
  void Say(const std::string& text);

  void OpenEditor();
  void ServeEditor();
  void CloseEditor();
  void TakeEditorRequest(const Json& request);
  void TellEditor(const std::string& id, bool wrote, const Json& response);
  void AnswerEditor(const std::string& id, const Json& answer);
  void TakeCall(const std::string& id, const Json& request);
  void OfferTools();
  void ServeTools();
  void Ask(const PendingQuestion& question);
  void LookAtChange(const PendingApproval& question);
  void ShowChangeInEditor(const PendingApproval& question, const Json& on_disk, const Json& response);

  void AskPermission(const PendingApproval& question);
  void AskInput(const PendingInput& question);
  void GiveAnswer(const OpenQuestion& question, const Json& body);
  void PutToPage(const OpenQuestion& question);
  OpenQuestion* FindQuestion(const std::string& id);
  void Settle(const std::string& id);
  void SettleAll();
  void AskAgain();
  void KeepOpen();

  void Ended();
  void AwaitEnd();
  bool FinishIfEnded();
  void LoseServer();
  void Finish();
  void TellUsage(const TokenUsage& usage);
  std::string Replay(const Json& chat);
  void AnswerLoad();
  void AnswerPrompt(const char* stop_reason);
  void RefusePrompt(Json error);
  void CancelRun();
  bool hears() const { return follows_ == Follows::kRun; }

  ServerLink& link_;
  SessionClient& client_;
  const ClientAbilities abilities_;
  const std::string chat_, path_;
  bool exists_;
  bool is_new_;  // the client does not know its title yet
  Updates updates_;

  std::string wanted_model_;

  // --- the prompt
  std::optional<Json> prompt_;                 // the request's id
  std::optional<std::pair<Json, Json>> load_;  // the id and the answer of a session/load that is not answered yet
  bool cancel_wanted_ = false;

  const std::string workspace_;
  std::string cwd_;
  std::unique_ptr<ClientTools> tools_;
  std::optional<TerminalTool> terminal_;  // nullopt: the client has none
  bool is_connected_ = false;             // the server knows of the stream
  bool has_offered_ = false;              // the server has got the tools since then
  // The server's requests about the client's open files and its tools; null: not open.
  std::unique_ptr<ArrivingEvents> editor_;
  std::map<std::string, int> editor_requests_;  // open requests to the client, by the server's ids

  // --- the run
  enum class Follows {
    kNothing,
    kRun,   // its stream
    kLost,  // the server does not answer; it is searched for
  };
  Follows follows_ = Follows::kNothing;
  std::unique_ptr<RunStream> run_;  // the last one
  std::vector<OpenQuestion> open_;
  bool was_lost_ = false, has_resumed_ = false;
  std::chrono::steady_clock::time_point lost_at_{}, next_try_{};
  bool has_heard_ = false;  // whether anything has arrived since the server was last lost
};

}  // namespace reprise::acp
