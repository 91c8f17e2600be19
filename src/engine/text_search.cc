#include "engine/text_search.h"

#include <re2/re2.h>

#include <algorithm>
#include <variant>

#include "base/text.h"

namespace reprise {
namespace {

constexpr std::int64_t kPatternMemory = 64 << 20;
constexpr std::size_t kContextBytes = 60;  // on either side of the match

RE2::Options OptionsFor(TextSearch::How how) {
  RE2::Options options;
  options.set_literal(!how.regex);
  options.set_case_sensitive(how.case_sensitive);
  options.set_dot_nl(true);
  options.set_log_errors(false);
  options.set_max_mem(kPatternMemory);
  return options;
}

// A searchable part of an interaction, with its name.
struct Part {
  std::string_view where;
  std::string text;
};

std::vector<Part> PartsOf(const Interaction& interaction) {
  std::vector<Part> parts = {{"user", interaction.user_message}};
  for (const AgentEvent& agent_event : interaction.events) {
    const EventPayload& payload = agent_event.payload;
    if (const auto* answer = std::get_if<event::Answer>(&payload)) parts.push_back({"answer", answer->content});
    if (const auto* message = std::get_if<event::MessageText>(&payload)) parts.push_back({"answer", message->content});
    if (const auto* call = std::get_if<event::ToolCallStarted>(&payload)) {
      parts.push_back({"tool_call", call->tool_name + " " + call->tool_input});
    }
    if (const auto* result = std::get_if<event::ToolResult>(&payload)) {
      parts.push_back({"tool_result", result->tool_output});
    }
  }
  return parts;
}

bool ContinuesCharacter(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

std::string Snippet(std::string_view text, std::size_t begin, std::size_t length) {
  std::size_t from = begin > kContextBytes ? begin - kContextBytes : 0;
  std::size_t to = std::min(text.size(), begin + std::min(length, 4 * kContextBytes) + kContextBytes);
  while (from > 0 && ContinuesCharacter(text[from])) --from;
  while (to < text.size() && ContinuesCharacter(text[to])) ++to;
  return (from > 0 ? "..." : "") + std::string(text.substr(from, to - from)) + (to < text.size() ? "..." : "");
}

}  // namespace

TextSearch::TextSearch(std::string_view text, How how)
    : pattern_(std::make_unique<const RE2>(re2::StringPiece(text.data(), text.size()), OptionsFor(how))) {}
TextSearch::~TextSearch() = default;

std::optional<std::string> TextSearch::problem() const {
  return pattern_->ok() ? std::nullopt : std::optional(pattern_->error());
}

std::vector<TextMatch> TextSearch::In(const Interaction& interaction) const {
  std::vector<TextMatch> matches;
  for (const Part& part : PartsOf(interaction)) {
    const std::string text = ToValidUtf8(part.text);
    re2::StringPiece found;
    if (!pattern_->Match(text, 0, text.size(), RE2::UNANCHORED, &found, 1)) continue;
    const auto at = static_cast<std::size_t>(found.data() - text.data());
    matches.push_back({.where = part.where, .snippet = Snippet(text, at, found.size())});
  }
  return matches;
}

}  // namespace reprise
