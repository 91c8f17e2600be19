#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/present_folders.h"
#include "base/atomic_write.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/private_file.h"
#include "base/queues.h"
#include "base/terminal_text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/live_runs.h"
#include "cli/record_chat.h"
#include "cli/recorded_chats.h"
#include "cli/suite_checks.h"
#include "cli/suite_report.h"
#include "client/archive/chat_folder.h"
#include "domain/codec.h"
#include "engine/drift.h"
#include "engine/elastic_pool.h"
#include "engine/live_turn.h"
#include "engine/recorded_replay.h"
#include "engine/request_body.h"
#include "reprise/accounting.h"
#include "terminal/console.h"
#include "terminal/progress.h"

namespace reprise {
namespace {

class Suite final : public RecordedChatTaker {
 public:
  // `live`: null if no model is asked.
  Suite(const CommandLine& line, std::unique_ptr<PresentFolders> present, LiveRuns* live)
      : line_(line), present_(std::move(present)), live_(live) {}

  Result<void> Take(const RecordedChat& chat) override;
  void TakeBroken(const std::string& name, const std::string& file, const Error& why) override;
  // For --update, after all chats.
  void WriteAccepted();
  const SuiteReport& report() const { return report_; }

 private:
  void Test(const RecordedChat& chat);
  Result<Interaction> TestTurn(const RecordedChat& chat, InteractionId id, TurnResult& result);
  Result<LiveTurn> PrepareTurn(const RecordedChat& chat, const Interaction& turn, std::size_t number);
  void Check(const RecordedChat& chat, const Interaction& turn, std::size_t number, TurnResult& result) const;
  // What was accepted, as JSON, and the file that says so: of the folder NAME and of the document NAME.json.
  struct Accepted {
    std::string chat{}, file{};
    std::set<std::string> known{};     // from the file
    std::set<std::string> found{};     // in this test
    std::set<std::string> compared{};  // canonical paths of chats of which every request of every turn was compared
  };
  static Result<void> Write(const Accepted& accepted);
  Result<Accepted*> AcceptedFor(const RecordedChat& chat);

  const CommandLine& line_;
  const std::unique_ptr<PresentFolders> present_;
  LiveRuns* const live_;
  ElasticPool pool_;
  const Executor executor_ = [this](std::function<void()> job) { pool_.Submit(std::move(job)); };
  std::vector<SuiteChecks> checks_;              // for the chat under way
  Accepted* accepted_ = nullptr;                 // likewise
  bool is_whole_ = true;                         // every request of it was compared
  std::map<std::string, Accepted> accepted_of_;  // by file, canonical; an empty one for all stored chats
  SuiteReport report_;
};

void Suite::TakeBroken(const std::string& name, const std::string& file, const Error& why) {
  report_.turns.push_back(
      {.chat = name, .turn = "", .file = file, .problems = {why.message}, .state = TurnResult::State::kFailed});
}

Result<void> Suite::Take(const RecordedChat& chat) {
  if (line_.update && chat.file.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "--update is for exported chats; " + chat.name + " is a stored one");
  }
  for (const auto& damaged : chat.damaged) TakeBroken(chat.name, "", damaged.error);
  Test(chat);
  return {};
}

// Without what is no longer found, if all was compared; no file if nothing is left.
Result<void> Suite::Write(const Accepted& accepted) {
  const std::string chat = accepted.file.substr(0, accepted.file.size() - kAcceptedEnding.size());
  const std::size_t chats = (IsChatFolder(chat) ? 1 : 0) + (IsFile(chat + ".json") ? 1 : 0);
  std::set<std::string> kept = accepted.found;
  if (accepted.compared.size() < chats) kept.insert(accepted.known.begin(), accepted.known.end());
  if (kept == accepted.known) return {};
  if (kept.empty()) return Disk().RemoveFile(accepted.file);
  Json list = Json::array();
  for (const std::string& each : kept) list.push_back(ParseJson(each).value());
  return WriteOutputFile(accepted.file, Json{{"accepted", std::move(list)}}.dump(2) + "\n", /*replace=*/true);
}

void Suite::WriteAccepted() {
  for (const auto& [file, accepted] : accepted_of_) {
    const Result<void> written = accepted.file.empty() ? Result<void>() : Write(accepted);
    if (written) continue;
    TakeBroken(accepted.chat, file,
               MakeError(written.error().code, accepted.file + " cannot be written: " + written.error().message));
  }
}

// Whether it is an entry that Suite::TestTurn could have made. Any other would accept nothing, without a word.
bool IsAcceptable(const Json& entry) {
  using Cause = Drift::Cause;
  const auto text = [&](const char* name) { return MemberOf(entry, name); };
  if (entry.size() != 3 || !text("cause").is_string() || !text("name").is_string() || !text("digest").is_string()) {
    return false;
  }
  for (auto each = static_cast<int>(Cause::kModule); each <= static_cast<int>(Cause::kRule); ++each) {
    if (text("cause") == ToString(static_cast<Cause>(each))) return true;
  }
  return false;
}

Result<Suite::Accepted*> Suite::AcceptedFor(const RecordedChat& chat) {
  if (chat.file.empty()) return &accepted_of_[""];
  Accepted accepted{.chat = chat.name, .file = chat.file + std::string(kAcceptedEnding)};
  const std::string place = Resolved(accepted.file).string();
  if (const auto found = accepted_of_.find(place); found != accepted_of_.end()) return &found->second;
  const auto text = TRY(ReadSmall(accepted.file));
  if (!text) return &accepted_of_.emplace(place, std::move(accepted)).first->second;
  const auto json = ParseJson(*text);
  const Json& list = json ? MemberOf(*json, "accepted") : Json();
  if (!list.is_array() || json->size() != 1 || !std::ranges::all_of(list, IsAcceptable)) {
    return Fail(ErrorCode::kInvalidArgument,
                accepted.file + " is not what `reprise test --update` writes; delete it to begin anew");
  }
  for (const Json& each : list) accepted.known.insert(DumpJson(each));
  return &accepted_of_.emplace(place, std::move(accepted)).first->second;
}

void Suite::Test(const RecordedChat& chat) {
  std::string faulty;
  auto checks = ChecksBeside(chat, faulty);
  if (!checks) return TakeBroken(chat.name, chat.path, checks.error());
  checks_ = *std::move(checks);
  const auto accepted = AcceptedFor(chat);
  if (!accepted) return TakeBroken(chat.name, chat.path, accepted.error());
  accepted_ = *accepted;
  if (chat.turns.empty()) {
    TakeBroken(chat.name, chat.path, MakeError(ErrorCode::kInvalidArgument, "the chat has no turns to test"));
  }
  is_whole_ = !chat.only && chat.is_whole;
  const auto grader = GraderFor(chat.file);
  std::deque<TurnResult> results;  // which stay where they are
  std::vector<LiveTest> for_model;
  std::vector<TurnResult*> of_model;  // likewise
  for (std::size_t i = 0; i < chat.turns.size(); ++i) {
    if (chat.only && chat.turns[i] != *chat.only) continue;
    TurnResult& result =
        results.emplace_back(TurnResult{.chat = chat.name, .turn = chat.turns[i].str(), .file = chat.path});
    const auto began = std::chrono::steady_clock::now();
    const auto turn = TestTurn(chat, chat.turns[i], result);
    if (!turn) result.problems.push_back(turn.error().message);
    is_whole_ = is_whole_ && turn && result.problems.empty();
    const bool has_answer = turn && !turn->user_message.empty();  // else it is an act of a person
    if (has_answer && live_ == nullptr) Check(chat, *turn, i + 1, result);
    if (has_answer && live_ != nullptr && result.problems.empty()) {
      auto prepared = PrepareTurn(chat, *turn, i + 1);
      if (prepared) {
        result.sides.push_back(SideOf("on record", *turn));
        for_model.push_back({.turn = *std::move(prepared),
                             .number = i + 1,
                             .files_then = [&chat, turn = *turn] { return chat.files_at(turn, 0); },
                             .grader = grader});
        of_model.push_back(&result);
      }
      if (!prepared) result.problems.push_back(prepared.error().message);
    }
    result.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
  }
  if (live_ != nullptr) {
    const auto runs = live_->Make(for_model, checks_, chat.content_of);
    for (std::size_t i = 0; i < runs.size(); ++i) LiveRuns::Report(for_model[i], checks_, runs[i], *of_model[i]);
  }
  for (TurnResult& result : results) {
    if (!result.problems.empty()) result.state = TurnResult::State::kFailed;
    report_.turns.push_back(std::move(result));
  }
  if (is_whole_) accepted_->compared.insert(Resolved(chat.path).string());
}

// The checks on the record.
void Suite::Check(const RecordedChat& chat, const Interaction& turn, std::size_t number, TurnResult& result) const {
  std::optional<double> cost;
  if (const auto agent = AgentFor(*present_, chat, turn)) {
    const auto price = agent->options.prices.find(turn.model);
    if (price != agent->options.prices.end()) cost = CostOf(turn.usage, price->second);
  }
  for (const SuiteChecks& checks : checks_) {
    for (const CheckFailure& failure : RunChecks(checks, turn, number, chat.content_of, cost)) {
      result.problems.push_back(failure.check + ": " + failure.message);
    }
    for (const std::string& check : ChecksForModel(checks, turn, number)) {
      result.notes.push_back(check + " is not checked without a model");
    }
  }
}

Result<LiveTurn> Suite::PrepareTurn(const RecordedChat& chat, const Interaction& turn, std::size_t number) {
  const auto model = line_.flags.find("model");
  auto prepared = TRY(PrepareLive(turn, *chat.bodies, TRY(AgentFor(*present_, chat, turn)),
                                  model == line_.flags.end() ? std::string() : model->second));
  TRY(live_->CheckPrice(prepared));
  TRY(live_->CheckJudges(prepared, checks_, number));
  return prepared;
}

// The rounds in which the model answered, and the requests for them.
struct AnsweredRounds {
  std::set<std::uint32_t> asked{}, answered{};
};

AnsweredRounds RoundsOf(const Interaction& turn) {
  AnsweredRounds rounds;
  for (const SentRequest& each : *turn.record->requests) {
    if (each.purpose == SentRequest::Purpose::kTurn) rounds.asked.insert(each.round);
  }
  const RunRecord& record = *turn.record;
  std::uint32_t round = record.resumed_from && !record.resumed_from->call_ids.empty() ? 1 : 0;
  const Messages& messages = turn.final_agent_state->messages;
  for (std::size_t i = record.first_message; i < messages.size(); ++i) {
    if (messages[i].role == Role::kAssistant) rounds.answered.insert(round++);
  }
  return rounds;
}

// Replays the turn, and names what has changed in its requests.
Result<Interaction> Suite::TestTurn(const RecordedChat& chat, InteractionId id, TurnResult& result) {
  Interaction turn = TRY(chat.bodies->store().LoadInteraction(chat.chat, id));
  auto report = TRY(ReplayRecorded(turn, executor_));
  if (const auto& found = report.divergence) {
    result.problems.push_back("differs at event " + std::to_string(found->seq) + ": " + found->reason);
  }
  if (turn.user_message.empty()) return turn;  // what a person did by hand
  if (!turn.record || !turn.record->requests) {
    result.notes.emplace_back(kRequestsNotOnRecord);
    is_whole_ = false;
    return turn;
  }
  std::ranges::move(chat.bodies->FaultsOf(turn), std::back_inserter(result.problems));
  const auto [asked, answered] = RoundsOf(turn);
  const bool is_of_provider = turn.model.find('/') != turn.model.npos;  // a part of this program sends nothing
  for (const std::uint32_t round : is_of_provider ? answered : std::set<std::uint32_t>()) {
    if (asked.contains(round)) continue;
    result.problems.push_back("the request of round " + std::to_string(round) + " is missing from the record");
    break;
  }
  if (!is_of_provider && !answered.empty()) {
    result.notes.emplace_back("not compared: the model is a part of this program, so no request was sent");
  }
  if (!result.problems.empty()) return turn;
  PresentAgent agent = TRY(AgentFor(*present_, chat, turn));
  agent.names_servers_away = false;
  const DriftReport compared = TRY(FindDrift(turn, *chat.bodies, agent, executor_));
  for (const std::string& why : std::set(compared.not_compared.begin(), compared.not_compared.end())) {
    result.notes.push_back("not compared: " + why);
  }
  const bool is_tested = compared.requests > 0 || compared.not_compared.empty() || !checks_.empty() || live_ != nullptr;
  if (!is_tested) result.state = TurnResult::State::kSkipped;
  is_whole_ = is_whole_ && compared.requests >= asked.size();
  for (const Drift& drift : compared.found) {
    const std::string text =
        DumpJson({{"cause", ToString(drift.cause)}, {"name", drift.name}, {"digest", drift.digest}});
    const bool is_accepted = accepted_->known.contains(text) || (line_.update && !accepted_->file.empty());
    if (is_accepted) accepted_->found.insert(text);
    if (!is_accepted) (live_ == nullptr ? result.problems : result.notes).push_back(Describe(drift));
  }
  return turn;
}

// All that can be written. Returns the first failure.
Result<void> WriteReports(const SuiteReport& report, const CommandLine& line) {
  Result<void> all;
  const std::pair<const std::string&, std::string (*)(const SuiteReport&)> kReports[] = {
      {line.reports.junit, JunitText}, {line.reports.markdown, MarkdownText}, {line.reports.html, HtmlText}};
  for (const auto& [path, text] : kReports) {
    if (path.empty()) continue;
    auto written = WriteOutputFile(path, text(report), /*replace=*/true);
    if (all && !written) all = std::move(written);
  }
  return all;
}

// Whether a file at this place could be one of the suite: of its chats, their checks, or what was accepted.
bool IsOfSuite(const std::string& place, const std::vector<std::string>& suites) {
  for (const std::string& what : suites) {
    const std::string named = RecordedChats::PathIn(what);
    if (named.empty()) continue;
    const std::string given = Resolved(FullPath(named)).string();
    const std::string folder = IsDirectory(given) && !IsChatFolder(given) ? given : ParentDirectory(given);
    if (!LiesIn(ParentDirectory(place), folder)) continue;
    if (place.ends_with(".json")) return true;
    for (std::string each = ParentDirectory(place); each.size() > folder.size(); each = ParentDirectory(each)) {
      if (IsChatFolder(each)) return true;
    }
  }
  return false;
}

// Fails before anything is asked or written if a report could not be written, or would replace a part of the suite.
Result<void> CheckReports(const CommandLine& line) {
  std::set<std::string> places;
  for (const std::string& path : {line.reports.junit, line.reports.markdown, line.reports.html}) {
    if (path.empty()) continue;
    if (IsDirectory(path)) return Fail(Reason::kFileExists, path + " is a folder");
    if (!IsDirectory(ParentDirectory(path))) {
      return Fail(ErrorCode::kNotFound, "there is no folder " + ParentDirectory(path));
    }
    const std::string place = PlaceOfOutput(path);
    const bool is_new = places.insert(place).second;
    const bool is_device = path.starts_with("/dev/") && !path.starts_with("/dev/shm/");
    if (!is_new && !is_device) return Fail(Reason::kFileExists, path + " cannot be two reports");
    if (IsOfSuite(place, line.arguments)) {
      return Fail(Reason::kFileExists, path + " is, or would count as, a part of the suite; no report replaces that");
    }
  }
  return {};
}

// Writes a stored chat into a suite.
Exited Record(const CommandLine& line, const Environment& environment) {
  const ReportFiles& reports = line.reports;
  const bool has_more = line.update || line.json || line.live.runs > 0 || !reports.junit.empty() ||
                        !reports.markdown.empty() || !reports.html.empty();
  if (line.arguments.size() != 1 || has_more) return Misused("--record CHAT takes one folder, and nothing else");
  auto stored = TRY(OfUse(FindStored(line.record, line.flags, environment)));
  if (!stored || stored->what.interaction) return Misused("--record takes a stored chat, as `reprise ls` lists it");
  const std::string folder = line.arguments.front(), name = stored->what.chat.str();
  const std::string file = folder + "/" + name + ".json";
  if (file.ends_with("/" + std::string(kSuiteFile)) || name == "chat") {  // another file of a suite has this name
    return Misused("a suite has no chat in a file " + name + ".json; `reprise export " + name + " -o " + folder +
                   "` writes a folder, with its secrets");
  }
  if (LiesIn(folder, stored->reader.options().data_dir)) {
    return Misused("--record takes no folder in the data folder, which is the server's");
  }
  if (IsFile(folder)) return Misused(folder + " is a file; --record takes the suite's folder");
  const Chat chat = TRY(stored->reader.store().LoadChat(stored->what.chat));
  if (chat.interactions.empty() && chat.damaged.empty()) return Fail(NothingFinished(chat.summary.id));
  TRY(CreateDirectories(Disk(), folder));
  const auto recording = TRY(RecordForTests(stored->reader, stored->what.chat));
  TRY(WriteOutputFile(file, recording.document, line.force));
  Print(VisibleLine(file) + " was written\n");
  for (const auto& [kind, times] : recording.taken) {
    Print("taken out: " + kind + (times == 1 ? "" : ", " + std::to_string(times) + " times") + "\n");
  }
  if (recording.left_out > 0) Print("left out: " + FilesLeftOut(recording.left_out, "a secret") + "\n");
  return kExitOk;
}

}  // namespace

Exited RunTest(const CommandLine& line, const Environment& environment) {
  if (!line.record.empty()) return Record(line, environment);
  SetLogLevel(LogLevel::kError);  // failures of the recorded runs are not news
  const auto began = std::chrono::steady_clock::now();
  if (const auto checked = CheckReports(line); !checked) return Misused(checked.error().message);
  auto loaded = OfUse(LoadOptions(line.flags, environment));
  if (!loaded && loaded.error().error.Is(Reason::kUntrusted)) loaded.error().status = kExitUsage;
  const Options options = TRY(std::move(loaded));
  WorkCounter counter;
  std::optional<Progress> progress;  // before any thread, because it takes the signals
  std::optional<LiveRuns> live;
  if (line.live.runs > 0) live.emplace(line.live, counter, progress.emplace(counter, environment));
  auto present = TRY(OfUse(PresentFolders::Open(options)));
  Suite suite(line, std::move(present), live ? &*live : nullptr);
  RecordedChats chats(line.flags, environment);
  for (const std::string& what : line.arguments) {
    if (!live) break;  // else before the first run is paid
    if (!TRY(OfUse(chats.Check(what)))) return Misused("there is no file, folder or chat " + VisibleLine(what));
  }
  int status = kExitOk;
  for (const std::string& what : line.arguments) {
    if (counter.stop_requested()) break;
    status = std::max(status, chats.TakeOrComplain(what, suite));
  }
  if (line.update) suite.WriteAccepted();
  SuiteReport report = suite.report();
  if (status != kExitOk && report.turns.empty()) return status;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (live) report.asked = live->Spent();
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  Print(line.json ? JsonText(report) : TerminalText(report, DecideColour(line.colour, environment, is_terminal)));
  const auto written = WriteReports(report, line);
  if (progress) progress->End();  // ends the program if it was interrupted
  FlushOutput();
  TRY(written);
  const bool failed = std::ranges::any_of(
      report.turns, [](const TurnResult& each) { return each.state == TurnResult::State::kFailed; });
  return failed || status != kExitOk ? kExitFailure : kExitOk;
}

}  // namespace reprise
