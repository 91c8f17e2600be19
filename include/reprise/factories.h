#pragma once

#include <memory>
#include <vector>

#include "reprise/interaction_store.h"
#include "reprise/model_client.h"
#include "reprise/options.h"
#include "reprise/result.h"
#include "reprise/run_store.h"
#include "reprise/tool.h"

// The parts of an engine one by one, for a program that puts its own engine together (Engine::Parts) instead of taking
// a whole Server (reprise/server.h).
//
//   auto store = reprise::MakeMemoryStore();
//   auto models = reprise::MakeModels(options);
//   auto tools = reprise::MakeTools(options);
//   auto runs = reprise::MakeLocalRuns(*store);
//   reprise::Engine engine(
//       {.store = *store, .runs = *runs, .fallback_stores = {}, .models = **models, .tools = **tools}, {});
namespace reprise {

// Keeps chats as long as it lives: no files, no journals, nothing to recover. Thread-safe.
std::unique_ptr<InteractionStore> MakeMemoryStore();

// Who holds which chat of a store that no other process writes to. `store` must outlive it. Thread-safe.
std::unique_ptr<RunStore> MakeLocalRuns(InteractionStore& store);

// The providers, facts and default model of `options`, and the offline model. It has its own connections, which end
// with it. kInvalidArgument: two providers have the same name, or the default model is of none.
Result<std::unique_ptr<ModelDirectory>> MakeModels(const Options& options);

// What is built in, as Options::tools allows it, in Options::workspace, and `own`. Key file, data folder and
// configuration are out of reach of the tools. No MCP servers. kIo, kInvalidArgument: a path in `options` cannot be
// looked up.
Result<std::unique_ptr<ToolRegistry>> MakeTools(const Options& options, std::vector<std::shared_ptr<Tool>> own = {});

}  // namespace reprise
