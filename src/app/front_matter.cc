#include "app/front_matter.h"

#include <yaml.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/library_names.h"
#include "base/shared_library.h"
#include "base/terminal_text.h"
#include "base/try.h"
#include "base/utf8.h"

namespace reprise {
namespace {

constexpr int kMostEvents = 4000;
constexpr int kMostLevels = 16;
constexpr std::size_t kMostNameBytes = 64;

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

// The text between the lines "---".
Result<std::string_view> Between(std::string_view text) {
  const auto line = [&] {
    const std::size_t end = text.find('\n');
    std::string_view found = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    while (!found.empty() && (found.back() == '\r' || found.back() == ' ' || found.back() == '\t'))
      found.remove_suffix(1);
    return found;
  };
  if (line() != "---") return Fail(Wrong("is missing: the first line must be ---, and name: and description: follow"));
  const char* const begin = text.data();
  while (!text.empty()) {
    const char* const at = text.data();
    if (line() != "---") continue;
    const std::string_view found(begin, static_cast<std::size_t>(at - begin));
    if (found.size() > kMaxFrontMatter) return Fail(Wrong("is too long"));
    return found;
  }
  return Fail(Wrong("does not end: a second line --- is missing"));
}

// A member's value; nullopt if it is no text. Afterwards the events are at the next member.
Result<std::optional<std::string>> Value(YamlEvents& events) {
  const int level = events.levels();
  const yaml_event_t* const first = TRY(events.Next());
  if (first->type == YAML_SCALAR_EVENT) return std::optional(TextOf(*first));
  while (events.levels() > level) TRY(events.Next());
  return std::optional<std::string>();
}

Result<SkillHead> Read(std::string_view yaml) {
  static const YamlLibrary library;
  if (!library.problem().empty()) {
    return Fail(ErrorCode::kUnavailable,
                "skills cannot be read: " + library.problem() + " (Debian has it in libyaml-0-2)");
  }
  YamlEvents events(library, yaml);
  const yaml_event_t* event = TRY(events.Next());
  while (event->type == YAML_STREAM_START_EVENT || event->type == YAML_DOCUMENT_START_EVENT) event = TRY(events.Next());
  if (event->type != YAML_MAPPING_START_EVENT) return Fail(Wrong("has no name: and description:"));
  std::optional<std::string> name, description;
  while ((event = TRY(events.Next()))->type != YAML_MAPPING_END_EVENT) {
    const std::string key = event->type == YAML_SCALAR_EVENT ? TextOf(*event) : std::string();
    if (event->type != YAML_SCALAR_EVENT) {  // a structured key
      while (events.levels() > 1) TRY(events.Next());
    }
    auto value = TRY(Value(events));
    std::optional<std::string>* const target = key == "name" ? &name : key == "description" ? &description : nullptr;
    if (target == nullptr) continue;
    if (!value) return Fail(Wrong("has a " + key + " that is no text"));
    if (*target) return Fail(Wrong("has more than one " + key));
    *target = std::move(value);
  }
  if (!name) return Fail(Wrong("has no name"));
  if (!description) return Fail(Wrong("has no description, so nobody can tell what the skill is for"));
  return SkillHead{.name = *std::move(name), .description = *std::move(description)};
}

bool IsSkillName(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  return !name.empty() && name.size() <= kMostNameBytes && name.front() != '-' && name.back() != '-' &&
         name.find("--") == name.npos && std::all_of(name.begin(), name.end(), is_letter);
}

// On one line, so that it cannot imitate other parts of its surroundings.
std::string Described(std::string_view text) {
  const std::string visible = VisibleOnOneLine(text);
  std::string line;
  for (const char c : visible) {
    if (c != ' ' || (!line.empty() && line.back() != ' ')) line += c;
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  constexpr std::string_view kCut = "...";
  if (line.size() <= kMaxSkillDescription) return line;
  std::string_view cut = std::string_view(line).substr(0, kMaxSkillDescription - kCut.size());
  return std::string(cut.substr(0, cut.size() - IncompleteUtf8Tail(cut))).append(kCut);
}

}  // namespace

Result<SkillHead> ReadSkillHead(std::string_view text) {
  const auto yaml = TRY(Between(text));
  auto head = TRY(Read(yaml));
  if (!IsSkillName(head.name)) {
    return Fail(Wrong("has the name \"" + std::string(Utf8Prefix(VisibleOnOneLine(head.name), kMostNameBytes)) +
                      "\"; it may be at most 64 small letters, digits and single hyphens between them"));
  }
  head.description = Described(head.description);
  if (head.description.empty())
    return Fail(Wrong("has an empty description, so nobody can tell what the skill is for"));
  return head;
}

}  // namespace reprise
