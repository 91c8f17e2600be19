#include "engine/text_pieces.h"

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "engine/history.h"
#include "support/test.h"

namespace reprise {
namespace {

TextPieces PiecesOf(const std::vector<std::string>& texts) {
  TextPieces pieces;
  for (const std::string& text : texts) pieces.Add(text);
  pieces.Shrink();
  return pieces;
}

ChatSummary Summary(const char* id, std::uint32_t head) {
  return {.id = ChatId::Parse(id).value(),
          .updated_at = Timestamp(std::chrono::milliseconds(head)),
          .head = InteractionId::FromNumber(head)};
}

TEST_CASE("TextPieces: no text that a search finds is missing from its pieces", "[engine]") {
  // Small and capital letters, other alphabets, letters that fold to ASCII, and bytes that are no text.
  const std::vector<std::string> letters = {"a",      "B",      "k",      "K",        "\u212a", "s",      "S",
                                            "\u017f", "\u00e9", "\u00c9", "\u0434",   "\u0414", "\u6f22", "\U0001f600",
                                            " ",      "1",      "\xff",   "\xe2\x84", "\n"};
  std::mt19937 random(4711);
  const auto text = [&](std::size_t length) {
    std::string made;
    for (std::size_t i = 0; i < length; ++i) made += letters[random() % letters.size()];
    return made;
  };
  std::size_t found = 0;
  for (int round = 0; round < 20'000; ++round) {
    const Interaction interaction{
        .id = InteractionId::FromNumber(1), .chat_id = ChatId::Parse("c").value(), .user_message = text(40)};
    const std::string looked_for = text(1 + random() % 5);
    TextPieces heard;
    const bool matches = !TextSearch(looked_for, {}).In(interaction, &heard).empty();
    heard.Shrink();
    if (!matches) continue;
    ++found;
    CHECK(heard.MayHave(TextPieces::PiecesOf(looked_for)));
  }
  CHECK(found > 1000);
}

TEST_CASE("TextPieces: few texts without a word seem to have it, and a set takes few bytes", "[engine]") {
  std::mt19937 random(4711);
  const auto word = [&] {
    std::string made;
    for (int i = 0; i < 8; ++i) made += static_cast<char>('a' + random() % 26);
    return made;
  };
  int seeming = 0;
  for (int chat = 0; chat < 1000; ++chat) {
    std::string text;
    for (int i = 0; i < 200; ++i) text += word() + " ";
    const TextPieces pieces = PiecesOf({text});
    CHECK(pieces.bytes() <= 2048);
    seeming += pieces.MayHave(TextPieces::PiecesOf(word()));
  }
  CHECK(seeming <= 5);
  CHECK(PiecesOf({}).bytes() == 8);
  CHECK_FALSE(PiecesOf({}).MayHave(TextPieces::PiecesOf("abc")));
  CHECK(PiecesOf({}).MayHave(TextPieces::PiecesOf("ab")));  // too short to say
}

TEST_CASE("SearchedChats: what is known of a chat holds until the chat changes", "[engine]") {
  SearchedChats searched;
  CHECK(searched.MayHave(Summary("c", 1), TextPieces::PiecesOf("needle")));
  searched.Learn(Summary("c", 1), PiecesOf({"hay"}));
  CHECK_FALSE(searched.MayHave(Summary("c", 1), TextPieces::PiecesOf("needle")));
  CHECK(searched.MayHave(Summary("c", 1), TextPieces::PiecesOf("HAY")));
  CHECK(searched.MayHave(Summary("c", 2), TextPieces::PiecesOf("needle")));
  CHECK(searched.MayHave(Summary("d", 1), TextPieces::PiecesOf("needle")));
  searched.Learn(Summary("c", 2), PiecesOf({"hay", "Needle"}));
  CHECK(searched.MayHave(Summary("c", 2), TextPieces::PiecesOf("needle")));
  searched.Forget(ChatId::Parse("c").value());
  CHECK(searched.MayHave(Summary("c", 2), TextPieces::PiecesOf("thread")));
}

}  // namespace
}  // namespace reprise
