#include "store/linked_state.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "crypto/digest.h"
#include "domain/codec.h"

namespace reprise {
namespace {

// A full state repeats the whole conversation on disk, and saves opening the files since the last one, each of which
// takes about the time of reading 6 KiB. It is due when that is three times the time for their content, at distances
// that at least double. It is due anyway after much growth, because damage spoils all states up to the next full one.
constexpr std::uint64_t kWorthOfFile = 6 * 1024 / 3;
constexpr std::uint64_t kLeastGrowth = 2, kMostGrowth = 64;

bool IsFullDue(const StateTotals& totals) {
  if (totals.bytes >= kMostGrowth * totals.full_bytes) return true;
  return totals.bytes >= kLeastGrowth * totals.full_bytes && totals.files * kWorthOfFile > totals.bytes;
}

// Shorter texts are not worth a reference.
constexpr std::size_t kShortText = 64;

void Count(StateTotals& totals, const Message& message) {
  std::string text;
  AppendJson(text, message);
  if (text.find("\\u007f") != std::string::npos) text = DumpJson(ToJson(message));  // which does not escape it
  ++totals.messages;
  totals.bytes += text.size() + 1;
  totals.digest = Sha256Digest({totals.digest, text});
}

// The texts of an interaction outside its state, by the number of their event; 0 is the user's message.
std::map<std::uint64_t, const Json*> TextsOf(const Json& interaction) {
  std::map<std::uint64_t, const Json*> texts = {{0, &interaction.at("user_message")}};
  for (const Json& event : interaction.at("agent_events")) {
    for (const char* name : {"content", "tool_output", "tool_input"}) {
      const auto text = event.find(name);
      if (text != event.end() && text->is_string()) texts.emplace(event.at("seq").get<std::uint64_t>(), &*text);
    }
  }
  return texts;
}

// Most texts of messages also stand in an event, so a reference to that replaces them. `texts` lists [message, event],
// `arguments` [message, call, event].
void ReferToEvents(const Json& interaction, Json& messages, Json& link) {
  std::map<std::string_view, std::uint64_t> events;
  for (const auto& [seq, text] : TextsOf(interaction)) events.emplace(text->get_ref<const std::string&>(), seq);
  const auto take = [&](Json& text) -> std::optional<std::uint64_t> {
    if (!text.is_string() || text.get_ref<const std::string&>().size() < kShortText) return std::nullopt;
    const auto event = events.find(text.get_ref<const std::string&>());
    if (event == events.end()) return std::nullopt;
    text = "";
    return event->second;
  };
  Json texts = Json::array(), arguments = Json::array();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (const auto event = take(messages[i].at("content"))) texts.push_back({i, *event});
    const auto calls = messages[i].find("tool_calls");
    if (calls == messages[i].end()) continue;
    for (std::size_t k = 0; k < calls->size(); ++k) {
      if (const auto event = take((*calls)[k].at("function").at("arguments"))) arguments.push_back({i, k, *event});
    }
  }
  if (!texts.empty()) link["texts"] = std::move(texts);
  if (!arguments.empty()) link["arguments"] = std::move(arguments);
}

void RestoreTexts(const Json& interaction, Json& messages, const Json& link) {
  const auto events = TextsOf(interaction);
  if (const auto texts = link.find("texts"); texts != link.end()) {
    for (const Json& each : *texts) messages.at(each.at(0).get<std::size_t>())["content"] = *events.at(each.at(1));
  }
  if (const auto arguments = link.find("arguments"); arguments != link.end()) {
    for (const Json& each : *arguments) {
      Json& call = messages.at(each.at(0).get<std::size_t>()).at("tool_calls").at(each.at(1).get<std::size_t>());
      call.at("function")["arguments"] = *events.at(each.at(2));
    }
  }
}

Json ToJson(const StateLink& link) {
  return {{"kept", link.kept},
          {"messages", link.totals.messages},
          {"bytes", link.totals.bytes},
          {"digest", link.totals.digest},
          {"full_bytes", link.totals.full_bytes},
          {"files", link.totals.files}};
}

StateLink LinkFromJson(const Json& json) {
  return {.kept = json.at("kept").get<std::uint64_t>(),
          .totals = {.messages = json.at("messages").get<std::uint64_t>(),
                     .bytes = json.at("bytes").get<std::uint64_t>(),
                     .digest = json.at("digest").get<std::string>(),
                     .full_bytes = json.at("full_bytes").get<std::uint64_t>(),
                     .files = json.at("files").get<std::uint64_t>()}};
}

// The totals of `state`, if it continues the parent's.
std::optional<StateTotals> TotalsAfter(const KnownState& parent, const AgentState& state) {
  if (state.messages.size() < parent.totals.messages) return std::nullopt;
  const auto added = state.messages.begin() + static_cast<std::ptrdiff_t>(parent.totals.messages);
  StateTotals totals;
  if (parent.state) {
    if (!state.messages.StartsWith(parent.state->messages)) return std::nullopt;
    totals = parent.totals;
  } else {
    for (auto message = state.messages.begin(); message != added; ++message) Count(totals, *message);
    if (totals.digest != parent.totals.digest) return std::nullopt;
  }
  for (auto message = added; message != state.messages.end(); ++message) Count(totals, *message);
  return totals;
}

}  // namespace

bool BeginsWith(const AgentState& state, const StateTotals& totals) {
  if (state.messages.size() < totals.messages) return false;
  StateTotals beginning;
  for (std::size_t i = 0; i < totals.messages; ++i) Count(beginning, state.messages[i]);
  return beginning.digest == totals.digest;
}

StateTotals TotalsOf(const AgentState& state) {
  StateTotals totals;
  for (const Message& message : state.messages) Count(totals, message);
  totals.full_bytes = totals.bytes;
  return totals;
}

std::optional<StateLink> LinkTo(const KnownState& parent, const AgentState& state) {
  auto totals = TotalsAfter(parent, state);
  if (!totals || totals->bytes <= kFullStateBytes) return std::nullopt;
  totals->full_bytes = parent.totals.full_bytes;
  totals->files = parent.totals.files + 1;
  if (IsFullDue(*totals)) return std::nullopt;
  return StateLink{.kept = parent.totals.messages, .totals = *std::move(totals)};
}

StateTotals Continued(StateTotals parent, const Messages& added) {
  for (const Message& message : added) Count(parent, message);
  ++parent.files;
  return parent;
}

Json ToLinkedJson(const AddedInteraction& added, const StateTotals& totals) {
  Json json = ToJson(added.interaction);
  json.at("final_agent_state")["linked"] = ToJson(StateLink{.kept = added.kept_messages, .totals = totals});
  return json;
}

namespace {

// As AppendJson writes them: stored in one form, however the interaction came here.
void PackRequests(Json& interaction) {
  const auto record = interaction.find("record");
  if (record == interaction.end() || !record->contains("requests")) return;
  for (Json& request : (*record)["requests"]) {
    for (Json& piece : request["body"]) {
      if (piece.is_string()) piece = *ParseJson(PackedLiteral(piece.get_ref<const std::string&>()));
    }
  }
}

Json WithLink(Json json, const StateLink& link) {
  Json linked = ToJson(link);
  Json& state = json.at("final_agent_state");
  ReferToEvents(json, state.at("messages"), linked);
  state["linked"] = std::move(linked);
  PackRequests(json);
  return json;
}

}  // namespace

Json ToLinkedJson(const Interaction& interaction, const StateLink& link) {
  return WithLink(ToJson(interaction, link.kept), link);
}

Json ToStoredJson(const Interaction& added, const StateLink& link) { return WithLink(ToJson(added), link); }

bool HasLinkedState(std::string_view interaction) {
  if (interaction.find("\"linked\"") == std::string_view::npos) return false;
  const auto json = ParseJson(interaction, 2 * kMaxJsonDepth);
  if (!json || !json->is_object()) return false;
  const auto state = json->find("final_agent_state");
  return state != json->end() && state->is_object() && state->contains("linked");
}

Result<std::optional<StateLink>> UnlinkState(Json& interaction) {
  const auto state = interaction.is_object() ? interaction.find("final_agent_state") : interaction.end();
  if (state == interaction.end() || !state->is_object() || !state->contains("linked")) return std::nullopt;
  try {
    const Json json = std::move(state->at("linked"));
    state->erase("linked");
    RestoreTexts(interaction, state->at("messages"), json);
    return LinkFromJson(json);
  } catch (const std::exception&) {
    return Fail(Reason::kIntegrityAuth, "the link to the state before it cannot be used");
  }
}

namespace {

std::size_t MemoryOf(const std::string& text) {
  constexpr std::size_t kAllocation = 16, kInPlace = 15;  // bytes that an allocation costs; bytes that need none
  return text.capacity() > kInPlace ? text.capacity() + kAllocation : 0;
}

}  // namespace

std::size_t MemoryOf(const AgentState& state) {
  std::size_t bytes = sizeof(state) + state.messages.size() * sizeof(Message);
  for (const Message& message : state.messages) {
    bytes += MemoryOf(message.tool_call_id) + MemoryOf(message.name) + MemoryOf(message.extras);
    if (message.content) bytes += MemoryOf(*message.content);
    bytes += message.tool_calls.capacity() * sizeof(ToolCall);
    for (const ToolCall& call : message.tool_calls) {
      bytes += MemoryOf(call.id) + MemoryOf(call.name) + MemoryOf(call.arguments);
    }
  }
  for (const Grant& grant : state.grants) {
    bytes += sizeof(grant) + MemoryOf(grant.tool_name) + MemoryOf(grant.means) + MemoryOf(grant.arguments_digest);
  }
  for (const Entity& entity : state.memory) {
    bytes += sizeof(entity) + MemoryOf(entity.type) + MemoryOf(entity.id) + MemoryOf(entity.name);
  }
  if (state.compaction) bytes += MemoryOf(state.compaction->summary);
  return bytes;
}

}  // namespace reprise
