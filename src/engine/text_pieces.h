#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "reprise/ids.h"
#include "reprise/interaction.h"

namespace reprise {

// Which pieces of three bytes some texts have, each as a bit (a Bloom filter with one hash). A search in any case opens
// only chats whose texts have all pieces of what it looks for.
class TextPieces {
 public:
  // The pieces of a text that is looked for.
  using Sought = std::vector<std::uint32_t>;
  static Sought PiecesOf(std::string_view text);

  TextPieces() : bits_(kMostWords) {}
  void Add(std::string_view text);
  // Makes the set as small as it can be with at most a quarter of its bits set.
  void Shrink();
  // False: none of the texts has what is sought, in any case. True: perhaps.
  bool MayHave(const Sought& sought) const;
  std::size_t bytes() const { return bits_.size() * sizeof(bits_[0]); }

 private:
  static constexpr std::size_t kMostWords = 8192;  // 64 KiB: for 130,000 pieces
  std::size_t WordOf(std::uint32_t piece) const { return (piece >> 6) & (bits_.size() - 1); }
  std::vector<std::uint64_t> bits_;  // a power of two
};

// What a search has learnt about each chat, for those that come after it. Only in memory, so that no text of a sealed
// chat can be guessed from a file. Thread-safe.
class SearchedChats {
 public:
  // Whether the chat may have the text. True if it has changed since `Learn`.
  bool MayHave(const ChatSummary& chat, const TextPieces::Sought& sought) const;
  // `pieces` are those of all texts of the chat as `chat` describes it.
  void Learn(const ChatSummary& chat, TextPieces pieces);
  void Forget(const ChatId& chat);

 private:
  struct Known {
    // Every turn, on any branch, changes one of these.
    Timestamp updated_at;
    std::optional<InteractionId> head;
    std::optional<std::int64_t> tokens;
    TextPieces pieces;
    bool IsOf(const ChatSummary& chat) const {
      return updated_at == chat.updated_at && head == chat.head && tokens == chat.tokens;
    }
  };
  void Remove(std::size_t key) REQUIRES(mutex_);
  mutable Mutex mutex_;
  std::unordered_map<std::size_t, Known> chats_ GUARDED_BY(mutex_);  // by the hash of the id, which is compared faster
  std::size_t bytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace reprise
