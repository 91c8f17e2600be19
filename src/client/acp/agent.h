#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/json.h"
#include "client/acp/session.h"
#include "client/line_channel.h"
#include "client/server_link.h"
#include "reprise/result.h"

namespace reprise::acp {

// An agent of the Agent Client Protocol, version 1 (agentclientprotocol.com): JSON-RPC messages, one per line. A
// running server does all the work; this has no agent loop and no rules of its own. For one thread.
class Agent final : public SessionClient {
 public:
  // `link` must outlive it.
  Agent(ServerLink& link, int in, int out) : link_(link), channel_(in, out) {}

  // Runs until the client closes its end or stops reading. Returns the exit status.
  int Run();

  // SessionClient.
  void Notify(const std::string& method, Json params) override;
  int Ask(const std::string& method, Json params, Answered answered) override;
  void Withdraw(int request) override;
  void Answer(const Json& request_id, Json result) override;
  void Refuse(const Json& request_id, Json error) override;

 private:
  void Wait();
  void Take(const LineChannel::Line& line);
  void TakeRequest(const Json& id, const std::string& method, const Json& params);
  void TakeNotification(const std::string& method, const Json& params);
  void TakeResponse(const Json& message);

  // A method that is answered at once.
  struct Method {
    const char* name;
    Result<Json> (Agent::*run)(const Json& params);
  };
  static const Method* FindMethod(const std::string& name);
  Result<Json> Initialize(const Json& params);
  Result<Json> Authenticate(const Json& params);
  Result<Json> NewSession(const Json& params);
  Result<Json> ResumeSession(const Json& params);
  Result<Json> ListSessions(const Json& params);
  Result<Json> DeleteSession(const Json& params);
  Result<Json> CloseSession(const Json& params);
  Result<Json> SetMode(const Json& params);
  Result<Json> SetConfigOption(const Json& params);
  // These two are answered later.
  void LoadSession(const Json& id, const Json& params);
  void Prompt(const Json& id, const Json& params);

  Result<std::string> Reach(const Json& params);
  std::string WorkspaceOf(const Json& chat) const;
  Result<std::unique_ptr<ClientTools>> StartTools(const Json& params, const std::string& workspace);
  std::unique_ptr<Session> MakeSession(const std::string& chat, bool exists, const Json& params,
                                       const std::string& workspace, std::unique_ptr<ClientTools> tools);
  struct Opened {
    Session* session;
    Json settings;
  };
  Result<Opened> OpenSession(const Json& params);
  Result<Session*> FindSession(const Json& params);
  // "modes" and "configOptions".
  Result<Json> Settings(Session& session);

  ServerLink& link_;
  LineChannel channel_;
  std::optional<ClientAbilities> abilities_;  // nullopt: not initialized
  std::map<std::string, std::unique_ptr<Session>> sessions_;
  std::map<int, Answered> asked_;
  int next_request_ = 1;
  std::string announce_;  // the session whose commands are announced after the answer
  std::string follow_;    // the session whose run is followed after the answer
};

}  // namespace reprise::acp
