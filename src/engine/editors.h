#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "reprise/editor_files.h"
#include "reprise/engine.h"
#include "reprise/ids.h"
#include "reprise/tool.h"

namespace reprise {

// The editors that are connected with chats. Each reads its requests from a log of its own and answers through Answer.
// If an editor leaves, everything that waits for it wakes up. Thread-safe; a connection may outlive this.
class Editors {
 public:
  Editors();

  // Replaces an earlier connection of the chat. kUnavailable (reason "overloaded") if there are too many.
  Result<EditorConnection> Connect(const ChatId& chat, EditorAbilities abilities);
  // Replaces the tools that the editor offered before; returns how many of them join those in `all`. kNotFound if no
  // editor is connected, kUnavailable (reason "overloaded") if the tools of all editors are too large.
  Result<std::size_t> Offer(const ChatId& chat, std::vector<EditorTool> tools, const ToolRegistry& all);
  // kNotFound if no such request waits (any more), kInvalidArgument if the answer does not fit the request.
  Result<void> Answer(const ChatId& chat, std::string_view request_id, EditorAnswer answer);

  // The files of this chat's editor, whether or not one is connected; must not outlive this.
  std::unique_ptr<EditorFiles> FilesOf(const ChatId& chat);
  // `all`, which must outlive the result, and the tools of the editor that is connected with this chat now.
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
