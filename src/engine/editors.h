#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "reprise/editor_files.h"
#include "reprise/engine.h"
#include "reprise/event_log.h"
#include "reprise/ids.h"
#include "reprise/tool.h"

namespace reprise {

// The editors that are connected with chats. Each gets its requests by a log of its own, and gives the answers by
// Answer. What waits for an editor wakes up when that has gone. Thread-safe; a connection may outlive this.
class Editors {
 public:
  Editors();

  // In the place of the one that was connected before, if any. kUnavailable (reason "overloaded"): there are too many.
  Result<EditorConnection> Connect(const ChatId& chat, EditorAbilities abilities);
  // In the place of what it offered before. How many of them stand behind `all`. kNotFound: no editor is connected.
  // kUnavailable (reason "overloaded"): those of all editors are too much.
  Result<std::size_t> Offer(const ChatId& chat, std::vector<EditorTool> tools, const ToolRegistry& all);
  // kNotFound: no such request waits (any more). kInvalidArgument: it is no answer to what was asked.
  Result<void> Answer(const ChatId& chat, std::string_view request_id, EditorAnswer answer);

  // Of this chat, whether or not an editor is connected with it; not longer than this lives.
  std::unique_ptr<EditorFiles> FilesOf(const ChatId& chat);
  // `all`, which must outlive it, and what the editor offers that is connected with this chat at the moment.
  std::shared_ptr<const ToolSet> ToolsNow(const ChatId& chat, const ToolRegistry& all) const;
  std::unique_ptr<ToolRegistry> ToolsOf(const ChatId& chat, const ToolRegistry& all);

 private:
  struct State;
  struct Editor;
  class Files;
  class OfferedTool;
  class ChatTools;

  const std::shared_ptr<State> state_;
};

}  // namespace reprise
