#include "cli/keep_what_if.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/what_if_report.h"
#include "client/archive/chat_names.h"
#include "client/run_stream.h"
#include "client/server_link.h"
#include "domain/codec.h"
#include "terminal/console.h"

namespace reprise {
namespace {

Json BodyOf(const WhatIfRequest& wanted, std::optional<std::uint64_t> at) {
  const WhatIfChanges& changes = wanted.changes;
  Json body = {{"keep", true}};
  if (at) body["at"] = *at;
  if (!wanted.models.empty()) body["model"] = wanted.models.front();
  if (changes.say) body["say"] = *changes.say;
  if (changes.answer) body["answer"] = *changes.answer ? "yes" : "no";
  if (changes.result) body["result"] = *changes.result;
  if (changes.fail) body["fail"] = *changes.fail == WhatIfChanges::Failure::kTimeout ? "timeout" : "error";
  if (!changes.allow_effects.empty()) body["allow_effects"] = changes.allow_effects;
  return body;
}

// What the server streams of a run.
struct Streamed {
  Interaction made;
  Json frame{};  // "what_if"
};

Result<Streamed> Follow(RunStream& run, Interaction like) {
  Streamed streamed{.made = std::move(like)};
  streamed.made.events.clear();
  while (!run.ended()) {
    pollfd ready{run.descriptor(), POLLIN, 0};
    if (::poll(&ready, 1, -1) < 0 && errno != EINTR) return Fail(ErrorCode::kIo, "the server cannot be waited for");
    run.Receive();
    while (auto heard = run.Next()) {
      if (heard->name == "what_if") streamed.frame = std::move(heard->data);
      if (heard->event) streamed.made.events.push_back(*std::move(heard->event));
    }
  }
  TRY(*run.ended());
  if (!run.is_complete() || streamed.frame.is_null()) {
    return Fail(ErrorCode::kUnavailable, "the server broke off the run, so nothing was kept");
  }
  const RunState& state = run.state();
  streamed.made.status = *state.status;
  streamed.made.model = state.model;
  streamed.made.error.reset();
  if (!state.failure.message.empty()) streamed.made.error = InteractionError{state.failure.code, state.failure.message};
  return streamed;
}

TriedRun RunOf(const Streamed& streamed, std::size_t recorded_events, const ModelPrice* price) {
  Interaction made = streamed.made;
  made.usage = {};
  made.completed_at.reset();
  for (std::size_t i = recorded_events; i < made.events.size(); ++i) {
    if (const auto* used = std::get_if<event::Usage>(&made.events[i].payload)) made.usage += used->tokens;
  }
  TriedRun run{SideOf(made, price)};
  run.was_made = true;
  for (const Json& file : MemberOf(streamed.frame, "files")) {
    if (file.is_string()) run.files.push_back(file.get<std::string>());
  }
  run.diff = TextMember(streamed.frame, "diff");
  if (const Json& found = MemberOf(streamed.frame, "first_difference"); found.is_object()) {
    const auto event = [](const Json& json) {
      const auto read = AgentEventFromJson(json);
      return read ? std::optional(*read) : std::nullopt;
    };
    const Json& seq = MemberOf(found, "seq");
    run.difference = Divergence{.seq = seq.is_number_unsigned() ? seq.get<std::uint64_t>() : 0,
                                .expected = event(MemberOf(found, "recorded")),
                                .actual = event(MemberOf(found, "what_if"))};
  }
  run.kept = TextMember(streamed.frame, "kept");
  run.not_kept = TextMember(streamed.frame, "not_kept");
  return run;
}

}  // namespace

Exited KeepWhatIf(const CommandLine& line, const Environment& environment, const std::string& what,
                  std::optional<std::uint64_t> at) {
  const auto began = std::chrono::steady_clock::now();
  ServerLink link(line.flags, environment, std::nullopt, /*restarts=*/false);
  TRY(OfUse(link.Check()));
  TRY(link.Reach({}));
  const auto target = TRY(OfUse(FindRecord(what, NamesAt(link.server()))));
  if (!target.interaction) return Misused("--keep takes CHAT/INTERACTION, a turn of a stored chat");
  const std::string path = RunPath({target.chat, *target.interaction});
  const Interaction recorded = TRY(InteractionFromJson(TRY(link.Call("GET", path))));
  RunStream stream(link.server(), target.chat.str());
  stream.Start(path + "/what_if", BodyOf(line.what_if, at));
  const auto streamed = Follow(stream, recorded);
  const bool is_misused =
      !streamed && (streamed.error().Is(Reason::kInvalidRequest) || streamed.error().Is(Reason::kUnknownModel));
  if (is_misused) return Misused(streamed.error().message);
  const Streamed& made = TRY(streamed);

  const auto price = link.options().prices.find(made.made.model);
  const bool is_priced = price != link.options().prices.end();
  const std::size_t before = static_cast<std::size_t>(
      std::ranges::count_if(recorded.events, [&](const AgentEvent& each) { return at && each.seq <= *at; }));
  TriedTurn tried{.chat = target.chat.str(), .turn = target.interaction->str(), .at = at.value_or(0)};
  tried.recorded = SideOf(recorded, is_priced ? &price->second : nullptr);
  tried.runs.push_back(RunOf(made, before, is_priced ? &price->second : nullptr));
  TriedRun& run = tried.runs.front();
  if (line.what_if.switches && !run.kept.empty()) {
    TRY(link.Call("POST", "/chats/" + tried.chat + "/head", {{"interaction_id", run.kept}}));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  run.ms = took.count() * 1000;
  const WhatIfReport report{
      .turns = {std::move(tried)},
      .seconds = took.count(),
      .asked = Grouped(run.usage.input_tokens) + " input and " + Grouped(run.usage.output_tokens) + " output tokens"};
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  Print(line.json ? JsonText(report) : TerminalText(report, DecideColour(line.colour, environment, is_terminal)));
  return report.is_good() ? kExitOk : kExitFailure;
}

}  // namespace reprise
