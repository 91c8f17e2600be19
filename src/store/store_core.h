#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reprise/interaction_store.h"
#include "store/chat_index.h"
#include "store/chat_list.h"

namespace reprise {

// The core of every InteractionStore: what is done with whole chats, written once over the steps in which folders, rows
// and memory differ.
class StoreCore : public InteractionStore {
 public:
  Result<ChatSummary> CreateChat(const ChatId& chat, const ChatSettings& settings) final;
  Result<ChatSummary> ChangeChat(const ChatId& chat, const ChatSettings& settings) final;
  Result<ChatSummary> MoveHead(const ChatId& chat, InteractionId head) final;
  Result<ChatSummary> ForkChat(const ChatId& source, InteractionId last, const ChatId& chat,
                               const std::optional<std::string>& title) override;
  Result<ChatSummary> ImportChat(const IncomingChat& chat) final;
  Result<std::vector<InteractionId>> RemoveBranch(const ChatId& chat, InteractionId from) final;
  Result<std::vector<ChatSummary>> ListChats() final { return List()->All(); }
  Result<ChatPage> ListPage(const std::optional<ChatPlace>& after, std::size_t limit, const ChatFilter& wanted) final {
    return List()->Page(after, limit, wanted);
  }
  Result<std::vector<UnreadableChat>> ListUnreadableChats() final { return List()->Unreadable(); }

 protected:
  // Fails if the store was opened for reading.
  virtual Result<void> CheckWritable() const { return {}; }
  // All chats: the one list of the store, or one that is made for this call.
  virtual std::shared_ptr<ChatList> List() = 0;
  virtual Result<std::string> ReadDigest(const ChatId& chat, InteractionId id) = 0;
  // CopyUpTo with its interactions, files and blobs.
  virtual Result<IncomingChat> CopyOfBranch(const ChatId& source, InteractionId last, const ChatId& chat,
                                            const std::optional<std::string>& title) = 0;

  // Each of these is atomic, and durable when it returns ok.
  // Adds a chat without interactions, or a whole one. kConflict (reason "chat_exists").
  virtual Result<void> AddEmpty(const ChatIndex& index) = 0;
  virtual Result<ChatSummary> AddWhole(const IncomingChat& chat) = 0;
  // Replaces the index by what `change` makes of it, which is called again if another process was faster. While a run
  // holds the chat, a store that knows of it fails (reason "busy") unless `while_running`.
  using IndexChange = std::function<Result<void>(ChatIndex&)>;
  virtual Result<ChatSummary> ChangeIndex(const ChatId& chat, bool while_running, const IndexChange& change) = 0;
  // Moves interactions to the trash that the index no longer names.
  virtual Result<void> MoveToTrash(const ChatId& chat, const std::vector<InteractionId>& interactions) = 0;
};

}  // namespace reprise
