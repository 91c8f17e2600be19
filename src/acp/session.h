#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acp/client_tools.h"
#include "acp/prompt.h"
#include "acp/questions.h"
#include "acp/session_client.h"
#include "acp/terminal_tool.h"
#include "acp/updates.h"
#include "base/json.h"
#include "client/run_stream.h"
#include "client/server_client.h"
#include "client/server_link.h"
#include "reprise/result.h"

namespace reprise::acp {

// What the client has said of itself.
struct ClientAbilities {
  UpdateAbilities updates;
  FormAbilities forms;
  bool reads_files = false, writes_files = false;  // as it has them open, with what is not saved
  bool has_terminal = false;
};

// A session of ACP, which is a chat of the server: the prompt that is under way, the run that it began, and what that
// asks. For one thread.
class Session {
 public:
  struct Parts {
    ServerLink& link;
    SessionClient& client;
    ClientAbilities abilities;
    std::string chat, cwd;
    bool exists;                           // the server has the chat
    std::unique_ptr<ClientTools> tools{};  // null: the client names no MCP servers
  };
  explicit Session(Parts parts);

  const std::string& chat() const { return chat_; }
  const std::string& cwd() const { return cwd_; }

  // session/prompt.
  void Prompt(const Json& request_id, const Json& blocks);
  // session/cancel.
  void Cancel();
  // `$/cancel_request`: true if that was the prompt.
  bool CancelRequest(const Json& request_id);
  // session/load and session/resume of a session that is open: from now on with these. What it does goes on.
  void Reopen(std::string cwd, std::unique_ptr<ClientTools> tools);
  // session/load: shows all that was said, and answers then. What runs is followed.
  void Load(const Json& request_id, Json response);
  // session/resume: follows what runs. What it waits for a person for is asked again.
  void FollowRun();
  // session/close.
  void Close();

  // For messages from now on; empty: the chat's.
  void UseModel(std::string model) { wanted_model_ = std::move(model); }
  // Settings of the chat (PATCH).
  Result<void> Change(const Json& settings);
  // The chat as the server lists it; an empty object if it does not exist yet.
  Result<Json> Summary();

  // What the client is told beside answers.
  void Update(Json update);
  void AnnounceCommands();

  // --- for whoever waits
  // Readable when there is something to do; -1: nothing will be.
  int descriptor() const { return hears() ? run_->descriptor() : -1; }
  int editor_descriptor() const { return editor_ ? editor_->descriptor() : -1; }
  int tools_descriptor() const { return tools_ ? tools_->descriptor() : -1; }
  // Until Proceed is to be called at the latest; -1: none.
  int TimeoutMs() const;
  void Proceed();

 private:
  // Something that the run waits for a person for.
  struct OpenQuestion {
    PendingQuestion asked;
    int request = 0;  // of the client; 0: it is answered by the next message
  };

  Result<bool> RunCommand(const Json& request_id, const std::string& text);
  Result<Json> Newest();
  void Begin(const std::string& path, Json body);
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
  bool is_new_;  // its title has not been told
  Updates updates_;

  std::string wanted_model_;

  // --- the prompt
  std::optional<Json> prompt_;                 // the request's id
  std::optional<std::pair<Json, Json>> load_;  // a session/load that is not answered yet, and its answer
  bool cancel_wanted_ = false;

  std::string cwd_;
  std::unique_ptr<ClientTools> tools_;
  std::optional<TerminalTool> terminal_;  // nullopt: the client has none
  bool is_connected_ = false;             // the server knows of the stream
  bool has_offered_ = false;              // the tools, since it does
  // What the server asks of the files that the client has open, and of its tools; null: there are neither.
  std::unique_ptr<ArrivingEvents> editor_;
  std::map<std::string, int> editor_requests_;  // that the client has not answered: the server's ids, and its own

  // --- the run
  enum class Follows {
    kNothing,
    kRun,   // its stream
    kLost,  // nobody answers; the server is looked for
  };
  Follows follows_ = Follows::kNothing;
  std::unique_ptr<RunStream> run_;  // the last one
  std::vector<OpenQuestion> open_;
  bool was_lost_ = false, has_resumed_ = false;
  std::chrono::steady_clock::time_point lost_at_{}, next_try_{};
  bool has_heard_ = false;  // something, since the server was lost last
};

}  // namespace reprise::acp
