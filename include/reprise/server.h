#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reprise/engine.h"
#include "reprise/interaction.h"
#include "reprise/model_client.h"
#include "reprise/options.h"
#include "reprise/result.h"
#include "reprise/tool.h"

// Reprise within another program. docs/embedding.md shows how to build one.
//
//   reprise::Options options;
//   options.data_dir = "chats";  // created if missing; no other program may use it meanwhile
//   options.model = "openai/gpt-4o-mini";
//   options.providers = {{.name = "openai", .type = "openai", .api_key = key}};
//   auto server = reprise::Server::Open(options);
//   if (!server) return Complain(server.error().message);
//   auto turn = (*server)->Run(*reprise::ChatId::Parse("demo"), {.user_message = "Which files are here?"});
//   if (turn && turn->status == reprise::InteractionStatus::kCompleted) {
//     Print(turn->final_agent_state->messages.back());
//   }
namespace reprise {

// Tools and models that the program adds to the built-in ones.
struct Extensions {
  // Tools beside those of Reprise and of MCP servers, under other names. Options::tools applies to them too.
  std::vector<std::shared_ptr<Tool>> tools{};
  // Models by provider name: {"mine", client} serves "mine" and "mine/ANYTHING"; ModelRequest::model is the part after
  // the slash. They take precedence over a provider of the same name in Options::providers.
  std::map<std::string, std::shared_ptr<ModelClient>> models{};
};

// A whole server: store, models, tools, MCP servers, the engine, and HTTP on request. It installs no signal handler and
// writes only its log (to standard error), but asks at the terminal for a key file's passphrase if
// Options::passphrase_file is not set. Thread-safe.
class Server {
 public:
  // Opens the data folder, starts the MCP servers and recovers the runs of an earlier process. Chats are stored
  // unencrypted with Options::plain, else sealed with the keys of Options::key_file, which is created if missing.
  // Blocks on the disk.
  //
  // kInvalidArgument: the workspace is no folder, the model's provider is unknown; kConflict: another process uses the
  // data folder; kForbidden, kCorruption: keys and chats do not match, or are damaged; kIo, kStorageFull. `message` is
  // for the person who runs the program.
  static Result<std::unique_ptr<Server>> Open(const Options& options, Extensions extensions = {});
  ~Server();  // Stop
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // The functions behind the whole HTTP interface. Lives as long as the server.
  Engine& engine();

  // Sends a message and waits for the end of the turn: Engine::Start, then Engine::GetInteraction. A FAILED or
  // CANCELLED turn is a value. Blocks for model and tools, and for approvals by a person: answer them with
  // Engine::AnswerApproval from another thread.
  Result<Interaction> Run(const ChatId& chat, StartRequest request);

  // Serves the engine over HTTP at Options::host and Options::port (0: any free one), in threads of its own. Returns
  // the URL. kInvalidArgument: no valid address, or not loopback without Options::token_file; kUnavailable (reason
  // "address_in_use"); kConflict if it already listens or has been stopped.
  Result<std::string> Listen();

  // Ends all runs (reason "server_stopping"), waits until each is saved, then closes all connections. Runs that wait
  // for a person wait again after the next Open.
  void Stop();

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise
