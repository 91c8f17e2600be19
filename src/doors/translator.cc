#include "doors/translator.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "domain/codec.h"

namespace reprise {

void Translator::Take(const EventFrame& frame, std::string& out) {
  const bool is_text = frame.name == event::TextDelta::kName;
  if (is_text || frame.name == event::ThinkingDelta::kName) {
    const std::string_view literal = frame.ContentLiteral();
    if (literal.size() <= 2) return;  // an empty text
    return TakePiece(frame.seq, is_text ? Piece::kText : Piece::kThinking, literal.substr(1, literal.size() - 2), out);
  }
  const auto json = ParseJson(frame.data, 2 * kMaxJsonDepth);
  if (const auto event = json ? ReceivedEvent(*json) : std::nullopt) TakeEvent(*event, out);
}

}  // namespace reprise
