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
//   options.data_dir = "chats";  // made if it is not there; this program alone uses it as long as it runs
//   options.model = "openai/gpt-4o-mini";
//   options.providers = {{.name = "openai", .type = "openai", .api_key = key}};
//   auto server = reprise::Server::Open(options);
//   if (!server) return Complain(server.error().message);
//   auto turn = (*server)->Run(*reprise::ChatId::Parse("demo"), {.user_message = "Which files are here?"});
//   if (turn && turn->status == reprise::InteractionStatus::kCompleted)
//   Print(turn->final_agent_state->messages.back());
namespace reprise {

// What a program brings along beside what is built in.
struct Extensions {
  // Tools beside those of Reprise and of MCP servers. Their names must differ from these. Options::tools holds for
  // them too.
  std::vector<std::shared_ptr<Tool>> tools{};
  // Models by the name of their provider: {"mine", client} answers for "mine" and "mine/ANYTHING", with what follows
  // the slash as ModelRequest::model. They come before a provider of the same name in Options::providers.
  std::map<std::string, std::shared_ptr<ModelClient>> models{};
};

// A whole server: store, models, tools, MCP servers and the engine, and HTTP if that is wanted. It touches no signal
// handler, and prints nothing but its log (to standard error); but a key file with a passphrase and without
// Options::passphrase_file asks for that at the terminal. Thread-safe.
class Server {
 public:
  // Opens the data folder, starts the MCP servers and takes up what an earlier process had left. With
  // Options::plain chats are stored as they are; else they are sealed with the keys of Options::key_file, which is made
  // if there is none. Blocks while the disk does.
  //
  // kInvalidArgument: the workspace is no folder, the model is of no known provider; kConflict: another process uses
  // the data folder; kForbidden, kCorruption: keys or chats that do not fit; kIo, kStorageFull. `message` is for the
  // person who runs the program.
  static Result<std::unique_ptr<Server>> Open(const Options& options, Extensions extensions = {});
  ~Server();  // Stop
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Everything the HTTP interface can do, and it does it by this. Lives as long as the server.
  Engine& engine();

  // Sends a message and waits for the turn's end: Engine::Start, and Engine::GetInteraction when it has come. A turn
  // that FAILED or was CANCELLED is a value. Blocks as long as model and tools do, and while a person is asked for an
  // approval: answer it by Engine::AnswerApproval from another thread.
  Result<Interaction> Run(const ChatId& chat, StartRequest request);

  // Serves the engine over HTTP at Options::host and Options::port (0: any free one), in threads of its own. Returns
  // the URL. kInvalidArgument: not an address, or not loopback and without Options::token_file; kUnavailable (reason
  // "address_in_use"); kConflict if it listens already, or has been stopped.
  Result<std::string> Listen();

  // Ends all runs (reason "server_stopping") and waits until each is saved; then closes all connections. What waits for
  // a person waits again at the next Open.
  void Stop();

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise
