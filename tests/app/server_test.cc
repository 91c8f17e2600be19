#include "reprise/server.h"

#include <filesystem>
#include <memory>
#include <string>

#include "reprise/factories.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::server_test {
namespace {

struct Dice : Tool {
  const ToolTraits& traits() const override { return traits_; }
  ToolOutcome Run(std::string_view, const ToolContext&) override { return {.output = "4"}; }
  ToolTraits traits_{.spec = {"dice", "Throws a dice.", R"({"type":"object"})"}, .approval_reason = ""};
};

// Calls the tool once, and says its result.
struct Player : ModelClient {
  void Generate(const ModelRequest& request, ModelStream& stream, std::stop_token, Done done) override {
    const Message& last = request.messages.back();
    if (last.role == Role::kUser)
      return done(ModelResponse{.tool_calls = {{"call_1", "dice", "{}"}}, .usage = {}, .extras = {}});
    stream.OnText(request.model + " has " + last.content.value_or(""));
    done(ModelResponse());
  }
  std::vector<std::string> KnownModels() const override { return {"small"}; }
  std::vector<LeftOutTool> LeftOutTools() const override { return {{"dice", "small", "it has a hole"}}; }
};

Options In(const TempDirectory& folder) {
  Options options;
  options.data_dir = folder.path() + "/chats";
  options.workspace = folder.path();
  options.plain = true;
  options.port = 0;
  options.model = "player/small";
  return options;
}

Extensions Own() { return {.tools = {std::make_shared<Dice>()}, .models = {{"player", std::make_shared<Player>()}}}; }

const ChatId kChat = *ChatId::Parse("c");

}  // namespace

TEST_CASE("Server: a program runs turns with its own model and tool, and goes on after a restart", "[app]") {
  const TempDirectory folder;
  for (int turn = 1; turn <= 2; ++turn) {
    auto server = Server::Open(In(folder), Own());
    REQUIRE(server);
    const auto ended = (*server)->Run(kChat, {.user_message = "throw"});
    REQUIRE(ended);
    CHECK(ended->status == InteractionStatus::kCompleted);
    CHECK(ended->id == InteractionId::FromNumber(static_cast<std::uint32_t>(turn)));
    CHECK(ended->final_agent_state->messages.back().content == "small has 4");
    CHECK(ended->model == "player/small");
    CHECK((*server)->engine().models().Resolve("offline"));
    CHECK((*server)->engine().models().LeftOutTools() == Player().LeftOutTools());
    CHECK((*server)->engine().models().Resolve("nobody/x").error().reason == "unknown_model");
    CHECK((*server)->Run(kChat, {.user_message = "x", .model = "nobody/x"}).error().reason == "unknown_model");
  }
}

TEST_CASE("Server: it listens once, and not after it has been stopped", "[app]") {
  const TempDirectory folder;
  auto server = Server::Open(In(folder), Own());
  REQUIRE(server);
  const auto url = (*server)->Listen();
  REQUIRE(url);
  CHECK(url->starts_with("http://127.0.0.1:"));
  CHECK((*server)->Listen().error().code == ErrorCode::kConflict);
  CHECK(Server::Open(In(folder)).error().code != ErrorCode::kInternal);  // the folder is taken
  (*server)->Stop();
  (*server)->Stop();
  CHECK((*server)->Listen().error().code == ErrorCode::kConflict);
  CHECK((*server)->Run(kChat, {.user_message = "x"}).error().reason == "stopping");
}

TEST_CASE("Server: without a workspace there is none", "[app]") {
  const TempDirectory folder;
  Options options = In(folder);
  options.workspace = folder.path() + "/nowhere";
  CHECK(Server::Open(options, Own()).error().code == ErrorCode::kInvalidArgument);
}

TEST_CASE("Factories: an engine of single parts", "[app]") {
  const TempDirectory folder;
  Options options = In(folder);
  options.model = "offline";
  const auto store = MakeMemoryStore();
  const auto models = MakeModels(options);
  const auto tools = MakeTools(options, {std::make_shared<Dice>()});
  REQUIRE((models && tools));
  CHECK((*tools)->Current()->Find("dice") != nullptr);
  CHECK((*tools)->Current()->Find("read_file") != nullptr);
  const auto runs = MakeLocalRuns(*store);
  Engine engine({.store = *store, .runs = *runs, .fallback_stores = {}, .models = **models, .tools = **tools}, {});
  CHECK(engine.Start(kChat, {.user_message = "hello"}));
  engine.Stop();
  CHECK(store->LoadChat(kChat)->interactions.size() == 1);
}

}  // namespace reprise::server_test
