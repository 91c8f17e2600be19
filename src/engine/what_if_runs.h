#pragma once

#include <memory>
#include <set>

#include "base/mutex.h"
#include "engine/elastic_pool.h"
#include "reprise/engine.h"
#include "reprise/ids.h"
#include "reprise/result.h"
#include "reprise/what_if.h"
#include "reprise/workspace_copies.h"

namespace reprise {

struct EngineServices;
struct LiveRun;
class BusyChats;
class Interactions;
class WorkspaceMoves;

// Runs of Engine::WhatIf, which are no runs of a chat: only what is kept is stored, when it has ended. Thread-safe.
class WhatIfRuns {
 public:
  WhatIfRuns(EngineServices& services, BusyChats& busy, Interactions& interactions, WorkspaceMoves& workspace)
      : services_(services), busy_(busy), interactions_(interactions), workspace_(workspace) {}

  // As Engine::WhatIf.
  Result<EventSubscription> Start(const ChatId& chat, InteractionId interaction, const WhatIfChanges& changes);
  // Ends all runs and refuses new ones. Returns when they have ended.
  void Stop();

 private:
  struct UnderWay;
  Result<std::shared_ptr<UnderWay>> Prepare(const ChatId& chat, InteractionId interaction,
                                            const WhatIfChanges& changes);
  Result<void> Enter(const std::shared_ptr<UnderWay>& run);
  void Make(UnderWay& run);
  Result<InteractionId> Keep(const UnderWay& run, Interaction made);
  void ShowEnd(UnderWay& run, LiveRun made);
  Result<PastFiles> FilesThen(const UnderWay& run) const;

  EngineServices& services_;
  BusyChats& busy_;
  Interactions& interactions_;
  WorkspaceMoves& workspace_;
  Mutex mutex_;
  Condition ended_;
  std::set<std::shared_ptr<UnderWay>> under_way_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  ElasticPool threads_;  // last: its jobs use the others. Each waits for jobs of the engine's pool.
};

}  // namespace reprise
