#include "app/front_matter.h"

#include <yaml.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/shared_library.h"
#include "base/try.h"

namespace reprise {
namespace {

constexpr int kMostEvents = 4000;
constexpr int kMostLevels = 16;

// Looked up at run time, so that a server without skills does not load it.
struct YamlLibrary : SharedLibrary {
  YamlLibrary() : SharedLibrary(kYamlLibrary) {}

  decltype(&::yaml_parser_initialize) initialize = Find("yaml_parser_initialize");
  decltype(&::yaml_parser_delete) remove = Find("yaml_parser_delete");
  decltype(&::yaml_parser_set_input_string) set_input = Find("yaml_parser_set_input_string");
  decltype(&::yaml_parser_set_encoding) set_encoding = Find("yaml_parser_set_encoding");
  decltype(&::yaml_parser_parse) parse = Find("yaml_parser_parse");
  decltype(&::yaml_event_delete) remove_event = Find("yaml_event_delete");
};

Error Wrong(const std::string& message) {
  return MakeError(ErrorCode::kInvalidArgument, "what stands in front of its text " + message);
}

// The events of one YAML text, in order.
class YamlEvents {
 public:
  YamlEvents(const YamlLibrary& library, std::string_view text) : library_(library) {
    is_there_ = library_.initialize(&parser_) != 0;
    if (!is_there_) return;
    library_.set_encoding(&parser_, YAML_UTF8_ENCODING);
    library_.set_input(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  ~YamlEvents() {
    Drop();
    if (is_there_) library_.remove(&parser_);
  }
  YamlEvents(const YamlEvents&) = delete;
  YamlEvents& operator=(const YamlEvents&) = delete;

  // The event is valid until the next call. Nesting and number are limited.
  Result<const yaml_event_t*> Next() {
    Drop();
    if (!is_there_) return Fail(ErrorCode::kUnavailable, "there is no memory to read it");
    has_event_ = library_.parse(&parser_, &event_) != 0;
    if (!has_event_) {
      const char* const problem = parser_.problem != nullptr ? parser_.problem : "it cannot be read";
      // libyaml counts lines after the first "---".
      return Fail(Wrong("is no YAML: " + std::string(problem) + " (line " +
                        std::to_string(parser_.problem_mark.line + 2) +
                        "); a text with \": \" or \" #\" in it needs quotes"));
    }
    if (event_.type == YAML_MAPPING_START_EVENT || event_.type == YAML_SEQUENCE_START_EVENT) ++levels_;
    if (event_.type == YAML_MAPPING_END_EVENT || event_.type == YAML_SEQUENCE_END_EVENT) --levels_;
    if (++count_ > kMostEvents || levels_ > kMostLevels) return Fail(Wrong("has too much in it, or too deep"));
    return &event_;
  }
  int levels() const { return levels_; }

 private:
  void Drop() {
    if (std::exchange(has_event_, false)) library_.remove_event(&event_);
  }

  const YamlLibrary& library_;
  yaml_parser_t parser_{};
  yaml_event_t event_{};
  bool is_there_ = false, has_event_ = false;
  int count_ = 0, levels_ = 0;
};

std::string TextOf(const yaml_event_t& scalar) {
  return {reinterpret_cast<const char*>(scalar.data.scalar.value), scalar.data.scalar.length};
}

struct Parts {
  std::string_view yaml, body;
};

// Divides the text at its two lines "---"; nullopt if it does not begin with one.
Result<std::optional<Parts>> Divide(std::string_view text) {
  const auto line = [&] {
    const std::size_t end = text.find('\n');
    std::string_view found = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    while (!found.empty() && (found.back() == '\r' || found.back() == ' ' || found.back() == '\t'))
      found.remove_suffix(1);
    return found;
  };
  if (line() != "---") return std::optional<Parts>();
  const char* const begin = text.data();
  while (!text.empty()) {
    const char* const at = text.data();
    if (line() != "---") continue;
    const std::string_view found(begin, static_cast<std::size_t>(at - begin));
    if (found.size() > kMaxFrontMatter) return Fail(Wrong("is too long"));
    return std::optional(Parts{found, text});
  }
  return Fail(Wrong("does not end: a second line --- is missing"));
}

// The texts of a value; empty if it is something else.
Result<std::vector<std::string>> Texts(YamlEvents& events, bool may_be_list) {
  const int level = events.levels();
  std::vector<std::string> texts;
  bool is_list = false, is_plain = true;
  do {
    const yaml_event_t* const event = TRY(events.Next());
    if (event->type == YAML_SCALAR_EVENT) texts.push_back(TextOf(*event));
    is_list = is_list || event->type == YAML_SEQUENCE_START_EVENT;
    is_plain = is_plain && event->type != YAML_MAPPING_START_EVENT && event->type != YAML_ALIAS_EVENT;
  } while (events.levels() > level);
  if (!is_plain || (is_list && !may_be_list)) texts.clear();
  return texts;
}

Result<FrontMatter> Read(std::string_view yaml, const std::vector<std::string_view>& wanted, std::string_view list) {
  static const YamlLibrary library;
  if (!library.problem().empty()) {
    return Fail(ErrorCode::kUnavailable, "what stands in front of its text cannot be read: " + library.problem() +
                                             " (Debian has it in libyaml-0-2)");
  }
  YamlEvents events(library, yaml);
  FrontMatter front{.is_there = true};
  const yaml_event_t* event = TRY(events.Next());
  while (event->type == YAML_STREAM_START_EVENT || event->type == YAML_DOCUMENT_START_EVENT) event = TRY(events.Next());
  if (event->type == YAML_STREAM_END_EVENT) return front;
  if (event->type != YAML_MAPPING_START_EVENT)
    return Fail(Wrong("has no name: and description:, nor any other member"));
  while ((event = TRY(events.Next()))->type != YAML_MAPPING_END_EVENT) {
    const std::string key = event->type == YAML_SCALAR_EVENT ? TextOf(*event) : std::string();
    if (event->type != YAML_SCALAR_EVENT) {  // a structured key
      while (events.levels() > 1) TRY(events.Next());
    }
    auto texts = TRY(Texts(events, key == list));
    if (key != list && std::ranges::find(wanted, key) == wanted.end()) {
      front.others.push_back(key);
      continue;
    }
    if (texts.empty()) return Fail(Wrong("has a " + key + " that is no text"));
    if (!front.members.emplace(key, std::move(texts)).second) return Fail(Wrong("has more than one " + key));
  }
  return front;
}

}  // namespace

Error WrongFrontMatter(const std::string& message) { return Wrong(message); }

std::string FrontMatter::Text(std::string_view name) const {
  const auto found = members.find(name);
  return found == members.end() ? std::string() : found->second.front();
}

Result<FrontMatter> ReadFrontMatter(std::string_view text, const std::vector<std::string_view>& wanted,
                                    std::string_view list) {
  const auto parts = TRY(Divide(text));
  if (!parts) return FrontMatter{.body = text};
  auto front = TRY(Read(parts->yaml, wanted, list));
  front.body = parts->body;
  return front;
}

}  // namespace reprise
