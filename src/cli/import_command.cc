#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "app/chat_bucket.h"
#include "app/embedded.h"
#include "app/keys.h"
#include "base/logging.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/readable_size.h"
#include "client/archive/chat_folder.h"
#include "client/archive/chat_reader.h"
#include "client/archive/foreign_sessions.h"
#include "client/server_access.h"
#include "domain/transcript/transcript.h"
#include "engine/moves/moved_turns.h"
#include "remote/postgres/postgres_tenant_stores.h"
#include "store/incoming_chats.h"
#include "terminal/console.h"
#include "terminal/progress.h"

namespace reprise {
namespace {

struct Imported {
  ChatId chat;
  std::size_t interactions;
  std::vector<std::string> notes;
};

// Imports a chat under this name or, if it may have another, under the next free one. Returns its name.
using TakeIn = std::function<Result<ChatId>(const ChatId& name, bool may_have_another, ForeignChat chat)>;

// Where chats go.
struct Target {
  TakeIn take_in;
  std::set<std::string> chats;  // that are there
  // Imports chats that are given piece by piece, all of them or none. Null: each as a whole, through take_in.
  std::function<Result<void>(const std::vector<IncomingChat>& chats)> take_pieces{};
};

std::set<std::string> ChatsIn(const std::string& data_dir) {
  std::set<std::string> chats;
  const auto entries = Disk().ListDirectory(data_dir);
  for (const DirectoryEntry& entry : entries ? *entries : std::vector<DirectoryEntry>()) {
    if (entry.is_directory && ChatId::Parse(entry.name)) chats.insert(entry.name);
  }
  return chats;
}

Result<std::set<std::string>> ChatsOf(ServerClient& server) {
  std::set<std::string> chats;
  for (const ChatId& chat : TRY(ChatsAt(server))) chats.insert(chat.str());
  return chats;
}

// The name, or, if it may have another and is taken, the first one free with a number behind it.
ChatId FreeName(const ChatId& name, bool may_have_another, const std::function<bool(const ChatId&)>& is_taken) {
  ChatId free = name;
  for (int number = 2; may_have_another && is_taken(free); ++number) free = NumberedName(name, number);
  return free;
}

// Imports in this process, which has the data folder's lock.
Target IntoFolder(const IncomingChats& folder, const std::string& data_dir) {
  return {.take_in = [&folder](const ChatId& name, bool may_have_another, ForeignChat foreign) -> Result<ChatId> {
            const ChatId free = FreeName(name, may_have_another, [&](const ChatId& chat) { return folder.Has(chat); });
            return folder.Add(ToIncomingChat(free, std::move(foreign))).map([&] { return free; });
          },
          .chats = ChatsIn(data_dir),
          .take_pieces = [&folder](const std::vector<IncomingChat>& chats) { return folder.AddAll(chats); }};
}

// Imports through the data folder's server. Counts each interaction twice, as IncomingChats does.
TakeIn ThroughServer(ServerClient& server, WorkCounter& counter) {
  return [&](const ChatId& name, bool may_have_another, ForeignChat foreign) -> Result<ChatId> {
    foreign.name = name.str();
    const std::string path = may_have_another ? "/import" : "/import?as=" + name.str();
    auto taken = server.CallAndWait(path, ToChatDocument(foreign), counter.stop_token());
    if (!taken && taken.error().Is(Reason::kTooLarge)) {
      taken.error().message = "the chat is too large to go through the server; stop it and import the chat then";
    } else if (!taken && taken.error().Is(Reason::kChatExists)) {
      taken.error().message = "there is a chat " + name.str() + " already";
    }
    if (!taken) return Fail(NotAnswering(std::move(taken.error()), server));
    counter.Add(2 * (foreign.interactions.size() + foreign.files.size()));
    auto chat = ChatId::Parse(TextMember(*taken, "id"));
    if (!chat) return Fail(ErrorCode::kUnavailable, "the server at " + server.url() + " does not say what it has made");
    return chat;
  };
}

// Imports in this process, into a database that others may use meanwhile.
TakeIn IntoDatabase(PostgresParts& database, WorkCounter& counter) {
  return [&](const ChatId& name, bool may_have_another, ForeignChat foreign) -> Result<ChatId> {
    const ChatId free = FreeName(name, may_have_another,
                                 [&](const ChatId& chat) { return database.store().LoadSummary(chat).has_value(); });
    const IncomingChat chat = ToIncomingChat(free, std::move(foreign));
    TRY(database.store().ImportChat(chat));
    TRY(CountStep(&counter));
    return free;
  };
}

// `as` may be empty.
Result<ChatId> NameFor(const ForeignChat& foreign, const std::string& path, const std::string& as) {
  auto name = ChatId::Parse(as.empty() ? foreign.name : as);
  if (name) return name;
  return Fail(ErrorCode::kInvalidArgument,
              path + ": \"" + foreign.name + "\" cannot be a chat's name here; give it one with --as");
}

// `expecting` gets the number of things to import; may be null.
Result<Imported> Import(const std::string& path, const std::string& as, const TakeIn& take_in, Progress* expecting) {
  auto foreign = TRY(ReadForeignChat(path));
  const ChatId name = TRY(NameFor(foreign, path, as));
  const std::size_t interactions = foreign.interactions.size();
  std::vector<std::string> notes = foreign.notes;
  if (expecting != nullptr) expecting->Expect(interactions + foreign.files.size());
  return take_in(name, as.empty(), std::move(foreign)).map([&](const ChatId& chat) {
    return Imported{chat, interactions, std::move(notes)};
  });
}

std::string Described(const PassedOver& passed_over) {
  std::string text = "not among those asked for: " + Counted(passed_over.sessions, "session");
  if (passed_over.without_folder > 0)
    text += ", of which " + std::to_string(passed_over.without_folder) + " say no folder";
  return text;
}

class Report {
 public:
  explicit Report(bool json) : json_(json) {}

  // `tool` is empty for our own chats.
  void Add(const std::string& source, const Imported& imported, std::string_view tool = {}) {
    Json added = {{"source", source}, {"chat_id", imported.chat.str()}, {"interactions", imported.interactions}};
    if (!tool.empty()) added["tool"] = tool;
    added["notes"] = imported.notes;
    list_.push_back(std::move(added));
    interactions_ += imported.interactions;
    if (json_) return;
    Print(imported.chat.str() + "  " + CountOf(imported.interactions, "interaction") + " from " + VisibleLine(source) +
          "\n");
    for (const std::string& note : imported.notes) Print("  " + VisibleLine(note) + "\n");
  }
  void Fail(const std::string& source, Error error) {
    failed_.push_back({{"source", source}, {"message", error.message}});
    if (error.message.find(source) == std::string::npos) error.message.insert(0, source + ": ");
    Complain(error);
  }
  bool has_failed() const { return !failed_.empty(); }
  void AddKnown() { ++known_; }
  void AddEmpty() { ++empty_; }
  void Add(const PassedOver& passed_over) { passed_over_ = passed_over; }
  int Finish() const {
    if (json_) {
      Json told = {{"imported", list_}, {"failed", failed_}};
      if (known_ > 0) told["known"] = known_;
      if (empty_ > 0) told["empty"] = empty_;
      if (passed_over_.sessions > 0) told["passed_over"] = passed_over_.sessions;
      if (passed_over_.without_folder > 0) told["without_folder"] = passed_over_.without_folder;
      PrintDocument(told);
      return failed_.empty() ? kExitOk : kExitFailure;
    }
    if (list_.size() > 1) {
      Print(std::to_string(list_.size()) + " chats imported, with " + std::to_string(interactions_) +
            " interactions\n");
    }
    if (known_ > 0) Print("imported earlier, and the same since: " + Counted(known_, "session") + "\n");
    if (empty_ > 0) Print("without any message: " + Counted(empty_, "session") + "\n");
    if (passed_over_.sessions > 0) Print(Described(passed_over_) + "\n");
    if (list_.empty() && failed_.empty() && known_ + empty_ == 0) Print("nothing was found to import\n");
    return failed_.empty() ? kExitOk : kExitFailure;
  }

 private:
  const bool json_;
  Json list_ = Json::array(), failed_ = Json::array();
  std::size_t interactions_ = 0, known_ = 0, empty_ = 0;
  PassedOver passed_over_;
};

// Counts by file names alone; nullopt if the number is known only after reading.
std::optional<std::uint64_t> CountIn(const std::string& source) {
  std::uint64_t count = 0;
  for (const char* part : {"/interactions", "/files"}) count += CountFilesBelow(source + part);
  return count == 0 ? std::nullopt : std::optional(count);
}

// 0 if the number in any source is unknown.
std::uint64_t CountAll(const std::vector<std::string>& sources) {
  std::uint64_t all = 0;
  for (const std::string& source : sources) {
    const auto count = CountIn(source);
    if (!count) return 0;
    all += *count;
  }
  return all;
}

// What a command line asks for.
struct Asked {
  std::vector<std::string> chats;  // folders and documents of our own
  WantedSessions sessions;         // of other tools
  bool has_sessions = false;
  std::string as;

  bool is_empty() const { return chats.empty() && !has_sessions; }
};

void ImportChats(const Asked& asked, const Target& target, Progress& progress, Report& report) {
  LongTask task{.doing = "importing", .things = "interactions and files", .steps_each = 2};
  if (progress.is_shown() && !asked.has_sessions) task.total = CountAll(asked.chats);
  const bool expects = task.total == 0 && asked.chats.size() == 1;
  progress.Begin(std::move(task));
  for (const std::string& source : asked.chats) {
    const auto imported = Import(source, asked.as, target.take_in, expects ? &progress : nullptr);
    if (progress.interrupted()) break;
    imported ? report.Add(source, *imported) : report.Fail(source, imported.error());
  }
}

// The chat that an earlier state of the session became; empty: none.
std::string EarlierChat(const std::string& name, const std::set<std::string>& chats) {
  const std::string beginning = name.substr(0, name.rfind('-') + 1);
  const auto found = chats.lower_bound(beginning);
  return found != chats.end() && found->starts_with(beginning) ? *found : std::string();
}

// Imports sessions of other tools. Small ones share the time that the disk takes, and more are read meanwhile.
class SessionImport {
 public:
  SessionImport(const Asked& asked, Target& target, Progress& progress, Report& report)
      : asked_(asked), target_(target), progress_(progress), report_(report) {}

  // Fails only if the whole import has to end.
  Result<void> Add(FoundSession session) {
    const bool has_own_name = asked_.as.empty();
    const auto digest = has_own_name ? session.digest() : std::string();
    if (!digest) return report_.Fail(session.source, digest.error()), Result<void>();
    const std::string name = has_own_name ? NameOfMoved(session, *digest) : asked_.as;
    if (has_own_name && target_.chats.contains(name)) return report_.AddKnown(), Result<void>();
    auto turns = session.plan();
    if (!turns && turns.error().code == ErrorCode::kNotFound) return report_.AddEmpty(), Result<void>();
    if (!turns) return report_.Fail(session.source, turns.error()), Result<void>();
    progress_.Expect((*turns)->size());
    auto chat = TRY(ChatId::Parse(name));
    Waiting waiting{.source = session.source,
                    .tool = session.format->tool,
                    .chat = std::move(chat),
                    .earlier = has_own_name ? EarlierChat(name, target_.chats) : "",
                    .turns = *std::move(turns)};
    if (!target_.take_pieces) return TakeWhole(waiting);
    target_.chats.insert(name);
    waiting_.push_back(std::move(waiting));
    bytes_ += session.bytes;
    if (bytes_ > kMuchMemory) return Finish();
    return bytes_ > kMostBytes || waiting_.size() >= kMost ? Begin() : Result<void>();
  }

  // Imports those that wait for others.
  Result<void> Finish() {
    return Begin().and_then([&] { return End(); });
  }

 private:
  static constexpr std::uint64_t kMostBytes = 8 << 20;    // that are in memory, twice, with what is made of them
  static constexpr std::uint64_t kMuchMemory = 16 << 20;  // nothing else is read beside these
  static constexpr std::size_t kMost = 64;
  struct Waiting {
    std::string source;
    std::string_view tool;
    ChatId chat;
    std::string earlier;
    std::shared_ptr<MovedTurns> turns;
  };

  // Begins to import those that wait, when the ones before them are imported.
  Result<void> Begin() {
    TRY(End());
    under_way_ = std::exchange(waiting_, {});
    bytes_ = 0;
    if (under_way_.empty()) return {};
    writer_ = std::jthread([this] {
      if (!Guarded("an import", [&] { taken_ = TakeEach(under_way_); })) {
        taken_.assign(under_way_.size(), Fail(ErrorCode::kInternal, "it went wrong"));
      }
    });
    return {};
  }

  // Waits for those that are under way.
  Result<void> End() {
    if (writer_.joinable()) writer_.join();
    for (std::size_t i = 0; i < under_way_.size(); ++i) Tell(under_way_[i], taken_[i]);
    under_way_.clear();
    return progress_.interrupted() ? Fail(ErrorCode::kCancelled, "interrupted") : Result<void>();
  }

  std::vector<Result<void>> TakeEach(std::span<const Waiting> all) {
    std::vector<Result<void>> taken(all.size(), Take(all));
    const bool alone = !taken.front() && all.size() > 1;  // what one of them lacks is no fault of the others
    for (std::size_t i = 0; alone && i < all.size() && !progress_.interrupted(); ++i) {
      taken[i] = Take(all.subspan(i, 1));
    }
    return taken;
  }

  // All of them or none.
  Result<void> Take(std::span<const Waiting> some) {
    std::vector<IncomingChat> chats;
    for (const Waiting& each : some) chats.push_back(ToIncomingChat(each.chat, each.turns));
    return target_.take_pieces(chats);
  }

  Result<void> TakeWhole(const Waiting& waiting) {
    const auto taken = waiting.turns->ReadAll(waiting.chat.str()).and_then([&](ForeignChat chat) {
      return target_.take_in(waiting.chat, /*may_have_another=*/false, std::move(chat)).map([](const ChatId&) {});
    });
    if (taken) target_.chats.insert(waiting.chat.str());
    Tell(waiting, taken);
    return progress_.interrupted() ? Fail(ErrorCode::kCancelled, "interrupted") : Result<void>();
  }

  void Tell(const Waiting& waiting, const Result<void>& taken) {
    if (progress_.interrupted()) return;
    if (!taken) return report_.Fail(waiting.source, taken.error());
    Imported imported{.chat = waiting.chat, .interactions = waiting.turns->size(), .notes = waiting.turns->Notes()};
    if (!waiting.earlier.empty()) {
      imported.notes.push_back("it has changed since it was imported as " + waiting.earlier + ", which stays");
    }
    report_.Add(waiting.source, imported, waiting.tool);
  }

  const Asked& asked_;
  Target& target_;
  Progress& progress_;
  Report& report_;
  std::vector<Waiting> waiting_;
  std::uint64_t bytes_ = 0;  // of those that wait
  std::vector<Waiting> under_way_;
  std::vector<Result<void>> taken_;  // of those under way, when writer_ has ended
  std::jthread writer_;
};

Result<void> ImportSessions(const Asked& asked, Target& target, const Environment& environment, Progress& progress,
                            Report& report) {
  SessionImport import(asked, target, progress, report);
  report.Add(TRY(ForEachForeignSession(
      asked.sessions, environment, [&](FoundSession session) { return import.Add(std::move(session)); },
      [&](const std::string& path, const Error& error) { report.Fail(path, error); })));
  return import.Finish();
}

Exited ImportAll(const Asked& asked, Target target, const Environment& environment, Progress& progress,
                 Report& report) {
  ImportChats(asked, target, progress, report);
  if (asked.has_sessions && !progress.interrupted()) {
    const auto imported = ImportSessions(asked, target, environment, progress, report);
    if (!imported && !progress.interrupted()) report.Fail(asked.sessions.from, imported.error());
  }
  progress.End();
  return report.Finish();
}

// Imports without a server.
Exited ImportHere(const Options& options, const std::shared_ptr<const KeySet>& keys, const Asked& asked,
                  const Environment& environment, WorkCounter& counter, Progress& progress, Report& report) {
  const auto bucket = TRY(ChatBucket::Open(options, counter.stop_token()));
  const auto take_new_files = [&](const std::string& root, FileSystem& file_system) -> Result<void> {
    return bucket ? bucket->TakeNewFiles(root, file_system) : Result<void>();
  };
  if (options.store.type == StoreOptions::Type::kPostgres) {
    const auto shared = TRY(SharedDatabase::Open({.url = options.store.url, .version = std::string(Version())}));
    const auto database = TRY(PostgresParts::Open(*shared, {.tenant = {}, .keys = keys, .bucket = FilesOf(bucket)}));
    TRY(take_new_files(DatabaseFiles::kRoot, database->store().files()));
    Target target{.take_in = IntoDatabase(*database, counter), .chats = {}};
    if (asked.has_sessions) {
      for (const ChatSummary& chat : TRY(database->store().ListChats())) target.chats.insert(chat.id.str());
    }
    return ImportAll(asked, std::move(target), environment, progress, report);
  }
  const auto folder = TRY(IncomingChats::Open(
      {.root = options.data_dir, .keys = keys, .file_system = Disk(), .counter = &counter, .bucket = FilesOf(bucket)}));
  TRY(take_new_files(options.data_dir, Disk()));
  NoteKeysOf(options.data_dir, keys.get());
  return ImportAll(asked, IntoFolder(folder, options.data_dir), environment, progress, report);
}

// In bytes, of a file or all files of a folder.
std::uint64_t SizeOf(const std::string& path) {
  std::error_code failed;
  if (IsFile(path)) return std::filesystem::file_size(path, failed);
  std::uint64_t size = 0;
  for (std::filesystem::recursive_directory_iterator each(path, failed), end; !failed && each != end;
       each.increment(failed)) {
    std::error_code none;
    if (each->is_regular_file(none)) size += each->file_size(none);
  }
  return size;
}

// Prints what an import would take: plain chats, then sessions, newest last in each file.
class Listing {
 public:
  Listing(const Asked& asked, const std::set<std::string>& chats, bool json)
      : asked_(asked), chats_(chats), json_(json) {}

  Exited PrintAll(const Environment& environment) {
    for (const std::string& source : asked_.chats) {
      const auto listed = AddChat(source);
      if (!listed) Refuse(listed.error());
    }
    PassedOver passed_over;
    if (asked_.has_sessions) {
      passed_over = TRY(ForEachForeignSession(
          asked_.sessions, environment, [&](const FoundSession& session) { return AddSession(session); },
          [&](const std::string&, const Error& error) { Refuse(error); }));
    }
    if (json_) PrintDocument({{"sessions", std::move(list_)}});
    if (passed_over.sessions > 0) Warn(Described(passed_over));
    if (count_ == 0 && !failed_) Warn("no session was found");
    return failed_ ? kExitFailure : kExitOk;
  }

 private:
  struct Entry {
    std::string tool, id, title, folder, source, chat;
    std::string comes_as{};  // the name that an import would give; empty: `chat`
    std::optional<Timestamp> updated;
    std::uint64_t bytes;
  };

  void Refuse(const Error& error) {
    failed_ = true;
    Complain(error);
  }
  Result<void> AddSession(const FoundSession& session) {
    const SessionFacts& facts = session.facts;
    const auto digest = session.digest();
    if (!digest) return Refuse(digest.error()), Result<void>();
    Add({.tool = std::string(session.format->name),
         .id = facts.id,
         .title = facts.title.empty() ? facts.first : facts.title,
         .folder = facts.folder,
         .source = session.source,
         .chat = NameOfMoved(session, *digest),
         .updated = facts.updated,
         .bytes = session.bytes});
    return {};
  }
  Result<void> AddChat(const std::string& source) {
    const ForeignChat chat = TRY(ReadForeignChat(source));
    const auto name = TRY(NameFor(chat, source, asked_.as));
    // It comes in as a new one, however often.
    const auto free = FreeName(name, /*may_have_another=*/asked_.as.empty(),
                               [this](const ChatId& id) { return taken_.contains(id.str()); });
    taken_.insert(free.str());
    const Interaction* const first = chat.interactions.empty() ? nullptr : &chat.interactions.front();
    Add({.tool = "reprise",
         .id = chat.name,
         .title = chat.title.empty() && first != nullptr ? first->user_message : chat.title,
         .folder = first == nullptr ? "" : chat.interactions.back().workspace,
         .source = source,
         .chat = name.str(),
         .comes_as = free.str(),
         .updated = chat.updated_at ? chat.updated_at : chat.created_at,
         .bytes = SizeOf(source)});
    return {};
  }
  void Add(const Entry& entry) {
    ++count_;
    const bool is_known = chats_.contains(entry.chat);
    const bool is_renamed = !entry.comes_as.empty() && entry.comes_as != entry.chat;
    if (json_) {
      list_.push_back({{"tool", entry.tool},
                       {"session_id", entry.id},
                       {"title", entry.title},
                       {"folder", entry.folder.empty() ? Json() : Json(entry.folder)},
                       {"updated_at", entry.updated ? Json(FormatTimestamp(*entry.updated)) : Json()},
                       {"bytes", entry.bytes},
                       {"source", entry.source},
                       {"chat_id", entry.chat},
                       {"imported", is_known}});
      if (is_renamed) list_.back()["comes_as"] = entry.comes_as;
      return;
    }
    constexpr std::size_t kTitle = 60, kName = 11, kSize = 9;
    Print(Padded(entry.tool, kName) + "  " + (entry.updated ? FormatForReading(*entry.updated) : "") + "  " +
          Padded(ReadableSize(entry.bytes), kSize) + "  " + VisibleLine(Shortened(entry.title, kTitle)) +
          (entry.folder.empty() ? "" : "  in " + VisibleLine(entry.folder)) +
          (is_renamed ? "  (comes in as " + entry.comes_as + ")" : std::string(is_known ? "  (imported)" : "")) + "\n");
  }

  const Asked& asked_;
  const std::set<std::string>& chats_;
  std::set<std::string> taken_ = chats_;  // with those that an import would make
  const bool json_;
  Json list_ = Json::array();
  std::size_t count_ = 0;
  bool failed_ = false;
};

void WarnOfOthers(const std::string& path, const std::vector<std::string>& others) {
  constexpr std::size_t kNamed = 5;
  if (others.empty()) return;
  std::string names;
  for (std::size_t i = 0; i < std::min(others.size(), kNamed); ++i) names += (i == 0 ? "" : ", ") + others[i];
  if (others.size() > kNamed) names += " and " + std::to_string(others.size() - kNamed) + " more";
  Warn(VisibleLine("passed over in " + path + ", because it is no chat: " + names));
}

// Sorts the paths into our own chats and sessions of other tools.
Result<Asked> Sort(const CommandLine& line, Report& report) {
  const MoveRequest& move = line.move;
  Asked asked{.chats = {}, .sessions = {.from = move.from, .paths = {}, .folder = move.folder}, .as = line.as};
  if (!move.since.empty()) {
    asked.sessions.since = ParseSince(move.since);
    if (!asked.sessions.since) {
      return Fail(ErrorCode::kInvalidArgument,
                  "--since: \"" + move.since + "\" is neither like 90d nor like 2026-01-31");
    }
  }
  asked.has_sessions = !move.from.empty();
  for (const std::string& path : line.arguments) {
    const auto found = move.from.empty() ? FindForeignChats(path) : FoundChats();
    // A folder that holds no chat but documents may be another tool's.
    const bool may_be_foreign =
        !found ? found.error().code == ErrorCode::kInvalidArgument : std::ranges::all_of(found->paths, IsFile);
    const auto holds = move.from.empty() && may_be_foreign ? HoldsForeignSessions(path) : false;
    if (!move.from.empty() || holds.value_or(false)) {
      asked.sessions.paths.push_back(path);
      asked.has_sessions = true;
    } else if (found) {
      for (const std::string& each : found->paths) {
        const bool is_session = each != path && IsFile(each) && HoldsForeignSessions(each).value_or(false);
        (is_session ? asked.sessions.paths : asked.chats).push_back(each);
        asked.has_sessions = asked.has_sessions || is_session;
      }
      WarnOfOthers(path, found->others);
    } else {
      report.Fail(path, holds ? found.error() : holds.error());
    }
  }
  return asked;
}

}  // namespace

Exited RunImport(const CommandLine& line, const Environment& environment) {
  if (line.arguments.empty() && line.move.from.empty()) return Misused("name a PATH, or a tool with --from");
  if (!line.as.empty() && !ChatId::Parse(line.as)) return Misused("--as: \"" + line.as + "\" cannot be a chat's name");
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  Report report(line.json);
  const Asked asked = TRY(OfUse(Sort(line, report)));
  const bool are_several = asked.chats.size() > 1 || asked.sessions.paths.size() > 1;
  if (!line.as.empty() && (are_several || HasSeveral(asked.sessions, environment, asked.chats.size()))) {
    return Misused("--as is for one chat, and there are several");
  }
  if (asked.is_empty()) return report.Finish();

  const auto server = TRY(OfUse(OpenServer(line.url, options, environment)));
  if (line.list) {
    const auto chats = server ? TRY(ChatsOf(*server)) : ChatsIn(options.data_dir);
    const int status = TRY(Listing(asked, chats, line.json).PrintAll(environment));
    return report.has_failed() ? kExitFailure : status;
  }
  WorkCounter counter;
  if (server) {
    Target target{.take_in = ThroughServer(*server, counter), .chats = {}};
    if (asked.has_sessions) target.chats = TRY(ChatsOf(*server));
    Progress progress(counter, environment);
    return ImportAll(asked, std::move(target), environment, progress, report);
  }
  const auto keys = TRY(KeysForServing(options));
  Progress progress(counter, environment);
  // Prints before the progress ends, because after a Ctrl-C that ends the process.
  return StatusOf(ImportHere(options, keys, asked, environment, counter, progress, report));
}

}  // namespace reprise
