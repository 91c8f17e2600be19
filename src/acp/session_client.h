#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"

namespace reprise::acp {

// How a session speaks to its client.
class SessionClient {
 public:
  virtual ~SessionClient() = default;
  virtual void Notify(const std::string& method, Json params) = 0;
  // Asks the client; `answered` has the whole response. The id is what Withdraw takes, after which a response that
  // comes late is heard by nobody.
  using Answered = std::function<void(const Json& response)>;
  virtual int Ask(const std::string& method, Json params, Answered answered) = 0;
  virtual void Withdraw(int request) = 0;
  // To a request of the client; each is answered once.
  virtual void Answer(const Json& request_id, Json result) = 0;
  virtual void Refuse(const Json& request_id, Json error) = 0;
};

}  // namespace reprise::acp
