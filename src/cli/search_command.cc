#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "client/archive/chat_reader.h"
#include "engine/history.h"
#include "terminal/console.h"
#include "terminal/progress.h"

namespace reprise {
namespace {

struct Place {
  std::string chat, interaction, where, snippet;
  bool superseded;
};

class Search {
 public:
  Search(const TextSearch& text, std::size_t limit) : text_(text), limit_(limit) {}

  bool full() const { return truncated_; }

  void In(const Chat& chat) {
    const auto branch = HeadBranch(chat);
    for (const Interaction& interaction : chat.interactions) {
      for (TextMatch& match : text_.In(interaction)) {
        if (limit_ != 0 && places_.size() == limit_) {
          truncated_ = true;
          return;
        }
        places_.push_back({.chat = chat.summary.id.str(),
                           .interaction = interaction.id.str(),
                           .where = std::string(match.where),
                           .snippet = std::move(match.snippet),
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
      PrintDocument({{"matches", std::move(list)}, {"truncated", truncated_}});
      return;
    }
    for (const Place& place : places_) {
      Print(place.chat + "/" + place.interaction + "  " + place.where + (place.superseded ? " (superseded)" : "") +
            "  " + VisibleLine(place.snippet) + "\n");
    }
    if (truncated_) Warn("there are more places than these (--limit)");
  }

  // For a person: the extent of the search.
  void PrintSummary(std::uint64_t interactions) const {
    const std::string summary = std::to_string(places_.size()) + (places_.size() == 1 ? " match" : " matches") +
                                " in " + CountOf(interactions, "turn") + "\n";
    std::fwrite(summary.data(), 1, summary.size(), stderr);
  }

 private:
  const TextSearch& text_;
  const std::size_t limit_;
  std::vector<Place> places_;
  bool truncated_ = false;
};

}  // namespace

Exited RunSearch(const CommandLine& line, const Environment& environment) {
  const TextSearch text(line.argument, {.regex = line.regex, .case_sensitive = line.case_sensitive});
  if (line.argument.empty()) return Misused("there is nothing to look for");
  if (const auto problem = text.problem()) return Misused("the pattern is wrong: " + *problem);
  WorkCounter counter;
  auto reader = TRY(OfUse(ChatReader::Open(line.flags, environment, &counter)));
  Result<std::vector<ChatId>> chats = std::vector<ChatId>();
  if (line.chat.empty()) {
    chats = reader.AllChats();
  } else {
    const auto chat = TRY(OfUse(FindChat(line.chat, reader.names())));
    chats = std::vector{chat};
  }
  if (!chats) return Complain(chats.error());
  Progress progress(counter, environment);
  const std::uint64_t total = progress.is_shown() ? CountStored(reader.options().data_dir, *chats).interactions : 0;
  progress.Begin({.doing = "searching", .things = "interactions", .total = total});
  Search search(text, static_cast<std::size_t>(line.limit));
  int status = kExitOk;
  for (const ChatId& id : *chats) {
    if (search.full()) break;
    const auto chat = reader.store().LoadChat(id);
    if (progress.interrupted()) break;
    if (!chat && chat.error().code == ErrorCode::kNotFound && line.chat.empty()) continue;  // empty, or deleted
    if (!chat) {
      status = Complain(NotThere(chat.error(), {id, std::nullopt}, reader.options().data_dir));
      continue;
    }
    search.In(*chat);
    ComplainOfDamage(*chat);
    if (!chat->damaged.empty()) status = kExitFailure;
  }
  progress.End();
  search.PrintPlaces(line.json);
  if (progress.is_shown() && !line.json) search.PrintSummary(counter.done());
  return search.found_nothing() ? kExitFailure : status;  // as grep does
}

}  // namespace reprise
