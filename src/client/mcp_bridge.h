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

// The server of the Model Context Protocol on standard input and output: each line goes to the running server's /mcp,
// and what that says comes back as lines. It knows of the protocol what its way over HTTP needs: the session of older
// clients, and the headers that repeat what newer ones say. One thread, and one loop.
class McpBridge {
 public:
  McpBridge(ServerLink& link, int in, int out);
  ~McpBridge();
  McpBridge(const McpBridge&) = delete;
  McpBridge& operator=(const McpBridge&) = delete;

  // Until the client closes its end; the exit status.
  int Run();

 private:
  class Relay;
  enum class Purpose {
    kClient,    // the client has sent it
    kGreeting,  // we have, to have a session again
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
  Json greeting_ = nullptr;                     // the client's initialize, for a server that has forgotten it
  std::string session_, version_;               // what came of it; empty: no session
  std::vector<Json> ungreeted_;                 // wait for a new session
};

}  // namespace reprise
