#include "agent/told.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/context.h"
#include "base/interned.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace reprise {

namespace {

constexpr char kEscape = '\x1b', kBell = '\a';
constexpr std::string_view kStringEnd = "\x1b\\";
constexpr std::size_t kNoteBytes = 256;  // at most, of the note about a gap
constexpr std::string_view kLeftOut = "(... ", kLeftOutHere = " left out here";

// The length of the control sequence at the beginning of `text`, an escape at least. `has_ends`: a string's end may
// follow; reset after the first search without one, so that it is not repeated.
std::size_t EscapedLength(std::string_view text, bool& has_ends) {
  if (const std::size_t length = ControlSequenceLength(text); length > 0) return length;
  // Titles, links and the like: strings up to their end. Without an end it is no string.
  if (text.size() > 1 && std::string_view("]P_^X").find(text[1]) != std::string_view::npos && has_ends) {
    for (std::size_t at = text.find_first_of("\x1b\a", 2); at != std::string_view::npos;
         at = text.find_first_of("\x1b\a", at + 1)) {
      if (text[at] == kBell) return at + 1;
      if (text.substr(at).starts_with(kStringEnd)) return at + kStringEnd.size();
    }
    has_ends = false;
  }
  return 1;
}

// The text that a terminal would finally show.
std::string PlainText(std::string_view text) {
  std::string plain;
  std::size_t line = 0;      // the beginning of the last line
  bool is_returned = false;  // the next character overwrites the line
  bool has_ends = true;
  while (!text.empty()) {
    std::size_t length = 1;
    if (text[0] == kEscape) {
      length = EscapedLength(text, has_ends);
      const bool erases = length > 2 && text[1] == '[' && text[length - 1] == 'K';
      if (is_returned && erases) plain.resize(line);
    } else if (text[0] == '\r') {
      is_returned = true;
    } else {
      if (is_returned && text[0] != '\n') plain.resize(line);
      is_returned = false;
      plain += text[0];
      if (text[0] == '\n') line = plain.size();
    }
    text.remove_prefix(length);
  }
  return plain;
}

// Cut to whole lines, unless a single line is most of the text.
std::string_view Head(std::string_view text) {
  const std::size_t end = text.rfind('\n');
  if (end != std::string_view::npos && end >= text.size() / 2) return text.substr(0, end + 1);
  return text.substr(0, text.size() - IncompleteUtf8Tail(text));
}
std::string_view Tail(std::string_view text) {
  const std::size_t end = text.find('\n');
  return end < text.size() / 2 ? text.substr(end + 1) : FromUtf8Start(text);
}

// The bytes that the tool itself has cut, minus its line about that (tools/shell/command_runner).
std::uint64_t CutByTool(std::string_view text) {
  constexpr std::string_view kBegin = "\n(... ", kEnd = " bytes cut ...)\n";
  const std::size_t end = text.find(kEnd), begin = text.rfind(kBegin, end);
  std::uint64_t cut = 0;
  if (end == std::string_view::npos || begin == std::string_view::npos) return 0;
  std::from_chars(text.data() + begin + kBegin.size(), text.data() + end, cut);
  return cut - (end + kEnd.size() - begin);  // may wrap, because the caller's count includes that line
}

}  // namespace

namespace {

bool IsOfCommand(std::string_view tool_name) {
  return tool_name == "run_shell" || tool_name == "run_code" || tool_name == "read_job";
}

}  // namespace

std::string ToldOutput(std::string_view tool_name, std::string_view output, std::size_t at_each_end) {
  if (!IsOfCommand(tool_name)) return std::string(output);
  std::string told = PlainText(output);
  if (told.size() <= 2 * at_each_end) return told;
  const std::string_view whole = told;
  // The note about the gap takes some of the room at the beginning.
  const std::string_view head = Head(whole.substr(0, at_each_end - std::min(at_each_end, kNoteBytes)));
  const std::string_view tail = Tail(whole.substr(whole.size() - at_each_end));
  const std::string_view left_out = whole.substr(head.size(), whole.size() - head.size() - tail.size());
  std::string text(head);
  if (!text.ends_with('\n')) text += '\n';
  text.append(kLeftOut).append(Counted(left_out.size() + CutByTool(left_out), "byte")).append(kLeftOutHere);
  text +=
      "; if the whole is kept, the end says where. Else have the output written to a file and read that in parts "
      "...)\n";
  return text.append(tail);
}

bool IsToldOutput(std::string_view tool_name, std::string_view told, std::string_view output) {
  if (!IsOfCommand(tool_name)) return told == output;
  const std::string plain = PlainText(output);
  if (told == plain) return true;
  const std::size_t here = told.find(kLeftOutHere);
  const std::size_t begin = told.rfind(kLeftOut, here), end = told.find('\n', here);
  if (here == told.npos || begin == told.npos || end == told.npos) return false;
  std::string_view head = told.substr(0, begin);
  if (!plain.starts_with(head) && head.ends_with('\n')) head.remove_suffix(1);
  return plain.starts_with(head) && plain.ends_with(told.substr(end + 1));
}

namespace {

constexpr std::size_t kLongestSentence = 160;

// The most useful first; tools that are not named here rank between the two lists.
constexpr std::string_view kFirst[] = {"read_file",   "list_files",  "search_files", "write_file",
                                       "edit_file",   "apply_patch", "run_shell",    "find_files",
                                       "delete_file", "ask_human",   "present_plan"};
constexpr std::string_view kLast[] = {
    "calculator", "current_time",    "http_get",       "run_code",       "update_plan", "manage_tasks",    "research",
    "recall",     "list_chat_files", "read_chat_file", "save_chat_file", "echo",        "delete_chat_file"};

template <std::size_t kCount>
std::size_t PlaceIn(const std::string_view (&names)[kCount], std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(names, name) - std::begin(names));
}

std::size_t Rank(std::string_view name) {
  if (const std::size_t place = PlaceIn(kFirst, name); place < std::size(kFirst)) return place;
  const std::size_t place = PlaceIn(kLast, name);
  return place < std::size(kLast) ? std::size(kFirst) + 1 + place : std::size(kFirst);
}

std::string FirstSentence(std::string_view text) {
  if (const std::size_t end = text.find_first_of("\n"); end != text.npos) text = text.substr(0, end);
  for (std::size_t dot = text.find(". "); dot != text.npos; dot = text.find(". ", dot + 1)) {
    if (dot < 4 || text.substr(dot - 3, 3) == "e.g") continue;
    text = text.substr(0, dot + 1);
    break;
  }
  return std::string(Utf8Prefix(text, kLongestSentence));
}

// Removes members that do not constrain values.
void Strip(Json& schema) {
  if (!schema.is_object()) return;
  for (const char* name : {"description", "title", "examples", "example", "default", "$comment", "$schema"}) {
    schema.erase(name);
  }
  for (const char* name : {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}) {
    const auto named = schema.find(name);
    if (named == schema.end() || !named->is_object()) continue;
    for (auto& [key, each] : named->items()) Strip(each);
  }
  for (const char* name : {"items", "additionalProperties", "not", "if", "then", "else", "contains"}) {
    if (const auto one = schema.find(name); one != schema.end()) Strip(*one);
  }
  for (const char* name : {"anyOf", "oneOf", "allOf", "prefixItems"}) {
    const auto several = schema.find(name);
    if (several == schema.end() || !several->is_array()) continue;
    for (Json& each : *several) Strip(each);
  }
}

ToolSpec Short(ToolSpec spec) {
  spec.description = FirstSentence(spec.description);
  if (auto schema = ParseJson(spec.parameters); schema && schema->is_object()) {
    Strip(*schema);
    spec.parameters = DumpJson(*schema);
  }
  return spec;
}

}  // namespace

ToldTools::ToldTools(const Of& of)
    : tools_(of.tools), format_(of.format), is_planning_(of.is_planning), found_(of.found), sub_agents_(of.sub_agents) {
  constexpr std::string_view kEdits = "edit_file", kPatch = "apply_patch";
  const std::string_view used = format_ == EditFormat::kPatch ? kPatch : kEdits;
  const std::string_view other = format_ == EditFormat::kPatch ? kEdits : kPatch;
  const auto& all = of.tools->specs();
  const bool has_used = std::ranges::any_of(all, [&](const ToolSpec& spec) { return spec.name == used; });
  for (const ToolSpec& spec : all) {
    if (has_used && spec.name == other) continue;
    const Tool* const tool = of.tools->Find(spec.name);
    if (!is_planning_ && tool != nullptr && tool->fixed_traits().ends_planning) continue;
    if (of.tools->IsDeferred(spec.name) && !std::ranges::binary_search(found_, spec.name)) continue;
    specs.push_back(spec);
    if (tool == nullptr) continue;
    const ToolTraits& traits = tool->fixed_traits();
    if (traits.delegates) specs.back().description += sub_agents_;
    if (traits.origin.kind != ToolOrigin::Kind::kBuiltIn) origins.push_back({spec.name, traits.origin});
  }
}

bool ToldTools::operator==(const Of& of) const {
  return tools_.lock() == of.tools && format_ == of.format && is_planning_ == of.is_planning && found_ == of.found &&
         sub_agents_ == of.sub_agents;
}

std::shared_ptr<const ToldTools> ToldOf(const ToldTools::Of& of) {
  static Interned<ToldTools, 4> known;
  return known.Share(of);
}

std::optional<ShortTools> ShortToolsWithin(const std::vector<ToolSpec>& specs, std::int64_t budget) {
  if (budget <= 0 || EstimateTokens(specs) <= budget / 2) return std::nullopt;
  ShortTools told;
  for (const ToolSpec& spec : specs) told.specs.push_back(Short(spec));
  while (!told.specs.empty() && EstimateTokens(told.specs) > budget / 3) {
    // The last of the least useful tools.
    const auto least =
        std::max_element(told.specs.rbegin(), told.specs.rend(),
                         [](const ToolSpec& a, const ToolSpec& b) { return Rank(a.name) < Rank(b.name); });
    told.left_out.push_back(std::move(least->name));
    told.specs.erase(std::next(least).base());
  }
  return told;
}

EndedJobs TakeEndedJobs(const JobsOfChat& jobs, std::vector<StartedJob>& started) {
  EndedJobs ended;
  if (started.empty()) return ended;
  const std::vector<Job> present = jobs.List();
  std::erase_if(started, [&](const StartedJob& each) {
    const auto found = std::ranges::find(present, each.id, &Job::id);
    Job job{.id = each.id, .command = each.command, .end = JobEnd{.reason = "lost"}};
    if (found != present.end()) job = *found;
    if (!job.end) return false;
    ended.events.push_back({job.id, job.command, job.end->reason, job.end->status});
    ended.note += "\n(The background job " + job.id + " " + Described(job) + ".)";
    return true;
  });
  return ended;
}

}  // namespace reprise
