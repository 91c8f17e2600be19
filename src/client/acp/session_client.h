#pragma once

#include <functional>
#include <nlohmann/json.hpp>
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

}  // namespace reprise::acp
