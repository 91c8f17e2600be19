#include "base/json.h"

#include <array>
#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace reprise {
namespace {

// What makes nlohmann's parser stop inside the callback: the depth is known before anything is built, so that deep
// input costs neither memory nor stack.
struct TooDeep {};

Error InvalidJson(std::string_view reason, std::string message) {
  return Error{.code = ErrorCode::kInvalidArgument, .reason = std::string(reason), .message = std::move(message)};
}

}  // namespace

Result<Json> ParseJson(std::string_view text, int max_depth) {
  if (!IsUtf8(text)) return Fail(InvalidJson("invalid_utf8", "the text is not valid UTF-8"));
  const auto check_depth = [max_depth](int depth, Json::parse_event_t event, Json&) {
    const bool opens = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth >= max_depth) throw TooDeep{};
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), check_depth);
  } catch (const TooDeep&) {
    return Fail(InvalidJson("too_deep", "JSON nested deeper than " + std::to_string(max_depth) + " levels"));
  } catch (const Json::parse_error& error) {
    // The library's own text quotes the input, which may be private; the position is enough.
    return Fail(InvalidJson("invalid_json", "not valid JSON (at byte " + std::to_string(error.byte) + ")"));
  } catch (const Json::exception&) {
    return Fail(InvalidJson("invalid_json", "not valid JSON (a number is out of range)"));
  }
}

std::string DumpJson(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string DumpJsonPretty(const Json& value) { return value.dump(2, ' ', false, Json::error_handler_t::replace); }

void AppendJsonEscaped(std::string& out, std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::size_t plain_from = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f) continue;
    out.append(text, plain_from, i - plain_from);
    plain_from = i + 1;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out += "\\u00";
        out += kHex[c >> 4];
        out += kHex[c & 15];
    }
  }
  out.append(text, plain_from, text.size() - plain_from);
}

}  // namespace reprise
