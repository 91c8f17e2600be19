#include "engine/text_pieces.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <utility>

#include "base/text.h"

namespace reprise {
namespace {

constexpr std::size_t kMostBytes = 256u << 20;

// The only characters outside of ASCII that are letters of ASCII in another case (Unicode, CaseFolding.txt).
constexpr std::string_view kLongS = "\u017f", kKelvin = "\u212a";

// Calls `take(byte)` for each byte; letters of ASCII are small ones.
void Fold(std::string_view text, const auto& take) {
  while (!text.empty()) {
    std::size_t length = 1;
    unsigned char byte = static_cast<unsigned char>(LowerCase(text[0]));
    if (text.starts_with(kLongS)) {
      byte = 's', length = kLongS.size();
    } else if (text.starts_with(kKelvin)) {
      byte = 'k', length = kKelvin.size();
    }
    take(byte);
    text.remove_prefix(length);
  }
}

// Calls `take(piece)` for each three bytes. With `sure`, only for pieces that any case of the text has: of ASCII.
void EachPiece(std::string_view text, bool sure, const auto& take) {
  std::uint32_t last = 0;
  std::size_t length = 0;
  Fold(text, [&](unsigned char byte) {
    last = (last << 8 | byte) & 0xffffff;
    length = sure && byte >= 0x80 ? 0 : length + 1;
    if (length >= 3) take((last * 2654435761u) >> 13);  // Knuth's multiplicative hash, 19 bits
  });
}

}  // namespace

void TextPieces::Add(std::string_view text) {
  EachPiece(text, /*sure=*/false, [&](std::uint32_t piece) { bits_[WordOf(piece)] |= 1ull << (piece & 63); });
}

void TextPieces::Shrink() {
  for (;;) {
    const std::size_t half = bits_.size() / 2;
    std::size_t set = 0;
    for (std::size_t i = 0; i < half; ++i) set += static_cast<std::size_t>(std::popcount(bits_[i] | bits_[i + half]));
    if (half == 0 || set * 4 > half * 64) break;
    for (std::size_t i = 0; i < half; ++i) bits_[i] |= bits_[i + half];
    bits_.resize(half);
  }
  bits_.shrink_to_fit();
}

TextPieces::Sought TextPieces::PiecesOf(std::string_view text) {
  Sought pieces;
  EachPiece(text, /*sure=*/true, [&](std::uint32_t piece) { pieces.push_back(piece); });
  return pieces;
}

bool TextPieces::MayHave(const Sought& sought) const {
  return std::ranges::all_of(sought, [&](std::uint32_t piece) { return bits_[WordOf(piece)] >> (piece & 63) & 1; });
}

bool SearchedChats::MayHave(const ChatSummary& chat, const TextPieces::Sought& sought) const {
  const MutexLock lock(mutex_);
  const auto known = chats_.find(std::hash<ChatId>()(chat.id));
  return known == chats_.end() || !known->second.IsOf(chat) || known->second.pieces.MayHave(sought);
}

void SearchedChats::Remove(std::size_t key) {
  const auto known = chats_.find(key);
  if (known == chats_.end()) return;
  bytes_ -= known->second.pieces.bytes();
  chats_.erase(known);
}

void SearchedChats::Learn(const ChatSummary& chat, TextPieces pieces) {
  pieces.Shrink();
  const std::size_t key = std::hash<ChatId>()(chat.id);
  const MutexLock lock(mutex_);
  Remove(key);
  if (bytes_ + pieces.bytes() > kMostBytes) return;  // each search opens the others
  bytes_ += pieces.bytes();
  chats_.emplace(key, Known{chat.updated_at, chat.head, chat.tokens, std::move(pieces)});
}

void SearchedChats::Forget(const ChatId& chat) {
  const MutexLock lock(mutex_);
  Remove(std::hash<ChatId>()(chat));
}

}  // namespace reprise
