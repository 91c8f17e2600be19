#pragma once

#include <memory>
#include <string>
#include <utility>

#include "doors/api/server.h"
#include "store/local_run_store.h"
#include "store/memory_interaction_store.h"
#include "support/fake_tools.h"
#include "support/http_client.h"
#include "support/scripted_model.h"
#include "support/test.h"

namespace reprise {

// A real server with a real engine, a scripted model and nothing on disk.
struct ServerFixture {
  explicit ServerFixture(ServerOptions options = {}) {
    using namespace std::chrono_literals;
    tools.Add("danger", true, [](std::string_view arguments, const ToolContext&) {
      return ToolOutcome{"did " + std::string(arguments), false};
    });
    tools.Add("look", false, [](std::string_view, const ToolContext&) { return ToolOutcome{"saw", false}; });
    EngineOptions engine_options;
    engine_options.disconnect_grace = 1ms;
    engine = std::make_unique<Engine>(
        Engine::Parts{.store = store, .runs = runs, .fallback_stores = {}, .models = models, .tools = tools},
        engine_options);
    options.port = 0;
    auto opened = OpenServer(*engine, std::move(options));
    REQUIRE(opened);
    server = *std::move(opened);
    port = server->port();
  }
  ~ServerFixture() {
    server->BeginStop();
    engine->Stop();
    server->Stop();
  }

  TestResponse Get(std::string_view path, std::string_view headers = {}) { return Ask(port, "GET", path, {}, headers); }
  TestResponse Post(std::string_view path, std::string_view body = {}, std::string_view headers = {}) {
    return Ask(port, "POST", path, body, headers);
  }

  ScriptedModel model;
  ScriptedDirectory models{model};
  FakeTools tools;
  MemoryInteractionStore store;
  LocalRunStore runs{store};
  std::unique_ptr<Engine> engine;
  std::unique_ptr<HttpServer> server;
  int port = 0;
};

}  // namespace reprise
