#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/ids.h"
#include "reprise/result.h"

namespace reprise {

// Content that a chat's history speaks of by its digest: what files of the workspace held. `digest` is "sha256:" + 64
// hex digits of the content.
struct Blob {
  std::string digest;
  std::string content;  // any bytes
};

// A BlobStore keeps the blobs of chats, and for each chat where its workspace stands. A blob is never changed. Where
// blobs are kept says nothing of their content to somebody without the key, not even that two are the same. All methods
// may be called from several threads. Failures: kNotFound, kCorruption (reason integrity_<kind>), kIo, kStorageFull,
// kTooLarge, kUnavailable.
class BlobStore {
 public:
  virtual ~BlobStore() = default;

  // Those that are there already cost nothing. When this returns ok all of them survive a power loss. kNotFound if
  // there is no such chat.
  virtual Result<void> Put(const ChatId& chat, const std::vector<Blob>& blobs) = 0;
  // Its content, which has this digest.
  virtual Result<std::string> Get(const ChatId& chat, std::string_view digest) = 0;
  // The digests of all that are there, in no order. kCorruption if one of them cannot be read.
  virtual Result<std::vector<std::string>> List(const ChatId& chat) = 0;
  virtual Result<void> Delete(const ChatId& chat, std::string_view digest) = 0;

  // A short text beside the blobs; nullopt: none. An empty text removes it.
  virtual Result<std::optional<std::string>> ReadPosition(const ChatId& chat) = 0;
  virtual Result<void> WritePosition(const ChatId& chat, std::string_view text) = 0;

  // A text for each chat in which something is under way that must be finished at the next start, with the chats that
  // have one. Durable when it returns ok. An empty text removes it.
  virtual Result<void> WriteIntent(const ChatId& chat, std::string_view text) = 0;
  struct Intent {
    ChatId chat;
    Result<std::string> text;
  };
  virtual Result<std::vector<Intent>> ReadIntents() = 0;

  // The chat is no more, or another one has its name.
  virtual void ForgetChat(const ChatId& chat) = 0;
};

}  // namespace reprise
