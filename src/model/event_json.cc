#include "model/event_json.h"

#include <cstddef>
#include <utility>

#include "base/json.h"
#include "base/text.h"

namespace reprise {
namespace {

// Larger events are rare, so their buffers are not kept (simdjson needs about ten times the text).
constexpr std::size_t kKeptCapacity = 64 * 1024;

simdjson::error_code ParseWith(simdjson::dom::parser& parser, std::string_view json, simdjson::dom::element& root) {
  if (parser.max_depth() != static_cast<std::size_t>(kMaxJsonDepth) || parser.capacity() < json.size()) {
    if (const auto error = parser.allocate(std::max(json.size(), kKeptCapacity), kMaxJsonDepth)) return error;
  }
  return parser.parse(json.data(), json.size()).get(root);
}

}  // namespace

EventJson::EventJson(std::string_view json) {
  if (HasSurrogateEscape(json)) json = mended_ = MendSurrogateEscapes(json);
  // Scratch space, one per thread rather than one per stream.
  static thread_local simdjson::dom::parser kept_parser;
  simdjson::dom::parser& parser = json.size() > kKeptCapacity ? large_parser_ : kept_parser;
  auto error = ParseWith(parser, json, root_);
  const auto parse_mended = [&](std::string mended) {
    mended_ = std::move(mended);
    json = mended_;
    // The mended text may be longer, so it may need the other parser.
    error = ParseWith(mended_.size() > kKeptCapacity ? large_parser_ : parser, mended_, root_);
  };
  if (error == simdjson::UTF8_ERROR) parse_mended(ToValidUtf8(json));
  if (error != simdjson::SUCCESS) {
    if (auto mended = MendJson(json)) parse_mended(*std::move(mended));
  }
  text_ = json;
  valid_ = error == simdjson::SUCCESS && root_.is_object();
}

bool SaysNothing(simdjson::dom::element value) {
  return value.is_null() || (value.is_string() && StringOr(value, {}).empty()) ||
         (value.is_array() && simdjson::dom::array(value).size() == 0) ||
         (value.is_object() && simdjson::dom::object(value).size() == 0);
}

std::optional<std::string> ArgumentsIn(const Member& value) {
  simdjson::dom::element arguments;
  if (value.get(arguments) != simdjson::SUCCESS || SaysNothing(arguments)) return std::string();
  if (arguments.is_string()) return std::string(StringOr(arguments, {}));
  if (arguments.is_object()) return simdjson::minify(arguments);
  return std::nullopt;
}

std::string WordIn(const Member& value) {
  simdjson::dom::element word;
  if (value.get(word) != simdjson::SUCCESS || SaysNothing(word)) return {};
  return word.is_string() ? std::string(StringOr(word, {})) : simdjson::minify(word);
}

}  // namespace reprise
