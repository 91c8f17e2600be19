#pragma once

#include <memory>
#include <vector>

#include "reprise/interaction_store.h"
#include "reprise/model_client.h"
#include "reprise/options.h"
#include "reprise/result.h"
#include "reprise/run_store.h"
#include "reprise/tool.h"

// The parts of an engine, for a program that assembles its own (Engine::Parts) instead of using a whole Server
// (reprise/server.h).
//
//   auto store = reprise::MakeMemoryStore();
//   auto models = reprise::MakeModels(options);
//   auto tools = reprise::MakeTools(options);
//   auto runs = reprise::MakeLocalRuns(*store);
//   reprise::Engine engine(
//       {.store = *store, .runs = *runs, .fallback_stores = {}, .models = **models, .tools = **tools}, {});
namespace reprise {

// Keeps chats in memory only: no files, no journals, no recovery. Thread-safe.
std::unique_ptr<InteractionStore> MakeMemoryStore();

// Assigns chats to runs, for a store that no other process writes to. `store` must outlive it. Thread-safe.
std::unique_ptr<RunStore> MakeLocalRuns(InteractionStore& store);

// The providers, model facts and default model of `options`, and the offline model. Its connections end with it.
// kInvalidArgument: two providers have the same name, or the default model's provider is unknown.
Result<std::unique_ptr<ModelDirectory>> MakeModels(const Options& options);

// `own` and the built-in tools that Options::tools allows, in Options::workspace. The tools cannot reach key file, data
// folder and configuration. No MCP servers. kIo, kInvalidArgument: a path in `options` cannot be resolved.
Result<std::unique_ptr<ToolRegistry>> MakeTools(const Options& options, std::vector<std::shared_ptr<Tool>> own = {});

}  // namespace reprise
