// A program that embeds Reprise, with its own model and tool. docs/embedding.md explains it.
#include <reprise/server.h>

#include <iostream>

using namespace reprise;

struct Weather : Tool {
  const ToolTraits& traits() const override { return traits_; }
  ToolOutcome Run(std::string_view, const ToolContext&) override { return {.output = "sunny, 21 degrees"}; }
  ToolTraits traits_{.spec = {"weather", "Tells the weather.", R"({"type":"object"})"}, .approval_reason = ""};
};

// Calls the tool and repeats its output.
struct Parrot : ModelClient {
  void Generate(const ModelRequest& request, ModelStream& stream, std::stop_token, Done done) override {
    const Message& last = request.messages.back();
    if (last.role == Role::kUser) return done(ModelResponse{.tool_calls = {{"call_1", "weather", "{}"}}});
    stream.OnText("It is " + last.content.value_or("unknown") + ".");
    done(ModelResponse{});
  }
};

int main(int, char** arguments) {
  Options options;
  options.data_dir = arguments[1];
  options.plain = true;
  options.model = "parrot";
  auto server = Server::Open(
      options, {.tools = {std::make_shared<Weather>()}, .models = {{"parrot", std::make_shared<Parrot>()}}});
  if (!server) return std::cerr << server.error().message << "\n", 1;
  const auto turn = (*server)->Run(*ChatId::Parse("demo"), {.user_message = "What is the weather?"});
  if (!turn) return std::cerr << turn.error().message << "\n", 1;
  std::cout << turn->final_agent_state->messages.back().content.value_or("") << "\n";
}
