#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/json.h"

namespace reprise::acp {

// A session's connection to its client.
class SessionClient {
 public:
  virtual ~SessionClient() = default;
  virtual void Notify(const std::string& method, Json params) = 0;
  // Sends a request to the client; `answered` gets the whole response. Returns the id for Withdraw, after which a late
  // response is ignored.
  using Answered = std::function<void(const Json& response)>;
  virtual int Ask(const std::string& method, Json params, Answered answered) = 0;
  virtual void Withdraw(int request) = 0;
  // Responds to a request of the client; call one of these once per request.
  virtual void Answer(const Json& request_id, Json result) = 0;
  virtual void Refuse(const Json& request_id, Json error) = 0;
};

// The client's terminal as a tool of the chat (terminal/* of ACP): a command runs in the user's environment, outside
// the server's sandbox, and the client shows it while it runs. For one thread.
class TerminalTool {
 public:
  static constexpr const char* kName = "run_in_terminal";
  // The tool's description for PUT /chats/{chat}/editor.
  static Json Offer();

  // `client` must outlive it. Commands start in `cwd`, an absolute path.
  TerminalTool(SessionClient& client, std::string session, std::string cwd)
      : client_(client), session_(std::move(session)), cwd_(std::move(cwd)) {}

  // `shown` gets the terminal's id when the client has created it, `done` the body of the call's answer. Neither is
  // called after Cancel.
  using Shown = std::function<void(const std::string& terminal)>;
  using Done = std::function<void(const Json& answer)>;
  void Call(const std::string& id, const Json& arguments, Shown shown, Done done);
  // Ends the command.
  void Cancel(const std::string& id);
  void CancelAll();

 private:
  struct Running {
    std::string terminal;  // empty: not created yet
    int request = 0;       // the request to the client under way
    Shown shown;
    Done done;
  };
  void Created(const std::string& id, const Json& response);
  void Exited(const std::string& id, const Json& response);
  void Finished(const std::string& id, const Json& status, const Json& response);
  void Fail(const std::string& id, const Json& response);
  int Ask(const char* method, const std::string& terminal, SessionClient::Answered answered);

  SessionClient& client_;
  const std::string session_, cwd_;
  std::map<std::string, std::shared_ptr<Running>> running_;  // by the ids of calls
};

}  // namespace reprise::acp
