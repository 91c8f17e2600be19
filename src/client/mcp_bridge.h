#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "client/line_channel.h"
#include "client/server_link.h"
#include "reprise/transport.h"

namespace reprise {

// Serves the Model Context Protocol on standard input and output: forwards each line to the running server's /mcp and
// writes the server's messages as lines. It knows only what HTTP adds to the protocol: the session of older clients,
// and the headers that repeat members of newer clients' messages. One thread, one loop.
class McpBridge {
 public:
  McpBridge(ServerLink& link, int in, int out);
  ~McpBridge();
  McpBridge(const McpBridge&) = delete;
  McpBridge& operator=(const McpBridge&) = delete;

  // Runs until the client closes its end. Returns the exit status.
  int Run();

 private:
  class Relay;
  enum class Purpose {
    kClient,    // sent by the client
    kGreeting,  // sent by us, to get a new session
  };

  void Wait();
  void Take(const LineChannel::Line& line);
  void Cancel(const Json& notification);
  bool IsGreeting() const;
  void Forward(Json message, Purpose purpose, bool is_again);
  void Proceed(Relay& relay);
  void End(Relay& relay);
  void Say(Relay& relay, const std::string& text);
  void Refuse(const Json& id, int code, const std::string& why);
  HttpHeaders HeadersFor(const Json& message) const;
  Relay* RelayOf(const Json& id) const;

  ServerLink& link_;
  LineChannel channel_;
  std::vector<std::unique_ptr<Relay>> relays_;  // requests under way
  Json greeting_ = nullptr;                     // the client's initialize, for a server that lost the session
  std::string session_, version_;               // from its answer; empty: no session
  std::vector<Json> ungreeted_;                 // messages that wait for a session
};

}  // namespace reprise
