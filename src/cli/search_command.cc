#include "cli/search_command.h"

#include <re2/re2.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "archive/chat_reader.h"
#include "archive/head_branch.h"
#include "archive/record_reference.h"
#include "archive/stored_count.h"
#include "base/utf8.h"
#include "terminal/console.h"
#include "terminal/progress.h"
#include "terminal/terminal_text.h"

namespace reprise {
namespace {

constexpr std::int64_t kPatternMemory = 64 << 20;
constexpr std::size_t kContextBytes = 60;  // on either side of what was found

struct Place {
  std::string chat, interaction, where, snippet;
  bool superseded;
};

// A part of an interaction that is searched, and what it is called.
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

// What was found, with some text around it, on one line.
std::string Snippet(std::string_view text, std::size_t begin, std::size_t length) {
  std::size_t from = begin > kContextBytes ? begin - kContextBytes : 0;
  std::size_t to = std::min(text.size(), begin + std::min(length, 4 * kContextBytes) + kContextBytes);
  while (from > 0 && ContinuesCharacter(text[from])) --from;
  while (to < text.size() && ContinuesCharacter(text[to])) ++to;
  return (from > 0 ? "..." : "") + std::string(text.substr(from, to - from)) + (to < text.size() ? "..." : "");
}

class Search {
 public:
  Search(const RE2& pattern, std::size_t limit) : pattern_(pattern), limit_(limit) {}

  bool full() const { return truncated_; }

  void In(const Chat& chat) {
    const auto branch = HeadBranch(chat);
    for (const Interaction& interaction : chat.interactions) {
      for (const Part& part : PartsOf(interaction)) {
        const std::string text = ToValidUtf8(part.text);
        re2::StringPiece found;
        if (!pattern_.Match(text, 0, text.size(), RE2::UNANCHORED, &found, 1)) continue;
        if (limit_ != 0 && places_.size() == limit_) {
          truncated_ = true;
          return;
        }
        places_.push_back({.chat = chat.summary.id.str(),
                           .interaction = interaction.id.str(),
                           .where = std::string(part.where),
                           .snippet = Snippet(text, static_cast<std::size_t>(found.data() - text.data()), found.size()),
                           .superseded = !branch.contains(interaction.id)});
      }
    }
  }

  bool found_nothing() const { return places_.empty(); }

  void PrintPlaces(bool json) const {
    if (json) {
      Json list = Json::array();
      for (const Place& place : places_) {
        list.push_back({{"chat_id", place.chat},
                        {"interaction_id", place.interaction},
                        {"where", place.where},
                        {"superseded", place.superseded},
                        {"snippet", place.snippet}});
      }
      Print(DumpJson(Json{{"matches", std::move(list)}, {"truncated", truncated_}}) + "\n");
      return;
    }
    for (const Place& place : places_) {
      Print(place.chat + "/" + place.interaction + "  " + place.where + (place.superseded ? " (superseded)" : "") +
            "  " + VisibleLine(place.snippet) + "\n");
    }
    if (truncated_) Warn("there are more places than these (--limit)");
  }

  // For a person, who sees what was looked through.
  void PrintSummary(std::uint64_t interactions) const {
    const std::string places = std::to_string(places_.size()) + (places_.size() == 1 ? " place" : " places");
    const std::string summary =
        places + " in " + std::to_string(interactions) + (interactions == 1 ? " interaction\n" : " interactions\n");
    std::fwrite(summary.data(), 1, summary.size(), stderr);
  }

 private:
  const RE2& pattern_;
  const std::size_t limit_;
  std::vector<Place> places_;
  bool truncated_ = false;
};

}  // namespace

int RunSearch(const CommandLine& line, const Environment& environment) {
  RE2::Options how;
  how.set_literal(!line.regex);
  how.set_case_sensitive(line.case_sensitive);
  how.set_dot_nl(true);
  how.set_log_errors(false);
  how.set_max_mem(kPatternMemory);
  const RE2 pattern(line.argument, how);
  if (line.argument.empty()) return Misused("there is nothing to look for");
  if (!pattern.ok()) return Misused("the pattern is wrong: " + pattern.error());
  WorkCounter counter;
  auto reader = ChatReader::Open(line.flags, environment, &counter);
  if (!reader) return ComplainOfUse(reader.error());
  Result<std::vector<ChatId>> chats = std::vector<ChatId>();
  if (line.chat.empty()) {
    chats = reader->AllChats();
  } else {
    const auto chat = ChatId::Parse(line.chat);
    if (!chat) return Misused("--chat: \"" + line.chat + "\" names no chat: " + chat.error().message);
    chats = std::vector{*chat};
  }
  if (!chats) return Complain(chats.error());
  Progress progress(counter, environment);
  const std::uint64_t total = progress.is_shown() ? CountStored(reader->options().data_dir, *chats).interactions : 0;
  progress.Begin({.doing = "searching", .things = "interactions", .total = total});
  Search search(pattern, static_cast<std::size_t>(line.limit));
  int status = kExitOk;
  for (const ChatId& id : *chats) {
    if (search.full()) break;
    const auto chat = reader->store().LoadChat(id);
    if (progress.interrupted()) break;
    if (!chat && chat.error().code == ErrorCode::kNotFound && line.chat.empty()) continue;  // empty, or deleted
    if (!chat) {
      status = Complain(NotThere(chat.error(), {id, std::nullopt}, reader->options().data_dir));
      continue;
    }
    search.In(*chat);
    ComplainOfDamage(*chat);
    if (!chat->damaged.empty()) status = kExitFailure;
  }
  progress.End();
  search.PrintPlaces(line.json);
  if (progress.is_shown() && !line.json) search.PrintSummary(counter.done());
  return search.found_nothing() ? kExitFailure : status;  // as grep tells
}

}  // namespace reprise
