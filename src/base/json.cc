#include "base/json.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "base/json_escapes.h"
#include "base/text.h"

namespace reprise {

namespace {

bool IsJsonSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Whether the name is short and plain enough for a message.
bool IsPlainName(std::string_view name) {
  constexpr std::size_t kLongest = 40;
  return !name.empty() && name.size() <= kLongest &&
         std::ranges::all_of(name, [](char c) { return IsToolNameCharacter(c); });
}

// Builds a value from a parser's events. It checks the depth before it builds anything, so deep input costs neither
// memory nor stack. nlohmann's builder compares each new member with all others, which takes seconds for a body of 1
// MiB.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  Builder(int max_depth, DuplicateMembers duplicates) : max_depth_(max_depth), duplicates_(duplicates) {}

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t&) override { return Add(value); }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // not in text
  bool start_object(std::size_t members) override {
    return Open(Json::value_t::object) && Reserve<Json::object_t>(members);
  }
  bool start_array(std::size_t elements) override {
    return Open(Json::value_t::array) && Reserve<Json::array_t>(elements);
  }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& name) override {
    Level& level = open_.back();
    auto& members = level.value->get_ref<Json::object_t&>();
    if (auto* known = Find(level, members, name); known != nullptr) {
      if (duplicates_ == DuplicateMembers::kRefused) {
        const std::string named = IsPlainName(name) ? "the member \"" + name + "\"" : "a member";
        error_ = Refused(Reason::kDuplicateMember, "an object has " + named + " twice");
        return false;
      }
      *known = nullptr;
      level.member = known;
      return true;
    }
    if (members.size() == kFewMembers) {
      for (std::size_t i = 0; i < members.size(); ++i)
        level.names.emplace(members.begin()[static_cast<std::ptrdiff_t>(i)].first, i);
    }
    if (members.size() >= kFewMembers) level.names.emplace(name, members.size());
    members.emplace_back(std::move(name), nullptr);
    level.member = &members.back().second;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& why) override {
    const bool too_large = dynamic_cast<const Json::out_of_range*>(&why) != nullptr;
    // The library's own text quotes the input, which may be private; the position is enough.
    if (!too_large) return Refuse(position);
    error_ = Refused(Reason::kInvalidJson, "not valid JSON (a number is out of range)");
    return false;
  }

  // The byte there, counted from 1, is wrong.
  bool Refuse(std::size_t position) {
    error_ = Refused(Reason::kInvalidJson, "not valid JSON (at byte " + std::to_string(position) + ")");
    at_ = position;
    return false;
  }

  Json TakeRoot() { return std::move(root_); }
  const Error& error() const { return error_; }
  std::optional<std::size_t> at() const { return at_; }

 private:
  static constexpr std::size_t kFewMembers = 16;  // searched linearly

  // Only the newest value of an open level may grow. Pointers to the values before it are valid only until the level
  // closes.
  struct Level {
    Json* value;
    Json* member = nullptr;                                // in an object: the member whose value comes next
    std::unordered_map<std::string, std::size_t> names{};  // only if the object has more than kFewMembers
  };

  static Json* Find(Level& level, Json::object_t& members, const std::string& name) {
    if (members.size() <= kFewMembers) {
      const auto found = std::ranges::find_if(members, [&](const auto& each) { return each.first == name; });
      return found == members.end() ? nullptr : &found->second;
    }
    const auto found = level.names.find(name);
    return found == level.names.end() ? nullptr : &members.begin()[static_cast<std::ptrdiff_t>(found->second)].second;
  }

  Json* Place(Json value) {
    if (open_.empty()) return root_ = std::move(value), &root_;
    Level& level = open_.back();
    if (!level.value->is_array()) return *level.member = std::move(value), level.member;
    auto& elements = level.value->get_ref<Json::array_t&>();
    return &elements.emplace_back(std::move(value));
  }
  bool Add(Json value) {
    Place(std::move(value));
    return true;
  }
  bool Open(Json::value_t kind) {
    if (static_cast<int>(open_.size()) >= max_depth_) {
      error_ = Refused(Reason::kTooDeep, "JSON nested deeper than " + std::to_string(max_depth_) + " levels");
      return false;
    }
    open_.push_back({Place(Json(kind))});
    return true;
  }
  // Makes room in what was just opened; nlohmann's parser does not know for how many.
  template <typename Kind>
  bool Reserve(std::size_t count) {
    constexpr auto kUnknown = static_cast<std::size_t>(-1);
    if (count != kUnknown) open_.back().value->get_ref<Kind&>().reserve(count);
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  const int max_depth_;
  const DuplicateMembers duplicates_;
  Json root_;
  std::vector<Level> open_;
  Error error_;
  std::optional<std::size_t> at_;
};

// simdjson is several times as fast as nlohmann's parser, which we need to say what is wrong and where. It needs about
// ten times the text as scratch space; each thread keeps the space for short texts.
constexpr std::size_t kShortText = 64 * 1024, kLongestText = 4 * 1024 * 1024;
constexpr std::size_t kMaxScratchDepth = 256;

bool Build(simdjson::dom::element element, Builder& builder) {
  switch (element.type()) {
    case simdjson::dom::element_type::ARRAY:
      if (!builder.start_array(simdjson::dom::array(element).size())) return false;
      for (const simdjson::dom::element each : simdjson::dom::array(element)) {
        if (!Build(each, builder)) return false;
      }
      return builder.end_array();
    case simdjson::dom::element_type::OBJECT:
      if (!builder.start_object(simdjson::dom::object(element).size())) return false;
      for (const auto& [name, value] : simdjson::dom::object(element)) {
        std::string key(name);
        if (!builder.key(key) || !Build(value, builder)) return false;
      }
      return builder.end_object();
    case simdjson::dom::element_type::INT64: {
      // As in nlohmann's parser, a number that is not negative is unsigned.
      const std::int64_t number = element;
      return number < 0 ? builder.number_integer(number) : builder.number_unsigned(static_cast<std::uint64_t>(number));
    }
    case simdjson::dom::element_type::UINT64:
      return builder.number_unsigned(element);
    case simdjson::dom::element_type::DOUBLE:
      return builder.number_float(element, {});
    case simdjson::dom::element_type::STRING: {
      std::string text{std::string_view(element)};
      return builder.string(text);
    }
    case simdjson::dom::element_type::BOOL:
      return builder.boolean(element);
    case simdjson::dom::element_type::NULL_VALUE:
      return builder.null();
  }
  return false;
}

constexpr std::string_view kMarkBeforeJson = "\xEF\xBB\xBF";

// nlohmann's parser skips a byte order mark and takes NUL for the end of the text, whatever comes behind. Neither is
// JSON, so a text that has one would be read in two ways.
bool ParseStrictly(std::string_view text, Builder& builder, bool ignores_comments = false) {
  const std::size_t wrong = text.starts_with(kMarkBeforeJson) ? 0 : text.find('\0');
  if (wrong != std::string_view::npos) return builder.Refuse(wrong + 1);
  return Json::sax_parse(text.begin(), text.end(), &builder, Json::input_format_t::json, /*strict=*/true,
                         ignores_comments);
}

// Whether `text` is JSON. If so, `built` tells whether the builder accepted it.
bool ParseFast(std::string_view text, Builder& builder, bool& built) {
  if (text.empty() || text.starts_with(kMarkBeforeJson)) return false;  // perhaps null; simdjson 3.11 skips the mark
  static thread_local simdjson::dom::parser kept;
  simdjson::dom::parser large;
  const bool is_short = text.size() <= kShortText;
  simdjson::dom::parser& parser = is_short ? kept : large;
  if (parser.max_depth() != kMaxScratchDepth || parser.capacity() < text.size()) {
    if (parser.allocate(is_short ? kShortText : text.size(), kMaxScratchDepth) != simdjson::SUCCESS) return false;
  }
  simdjson::dom::element root;
  if (parser.parse(text.data(), text.size()).get(root) != simdjson::SUCCESS) return false;
  built = Build(root, builder);
  return true;
}

// The index of the closing quote of the string that begins at `at`; the text's size if there is none.
std::size_t EndOfString(std::string_view text, std::size_t at) {
  for (std::size_t quote = text.find('"', at + 1); quote != std::string_view::npos; quote = text.find('"', quote + 1)) {
    std::size_t escapes = quote;
    while (text[escapes - 1] == '\\') --escapes;
    if ((quote - escapes) % 2 == 0) return quote;
  }
  return text.size();
}

// The end of the JSON value that begins at `at`. REQUIRES: `text` is JSON.
std::size_t EndOfValue(std::string_view text, std::size_t at) {
  for (int depth = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (depth == 0 && (c == ',' || c == '}' || c == ']' || IsJsonSpace(c))) return at;
    if (c == '"') at = EndOfString(text, at);
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth == 0 && (c == '"' || c == '}' || c == ']')) return std::min(at + 1, text.size());
  }
  return text.size();
}

// Calls `on_member` with each member's name and value as written, until it returns false.
template <typename OnMember>
void EachMember(std::string_view object, OnMember on_member) {
  const auto skip = [&](std::size_t at, char expected) {
    while (at < object.size() && (IsJsonSpace(object[at]) || object[at] == expected)) ++at;
    return at;
  };
  std::size_t at = object.find('{');
  for (at = at == std::string_view::npos ? object.size() : skip(at + 1, ' ');
       at < object.size() && object[at] == '"';) {
    const std::size_t end_of_name = EndOfValue(object, at);
    const std::size_t begin = skip(end_of_name, ':');
    const std::size_t end = EndOfValue(object, begin);
    if (!on_member(object.substr(at, end_of_name - at), object.substr(begin, end - begin))) return;
    at = skip(end, ',');
  }
}

}  // namespace

Result<Json> ParseJson(std::string_view text, int max_depth, DuplicateMembers duplicates) {
  if (!IsUtf8(text)) return Fail(Reason::kInvalidUtf8, "the text is not valid UTF-8");
  Builder builder(max_depth, duplicates);
  bool built = false;
  if (text.size() > kLongestText || !ParseFast(text, builder, built)) {
    built = ParseStrictly(text, builder);
  }
  if (built) return builder.TakeRoot();
  return Fail(builder.error());
}

Result<Json> ParseJsonWithComments(std::string_view text) {
  if (text.starts_with(kMarkBeforeJson)) text.remove_prefix(kMarkBeforeJson.size());  // an editor's
  if (!IsUtf8(text)) return Fail(Reason::kInvalidUtf8, "is not valid UTF-8");
  Builder builder(kMaxJsonDepth, DuplicateMembers::kRefused);
  if (ParseStrictly(text, builder, /*ignores_comments=*/true)) return builder.TakeRoot();
  Error error = builder.error();
  if (const auto at = builder.at()) {
    const auto offset = static_cast<std::ptrdiff_t>(std::min(*at, text.size()));
    const auto line = 1 + std::count(text.begin(), text.begin() + offset, '\n');
    error.message = "not valid JSON (line " + std::to_string(line) + ")";
  }
  if (error.Is(Reason::kInvalidJson)) error.message.insert(0, "is ");
  if (error.Is(Reason::kTooDeep)) error.message = "is nested too deeply";
  if (error.Is(Reason::kDuplicateMember)) error.message.insert(0, "is ambiguous: ");
  return Fail(std::move(error));
}

std::string_view RawMember(std::string_view object, std::string_view name) {
  std::string_view found;
  EachMember(object, [&](std::string_view written, std::string_view value) {
    const auto text = ParseJson(written);
    if (!text || *text != name) return true;
    found = value;
    return false;
  });
  return found;
}

std::vector<RawJsonMember> RawMembers(std::string_view object) {
  std::vector<RawJsonMember> members;
  EachMember(object, [&](std::string_view written, std::string_view value) {
    members.push_back({written, value});
    return true;
  });
  return members;
}

std::vector<std::string_view> RawElements(std::string_view array) {
  std::vector<std::string_view> elements;
  std::size_t at = array.find('[');
  for (at = at == std::string_view::npos ? array.size() : at + 1; at < array.size();) {
    if (IsJsonSpace(array[at]) || array[at] == ',') {
      ++at;
      continue;
    }
    const std::size_t end = EndOfValue(array, at);
    if (array[at] == ']' || end == at) break;
    elements.push_back(array.substr(at, end - at));
    at = end;
  }
  return elements;
}

const Json& MemberOf(const Json& object, std::string_view name) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(name);
  return found == object.end() ? kNone : *found;
}

std::string TextMember(const Json& object, std::string_view name) {
  const Json& member = MemberOf(object, name);
  return member.is_string() ? member.get<std::string>() : std::string();
}

bool IsSameInAnyOrder(const Json& a, const Json& b) {
  if (a.is_array() && b.is_array()) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), IsSameInAnyOrder);
  }
  if (!a.is_object() || !b.is_object()) return a == b;
  if (a.size() != b.size()) return false;
  return std::ranges::all_of(a.items(), [&b](const auto& member) {
    const auto other = b.find(member.key());
    return other != b.end() && IsSameInAnyOrder(member.value(), *other);
  });
}

namespace {

// As the library's own dump() writes it, in a fraction of the time: most of what is written is long text.
void AppendDump(std::string& out, const Json& value) {
  const auto text = [&out](const std::string& string) {
    if (!IsUtf8(string)) {
      out += Json(string).dump(-1, ' ', false, Json::error_handler_t::replace);
      return;
    }
    out += '"';
    AppendEscaped(out, string, EscapesDelete::kNo);
    out += '"';
  };
  const char* separator = "";
  switch (value.type()) {
    case Json::value_t::string:
      return text(value.get_ref<const std::string&>());
    case Json::value_t::object:
      out += '{';
      for (const auto& [name, member] : value.items()) {
        out += std::exchange(separator, ",");
        text(name);
        out += ':';
        AppendDump(out, member);
      }
      out += '}';
      return;
    case Json::value_t::array:
      out += '[';
      for (const Json& element : value) {
        out += std::exchange(separator, ",");
        AppendDump(out, element);
      }
      out += ']';
      return;
    case Json::value_t::number_integer:
      out += std::to_string(value.get<std::int64_t>());
      return;
    case Json::value_t::number_unsigned:
      out += std::to_string(value.get<std::uint64_t>());
      return;
    default:
      out += value.dump();
  }
}

}  // namespace

std::string DumpJson(const Json& value) {
  std::string out;
  AppendDump(out, value);
  return out;
}

std::string DumpJsonPretty(const Json& value) { return value.dump(2, ' ', false, Json::error_handler_t::replace); }

std::string OnOneLine(std::string_view json) {
  std::string line(json);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line;
}

void AppendJsonEscaped(std::string& out, std::string_view text) { AppendEscaped(out, text, EscapesDelete::kYes); }

namespace {

constexpr std::size_t kEscapeLength = 6;  // \uXXXX

// The code unit of a \uXXXX at `at`, or -1.
int CodeUnitAt(std::string_view json, std::size_t at) {
  if (at + kEscapeLength > json.size() || json[at] != '\\' || json[at + 1] != 'u') return -1;
  int unit = 0;
  const char* const first = json.data() + at + 2;
  const auto [end, error] = std::from_chars(first, first + 4, unit, 16);
  return error == std::errc() && end == first + 4 ? unit : -1;
}

bool IsHighSurrogate(int unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool IsLowSurrogate(int unit) { return unit >= 0xDC00 && unit < 0xE000; }

bool IsWordCharacter(char c) { return IsAsciiAlnum(c) || c == '-' || c == '+' || c == '.'; }

template <typename Number>
bool IsOutOfRange(std::string_view text) {
  Number number{};
  return std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc::result_out_of_range;
}

// The replacement for a word outside of strings; empty if it is fine or cannot be mended.
std::string MendedWord(std::string_view word) {
  static constexpr std::array<std::string_view, 8> kNoNumbers = {"NaN",       "-NaN", "nan",  "Infinity",
                                                                 "-Infinity", "inf",  "-inf", "undefined"};
  if (std::ranges::find(kNoNumbers, word) != kNoNumbers.end()) return "null";
  const bool is_negative = word.front() == '-';
  const std::string_view digits = word.substr(is_negative ? 1 : 0);
  const bool is_whole = digits.find_first_not_of("0123456789") == std::string_view::npos;
  const bool is_too_large = !is_whole     ? IsOutOfRange<double>(word)
                            : is_negative ? IsOutOfRange<std::int64_t>(word)
                                          : IsOutOfRange<std::uint64_t>(word);
  return is_too_large ? '"' + std::string(word) + '"' : "";
}

// The length of the string that `json` begins with, quotes included.
std::size_t StringLength(std::string_view json) {
  std::size_t at = 1;
  while (at < json.size() && json[at] != '"') at += json[at] == '\\' ? 2 : 1;
  return std::min(at + 1, json.size());
}

}  // namespace

bool HasSurrogateEscape(std::string_view json) {
  for (std::size_t at = json.find('\\'); at != std::string_view::npos && at + 2 < json.size();
       at = json.find('\\', at + 2)) {
    if (json[at + 1] == 'u' && (json[at + 2] == 'd' || json[at + 2] == 'D')) return true;
  }
  return false;
}

std::string MendSurrogateEscapes(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  std::size_t from = 0;
  std::size_t at = json.find('\\');
  while (at != std::string_view::npos) {
    std::size_t next = at + 2;  // over a simple escape, \\ included
    const int unit = CodeUnitAt(json, at);
    if (unit >= 0) next = at + kEscapeLength;
    if (IsHighSurrogate(unit) && IsLowSurrogate(CodeUnitAt(json, next))) {
      next += kEscapeLength;
    } else if (IsHighSurrogate(unit) || IsLowSurrogate(unit)) {
      out += json.substr(from, at - from);
      out += "\\ufffd";
      from = next;
    }
    at = json.find('\\', next);
  }
  out += json.substr(from);
  return out;
}

std::optional<std::string> MendJson(std::string_view json) {
  std::string halves_mended;
  if (HasSurrogateEscape(json)) halves_mended = MendSurrogateEscapes(json);
  const bool has_halves = !halves_mended.empty() && halves_mended != json;
  if (has_halves) json = halves_mended;
  std::string out;
  std::size_t from = 0;
  const auto replace = [&](std::size_t begin, std::size_t end, std::string_view by) {
    out += json.substr(from, begin - from);
    out += by;
    from = end;
  };
  for (std::size_t at = 0; at < json.size(); ++at) {
    if (json[at] == '"') {
      for (++at; at < json.size() && json[at] != '"'; ++at) {
        const auto byte = static_cast<unsigned char>(json[at]);
        if (byte == '\\') ++at;
        if (byte < 0x20) replace(at, at + 1, std::string("\\u00") + kHexDigits[byte >> 4] + kHexDigits[byte & 15]);
      }
    } else if (IsWordCharacter(json[at])) {
      const std::size_t begin = at;
      while (at < json.size() && IsWordCharacter(json[at])) ++at;
      if (const std::string mended = MendedWord(json.substr(begin, at - begin)); !mended.empty()) {
        replace(begin, at, mended);
      }
      --at;  // the character that ended the word comes next
    }
  }
  if (from == 0) return has_halves ? std::optional(std::move(halves_mended)) : std::nullopt;
  out += json.substr(from);
  return out;
}

std::string WithoutGaps(std::string_view json) {
  constexpr std::ptrdiff_t kLongest = 80;
  std::string out;
  while (!json.empty()) {
    std::size_t length = 1;
    if (json[0] == '"') {
      length = StringLength(json);
      out += json.substr(0, length);
    } else if (IsSpace(json[0])) {
      const auto end = std::ranges::find_if_not(json, IsSpace);
      length = static_cast<std::size_t>(end - json.begin());
      const bool is_gap = end - json.begin() > kLongest || std::count(json.begin(), end, '\n') > 1;
      is_gap ? void(out += ' ') : void(out.append(json.begin(), end));
    } else {
      out += json[0];
    }
    json.remove_prefix(length);
  }
  return out;
}

bool HasLongNumber(std::string_view json) {
  constexpr std::ptrdiff_t kExactDigits = 15;  // of a double
  while (!json.empty()) {
    const auto end = std::ranges::find_if_not(json, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
    if (std::count_if(json.begin(), end, [](char c) { return c != '.'; }) > kExactDigits) return true;
    const auto length = static_cast<std::size_t>(end - json.begin());
    json.remove_prefix(length > 0 ? length : json[0] == '"' ? StringLength(json) : 1);
  }
  return false;
}

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  if (IsUtf8(text)) {
    AppendJsonEscaped(out, text);
  } else {
    AppendJsonEscaped(out, ToValidUtf8(text));
  }
  out += '"';
}

std::string& JsonObjectWriter::Name(const char* name) {
  const std::size_t size = std::strlen(name), begin = out_.size();
  out_.resize(begin + size + 4, '"');
  char* to = out_.data() + begin;
  if (!std::exchange(empty_, false)) *to++ = ',';
  std::memcpy(to + 1, name, size);
  to[size + 2] = ':';
  out_.resize(static_cast<std::size_t>(to + size + 3 - out_.data()));
  return out_;
}

std::string& JsonObjectWriter::Name(std::string_view name) {
  if (!empty_) out_ += ',';
  empty_ = false;
  AppendJsonString(out_, name);
  out_ += ':';
  return out_;
}

void JsonObjectWriter::Member::WriteStrings(const std::vector<std::string>& strings) {
  out_ += '[';
  for (std::size_t i = 0; i < strings.size(); ++i) {
    if (i != 0) out_ += ',';
    AppendJsonString(out_, strings[i]);
  }
  out_ += ']';
}

}  // namespace reprise
