#include "engine/recall.h"

#include <re2/re2.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "domain/codec.h"
#include "engine/history.h"

namespace reprise {
namespace {

constexpr std::size_t kMostFound = 20;
constexpr std::size_t kMostWords = 16;
constexpr std::size_t kMostSearched = 200;
constexpr std::chrono::seconds kLongest{5};

struct Found {
  std::size_t words;  // how many of them it has
  std::string place, snippet;
};

// Different words of the query, without case.
std::vector<std::string> WordsOf(const std::string& query) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < query.size() && words.size() < kMostWords;) {
    const std::size_t end = std::min(query.find_first_of(" \t\r\n", begin), query.size());
    std::string word = LowerCase(query.substr(begin, end - begin));
    if (!word.empty() && std::ranges::find(words, word) == words.end()) words.push_back(std::move(word));
    begin = end + 1;
  }
  return words;
}

// Matches any of the words, and their neighbourhood as one match, so that an excerpt shows words that stand together.
std::string PatternOf(const std::vector<std::string>& words) {
  std::string any;
  for (const std::string& word : words) any += (any.empty() ? "" : "|") + RE2::QuoteMeta(word);
  return "(?is)(?:" + any + ")(?:.{0,120}(?:" + any + ")){0,4}";
}

// The turns that lead to `last`, and it.
std::set<InteractionId> BranchTo(const std::vector<Interaction>& all, std::optional<InteractionId> last) {
  std::map<InteractionId, std::optional<InteractionId>> parents;
  for (const Interaction& each : all) parents.emplace(each.id, each.parent_id);
  std::set<InteractionId> branch;
  while (last && branch.insert(*last).second) {
    const auto parent = parents.find(*last);
    last = parent == parents.end() ? std::nullopt : parent->second;
  }
  return branch;
}

// Earlier searches would find themselves.
bool IsOfRecall(const AgentEvent& event) {
  const auto* const call = std::get_if<event::ToolCallStarted>(&event.payload);
  const auto* const result = std::get_if<event::ToolResult>(&event.payload);
  return (call && call->tool_name == "recall") || (result && result->tool_name == "recall");
}

class Search {
 public:
  Search(EngineServices& services, const RecallTask& task, const std::stop_token& stop)
      : services_(services),
        task_(task),
        stop_(stop),
        words_(WordsOf(task.query)),
        search_(PatternOf(words_), {.regex = true}) {}

  bool is_possible() const { return !words_.empty() && !search_.problem(); }
  bool is_over() const { return stop_.stop_requested() || std::chrono::steady_clock::now() >= until_; }

  Result<void> In(const ChatId& chat, const std::string& title) {
    std::optional<std::set<InteractionId>> branch;
    if (chat == task_.chat) {
      const auto stored = TRY(services_.parts.store.LoadChat(chat));
      branch = BranchTo(stored.interactions, task_.last);
    }
    const auto reader = TRY(OpenHistory(services_.parts.store, chat, {.all_branches = branch.has_value()},
                                        HistoryStates::kNone, std::nullopt));
    std::vector<Found> found;
    while (!is_over()) {
      const auto next = TRY(reader->Next());
      if (!next) break;
      const auto json = TRY(ParseJson(next->json));
      auto interaction = TRY(InteractionFromJson(json));
      std::erase_if(interaction.events, IsOfRecall);
      if (branch && !branch->contains(interaction.id)) continue;
      Take(chat, title, interaction, found);
    }
    found_.insert(found_.end(), std::make_move_iterator(found.rbegin()), std::make_move_iterator(found.rend()));
    return {};
  }

  // The best first; of equally good ones the newest of each chat.
  std::string Told() {
    std::ranges::stable_sort(found_, [](const Found& a, const Found& b) { return a.words > b.words; });
    const std::size_t shown = std::min(found_.size(), kMostFound);
    std::string text;
    for (std::size_t i = 0; i < shown; ++i) text += found_[i].place + ":\n" + found_[i].snippet + "\n\n";
    if (shown < found_.size()) text += "(" + std::to_string(found_.size() - shown) + " more; use rarer words)\n";
    if (is_over()) text += "(the search took too long and is not complete)\n";
    return text.empty() ? "Nothing was found." : text;
  }

 private:
  void Take(const ChatId& chat, const std::string& title, const Interaction& interaction, std::vector<Found>& found) {
    for (TextMatch& match : search_.In(interaction)) {
      const std::string lower = LowerCase(match.snippet);
      const auto has = [&](const std::string& word) { return lower.find(word) != std::string::npos; };
      std::string place =
          "chat " + chat.str() + (title.empty() ? "" : " (" + title + ")") + ", turn " + interaction.id.str();
      place += match.seq == 0 ? ", the user's message"
                              : ", event " + std::to_string(match.seq) + " (" + std::string(match.where) + ")";
      found.push_back({.words = static_cast<std::size_t>(std::ranges::count_if(words_, has)),
                       .place = std::move(place),
                       .snippet = std::move(match.snippet)});
    }
  }

  EngineServices& services_;
  const RecallTask& task_;
  const std::stop_token& stop_;
  const std::vector<std::string> words_;
  const TextSearch search_;
  const std::chrono::steady_clock::time_point until_ = std::chrono::steady_clock::now() + kLongest;
  std::vector<Found> found_;
};

}  // namespace

ToolOutcome Recall(EngineServices& services, const RecallTask& task, const std::stop_token& stop) {
  Search search(services, task, stop);
  if (!search.is_possible()) return {.output = "The query has no words to look for.", .is_error = true};
  if (const auto here = search.In(task.chat, {}); !here && !IsNotFound(here.error())) {
    return {.output = "This chat cannot be searched: " + here.error().message, .is_error = true};
  }
  if (!task.everywhere) return {.output = search.Told()};
  const auto chats = services.parts.store.ListChats();
  if (!chats) return {.output = "The other chats cannot be listed: " + chats.error().message, .is_error = true};
  std::size_t looked_at = 0;
  for (const ChatSummary& chat : *chats) {
    const bool is_here = (chat.workspace.empty() ? services.home->path : chat.workspace) == task.workspace;
    if (chat.id == task.chat || !is_here || search.is_over() || looked_at == kMostSearched) continue;
    ++looked_at;
    static_cast<void>(search.In(chat.id, chat.title));  // a damaged chat hides no other
  }
  return {.output = search.Told()};
}

}  // namespace reprise
