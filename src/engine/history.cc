#include "engine/history.h"

#include <re2/re2.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <variant>

#include "base/text.h"
#include "base/try.h"
#include "domain/codec.h"
#include "engine/interactions.h"
#include "engine/run_guard.h"
#include "engine/text_pieces.h"

namespace reprise {
namespace {

// For stores that hold their chats in memory anyway.
class WholeChats final : public HistorySource {
 public:
  explicit WholeChats(CheckpointStore& store) : store_(store) {}

  Result<ChatOutline> LoadOutline(const ChatId& id, const HistoryRange& range,
                                  const std::optional<RunningInteraction>& running) override {
    const Chat chat = TRY(store_.LoadChat(id));
    ChatOutline outline{.summary = chat.summary};
    std::vector<InteractionId> ids;
    for (const Interaction& each : chat.interactions) ids.push_back(each.id);
    outline.has_running = running && std::ranges::find(ids, running->id) != ids.end();
    for (const DamagedInteraction& each : chat.damaged) ids.push_back(each.id);
    std::ranges::sort(ids);
    const auto leaf = running && !outline.has_running ? running->parent_id : chat.summary.head;
    const auto branch = BranchOf(chat.interactions, chat.damaged, leaf);
    outline.has_before = !range.before || (running && *range.before == running->id);
    for (const InteractionId each : ids) {
      const bool superseded = !branch.contains(each);
      if (superseded && !range.all_branches && !range.is_whole()) continue;
      outline.has_before = outline.has_before || each == *range.before;
      if (!range.before || each < *range.before) outline.entries.push_back({.id = each, .superseded = superseded});
    }
    outline.more = range.limit && outline.entries.size() > *range.limit;
    if (outline.more) {
      outline.entries.erase(outline.entries.begin(), outline.entries.end() - static_cast<std::ptrdiff_t>(*range.limit));
    }
    return outline;
  }

  Result<InteractionJson> LoadJson(const ChatOutline& outline, const ChatOutline::Entry& entry, State state) override {
    const ChatId& chat = outline.summary.id;
    if (state == State::kAdded) return store_.LoadAdded(chat, entry.id).map(ToInteractionJson);
    return store_.LoadInteraction(chat, entry.id).map([&](Interaction interaction) {
      if (state == State::kNone) interaction.final_agent_state.reset();
      return ToInteractionJson({.interaction = std::move(interaction)});
    });
  }

 private:
  CheckpointStore& store_;
};

class Reader final : public HistoryReader {
 public:
  Reader(CheckpointStore& store, const ChatId& chat, const HistoryRange& range, HistoryStates states,
         std::function<void()> on_damage)
      : whole_chats_(store),
        source_(store.histories() != nullptr ? *store.histories() : whole_chats_),
        range_(range),
        states_(states),
        on_damage_(std::move(on_damage)),
        outline_{.summary = {.id = chat}} {}

  Result<void> Open(std::optional<Interaction> running) {
    auto outline = Load(running);
    const bool is_new = running && !outline && IsNotFound(outline.error());
    if (!outline && !is_new) return Fail(std::move(outline.error()));
    if (outline) outline_ = *std::move(outline);
    if (is_new) outline_.has_before = !range_.before || *range_.before == running->id;
    if (!outline_.has_before) {
      return Fail(Reason::kInvalidParameter, "\"before\" is no interaction of this history");
    }
    if (!running || outline_.has_running) return {};
    FillFromBegun(outline_.summary, *running);
    if (!range_.before) running_ = std::move(running);
    return {};
  }

  const ChatSummary& summary() const override { return outline_.summary; }
  const std::vector<DamagedInteraction>& damaged() const override { return damaged_; }
  const UsageByModel& usage() const override { return usage_; }

  std::optional<InteractionId> previous() const override { return previous_; }

  Result<std::optional<Entry>> Next() override {
    while (next_ < outline_.entries.size()) {
      const ChatOutline::Entry& entry = outline_.entries[next_];
      const bool shown = range_.all_branches || !entry.superseded;
      auto json = shown ? Load(entry) : source_.LoadJson(outline_, entry, HistorySource::State::kNone);
      ++next_;
      if (!json && json.error().code != ErrorCode::kCorruption) return Fail(std::move(json.error()));
      if (!json) {
        damaged_.push_back({.id = entry.id, .error = std::move(json.error())});
        if (on_damage_) on_damage_();
        continue;
      }
      if (!entry.superseded) Count(json->model, json->usage);
      if (shown) return Entry{.json = std::move(json->text), .superseded = entry.superseded};
    }
    if (!running_) return std::nullopt;
    const Interaction running = *std::exchange(running_, std::nullopt);
    Count(running.model, UsedBy(running));
    Entry entry;
    AppendJson(entry.json, running);
    return entry;
  }

 private:
  Result<InteractionJson> Load(const ChatOutline::Entry& entry) {
    using State = HistorySource::State;
    if (states_ == HistoryStates::kAdded) return LoadToExport(entry);
    const bool has_state =
        states_ == HistoryStates::kAll || (states_ == HistoryStates::kHead && entry.id == outline_.summary.head);
    return source_.LoadJson(outline_, entry, has_state ? State::kWhole : State::kNone);
  }

  Result<InteractionJson> LoadToExport(const ChatOutline::Entry& entry) {
    using State = HistorySource::State;
    auto json = TRY(source_.LoadJson(outline_, entry, State::kAdded));
    const bool lacks_parent = json.continues && !exported_.contains(*json.continues);
    if (json.continues && (lacks_parent || whole_left_ > 0)) {
      auto whole = TRY(source_.LoadJson(outline_, entry, State::kWhole));
      const std::size_t more = whole.text.size() - std::min(whole.text.size(), json.text.size());
      const bool fits = more <= whole_left_;
      whole_left_ = fits ? whole_left_ - more : 0;
      if (fits || lacks_parent) json = std::move(whole);
    }
    if (json.has_state) exported_.insert(entry.id);
    return json;
  }

  // The running interaction is the newest, so it is on the first page.
  Result<ChatOutline> Load(const std::optional<Interaction>& running) {
    HistoryRange stored = range_;
    if (running && !range_.before && stored.limit) --*stored.limit;
    std::optional<RunningInteraction> begun;
    if (running) begun = {running->id, running->parent_id};
    auto outline = TRY(source_.LoadOutline(outline_.summary.id, stored, begun));
    // If it has ended since, it is among the stored ones.
    if (outline.has_running) {
      outline = TRY(source_.LoadOutline(outline_.summary.id, range_, std::nullopt));
      outline.has_running = true;
    }
    if (outline.more) previous_ = outline.entries.empty() ? running->id : outline.entries.front().id;
    return outline;
  }

  void Count(const std::string& model, const TokenUsage& used) {
    if (used != TokenUsage{}) usage_[model] += used;
  }

  WholeChats whole_chats_;
  HistorySource& source_;
  const HistoryRange range_;
  const HistoryStates states_;
  const std::function<void()> on_damage_;
  ChatOutline outline_;
  std::optional<InteractionId> previous_;
  std::optional<Interaction> running_;
  std::size_t next_ = 0;
  std::size_t whole_left_ = kRepeatedBytes;  // for kAdded
  std::set<InteractionId> exported_;         // for kAdded: interactions whose states were written
  std::vector<DamagedInteraction> damaged_;
  UsageByModel usage_;
};

}  // namespace

Result<std::unique_ptr<HistoryReader>> OpenHistory(CheckpointStore& store, const ChatId& chat,
                                                   const HistoryRange& range, HistoryStates states,
                                                   std::optional<Interaction> running,
                                                   std::function<void()> on_damage) {
  auto reader = std::make_unique<Reader>(store, chat, range, states, std::move(on_damage));
  TRY(reader->Open(std::move(running)));
  return reader;
}

Result<std::optional<std::string>> HistoryDocument::Next(std::size_t bytes) {
  if (ended_) return std::nullopt;
  std::string piece;
  if (!std::exchange(begun_, true)) {
    piece = DumpJson(ToJson(reader_->summary()));
    piece.back() = ',';
    piece += "\"interactions\":[";
  }
  while (!ended_ && piece.size() < bytes) {
    const auto entry = TRY(reader_->Next());
    if (!entry) {
      End(piece);
      break;
    }
    if (!std::exchange(first_, false)) piece += ',';
    piece += entry->json;
    if (!all_branches_) continue;
    piece.back() = ',';
    piece += entry->superseded ? "\"superseded\":true}" : "\"superseded\":false}";
  }
  return std::optional(std::move(piece));
}

void HistoryDocument::End(std::string& piece) {
  ended_ = true;
  Json end = Json::object();
  for (const DamagedInteraction& each : reader_->damaged()) end["damaged"].push_back(ToJson(each));
  if (add_end_) add_end_(end);
  piece += end.empty() ? "]}" : "]," + DumpJson(end).substr(1);
}

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
  std::uint64_t seq;
};

std::vector<Part> PartsOf(const Interaction& interaction) {
  std::vector<Part> parts = {{"user", interaction.user_message, 0}};
  for (const AgentEvent& agent_event : interaction.events) {
    const EventPayload& payload = agent_event.payload;
    if (const auto* answer = std::get_if<event::Answer>(&payload))
      parts.push_back({"answer", answer->content, agent_event.seq});
    if (const auto* message = std::get_if<event::MessageText>(&payload))
      parts.push_back({"answer", message->content, agent_event.seq});
    if (const auto* call = std::get_if<event::ToolCallStarted>(&payload)) {
      parts.push_back({"tool_call", call->tool_name + " " + call->tool_input, agent_event.seq});
    }
    if (const auto* result = std::get_if<event::ToolResult>(&payload)) {
      parts.push_back({"tool_result", result->tool_output, agent_event.seq});
    }
    // What it stands for may be in no chat here.
    const auto* const compacted = std::get_if<event::Compacted>(&payload);
    if (compacted && interaction.imported) parts.push_back({"summary", compacted->summary, agent_event.seq});
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

std::vector<TextMatch> TextSearch::In(const Interaction& interaction, TextPieces* heard) const {
  std::vector<TextMatch> matches;
  for (const Part& part : PartsOf(interaction)) {
    const std::string text = ToValidUtf8(part.text);
    if (heard != nullptr) heard->Add(text);
    re2::StringPiece found;
    if (!pattern_->Match(text, 0, text.size(), RE2::UNANCHORED, &found, 1)) continue;
    const auto at = static_cast<std::size_t>(found.data() - text.data());
    matches.push_back({.where = part.where, .snippet = Snippet(text, at, found.size()), .seq = part.seq});
  }
  return matches;
}

}  // namespace reprise
