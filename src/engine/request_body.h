#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/engine.h"
#include "reprise/file_store.h"
#include "reprise/interaction.h"
#include "reprise/interaction_store.h"
#include "reprise/message.h"
#include "reprise/result.h"

// The bodies of requests to models, stored as what is new in them, so that a turn's request costs some hundred bytes.
// A body repeats the beginning and the end of the request before it, and the texts of the state's messages. Any body
// is restored byte for byte; one that is not a conversation in JSON only takes more space.
namespace reprise {

struct ShortBody {
  SentBody body;
  RequestMarks marks;  // what a later body may repeat; the caller sets its place
};

// Shortens a body, in time that grows linearly with it and with `messages`. `before` marks the request before it; null
// if there is none. `messages` begins like those of the interaction's final state. REQUIRES: `body` is UTF-8, if the
// result is to be stored as JSON.
ShortBody ShortenBody(std::string_view body, const RequestMarks* before, const Messages& messages,
                      FilesOfChat* files = nullptr);

// The body again. `before` is the body of the request `sent.before`, and ignored if there is none. kCorruption (reason
// "integrity_auth") if a piece does not fit or the result is not the body that was sent; kNotFound if it held a file
// that was deleted since.
Result<std::string> RestoreBody(const SentBody& sent, std::string_view before, const Messages& messages,
                                FilesOfChat* files = nullptr);

// For people, of a turn whose RunRecord::requests are not on record.
inline constexpr const char* kRequestsNotOnRecord =
    "its requests are not on record: an earlier version ran it, it was kept from a what-if, or it comes from elsewhere";

// The bodies of a chat's requests. Not thread-safe; store and files must outlive it.
class RequestBodies {
 public:
  enum class Digests { kChecked, kIgnored };
  RequestBodies(CheckpointStore& store, FilesOfChat* files, Digests digests = Digests::kChecked)
      : store_(store), files_(files), digests_(digests) {}
  CheckpointStore& store() const { return store_; }
  FilesOfChat* files() const { return files_; }

  // Of the request `index` of a whole interaction. Fast if the one before it was asked for lately. kNotFound: no
  // such request is on record; RestoreBody's failures, the store's.
  Result<std::string> Of(const Interaction& asked, std::uint64_t index);
  // The same for people: in place of a file that was deleted since stands "deleted: " and its id.
  Result<std::string> ForPeople(const Interaction& asked, std::uint64_t index);
  // A line for each request of a whole interaction whose body is not what was sent: "request 2: ...". A body that held
  // a file which was deleted since is no fault.
  std::vector<std::string> FaultsOf(const Interaction& asked);
  // The request with these lists (SentRequest::modules, tools), here or in the one whose lists it has. nullopt: not on
  // record. The store's failures.
  Result<std::optional<SentRequest>> WithLists(const Interaction& asked, std::uint64_t index);
  // All of an interaction, with these lists where they are known. The store's failures.
  Result<RequestsOnRecord> AllOf(const Interaction& asked);

 private:
  Result<const std::vector<SentRequest>*> RequestsOf(const Interaction& asked, InteractionId id);

  CheckpointStore& store_;
  FilesOfChat* const files_;  // null: chats have no files
  const Digests digests_;
  std::vector<std::pair<RequestPlace, std::string>> last_{};     // that were asked for
  std::map<InteractionId, std::vector<SentRequest>> earlier_{};  // of the same chat
};

}  // namespace reprise
