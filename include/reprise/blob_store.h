#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/ids.h"
#include "reprise/result.h"

namespace reprise {

// Content that a chat's history refers to by digest: the content of workspace files. `digest` is "sha256:" + 64 hex
// digits of the content.
struct Blob {
  std::string digest;
  std::string content;  // any bytes
};

// Keeps the blobs of chats, and each chat's workspace position. A blob never changes. Without the key, stored blobs
// reveal nothing of their content, not even that two are equal. All methods may be called from several threads.
// Failures: kNotFound, kCorruption (reason integrity_<kind>), kIo, kStorageFull, kTooLarge, kUnavailable.
//
//   auto put = blobs.Put(chat, {{.digest = digest, .content = "Hello"}});
//   if (!put) return Complain(put.error().message);
//   auto content = blobs.Get(chat, digest);
//   if (!content) return Complain(content.error().message);
class BlobStore {
 public:
  virtual ~BlobStore() = default;

  // Existing blobs cost nothing. When this returns ok, all of them survive a power loss. kNotFound: no such chat.
  virtual Result<void> Put(const ChatId& chat, const std::vector<Blob>& blobs) = 0;
  // The content with this digest.
  virtual Result<std::string> Get(const ChatId& chat, std::string_view digest) = 0;
  // All digests, in no order. kCorruption if one of them cannot be read.
  virtual Result<std::vector<std::string>> List(const ChatId& chat) = 0;
  virtual Result<void> Delete(const ChatId& chat, std::string_view digest) = 0;

  // A short text beside the blobs; nullopt: none. An empty text removes it.
  virtual Result<std::optional<std::string>> ReadPosition(const ChatId& chat) = 0;
  virtual Result<void> WritePosition(const ChatId& chat, std::string_view text) = 0;

  // A text per chat for an operation that the next start must finish, and the chats that have one. Durable when it
  // returns ok. An empty text removes it.
  virtual Result<void> WriteIntent(const ChatId& chat, std::string_view text) = 0;
  struct Intent {
    ChatId chat;
    Result<std::string> text;
  };
  virtual Result<std::vector<Intent>> ReadIntents() = 0;

  // Call it when the chat is deleted, or another one takes its name.
  virtual void ForgetChat(const ChatId& chat) = 0;
};

}  // namespace reprise
