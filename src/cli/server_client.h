#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "cli/terminal_input.h"
#include "net/curl_transport.h"
#include "reprise/result.h"

namespace reprise {

// Talks to a running server by its HTTP interface. For one thread.
class ServerClient {
 public:
  // `url` without a path; `token` may be empty.
  ServerClient(std::string url, std::string token) : url_(std::move(url)), token_(std::move(token)) {}

  // The answer's JSON. An answer of 400 and above is an Error with the server's reason and message.
  Result<Json> Call(const std::string& method, const std::string& path);
  Result<Json> Call(const std::string& method, const std::string& path, const Json& body);

  // Posts, and hands over the events of the answer, by name and data, until it ends. What the person interrupts (Ctrl-C
  // in `input`) is told by `interrupted`; the stream goes on. Failures as Call, and kUnavailable if it breaks off.
  using OnEvent = std::function<void(std::string_view name, const Json& data)>;
  Result<void> Stream(const std::string& path, const Json& body, TerminalInput& input, const OnEvent& on_event,
                      const std::function<void()>& interrupted);

 private:
  HttpRequest RequestFor(const std::string& method, const std::string& path, const Json& body) const;

  const std::string url_, token_;
  CurlTransport transport_;
};

}  // namespace reprise
