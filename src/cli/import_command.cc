#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/chat_bucket.h"
#include "app/embedded.h"
#include "app/keys.h"
#include "base/posix_file_system.h"
#include "base/terminal_text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "client/archive/chat_folder.h"
#include "client/archive/chat_reader.h"
#include "client/server_access.h"
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

// Imports in this process, which has the data folder's lock.
TakeIn IntoFolder(const IncomingChats& folder) {
  return [&folder](const ChatId& name, bool may_have_another, ForeignChat foreign) -> Result<ChatId> {
    ChatId free = name;
    for (int number = 2; may_have_another && folder.Has(free); ++number) free = NumberedName(name, number);
    return folder.Add(ToIncomingChat(free, std::move(foreign))).map([&] { return free; });
  };
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

// `as` may be empty. `expecting` gets the number of things to import; may be null.
Result<Imported> Import(const std::string& path, const std::string& as, const TakeIn& take_in, Progress* expecting) {
  auto foreign = TRY(ReadForeignChat(path));
  const auto name = ChatId::Parse(as.empty() ? foreign.name : as);
  if (!name) {
    return Fail(ErrorCode::kInvalidArgument,
                path + ": \"" + foreign.name + "\" cannot be a chat's name here; give it one with --as");
  }
  const std::size_t interactions = foreign.interactions.size();
  std::vector<std::string> notes = foreign.notes;
  if (expecting != nullptr) expecting->Expect(interactions + foreign.files.size());
  return take_in(*name, as.empty(), std::move(foreign)).map([&](const ChatId& chat) {
    return Imported{chat, interactions, std::move(notes)};
  });
}

// Imports in this process, into a database that others may use meanwhile.
TakeIn IntoDatabase(PostgresParts& database, WorkCounter& counter) {
  return [&](const ChatId& name, bool may_have_another, ForeignChat foreign) -> Result<ChatId> {
    ChatId free = name;
    for (int number = 2; may_have_another && database.store().LoadSummary(free); ++number) {
      free = NumberedName(name, number);
    }
    const IncomingChat chat = ToIncomingChat(free, std::move(foreign));
    TRY(database.store().ImportChat(chat));
    TRY(CountStep(&counter));
    return free;
  };
}

class Report {
 public:
  explicit Report(bool json) : json_(json) {}

  void Add(const std::string& source, const Imported& imported) {
    list_.push_back({{"source", source},
                     {"chat_id", imported.chat.str()},
                     {"interactions", imported.interactions},
                     {"notes", imported.notes}});
    interactions_ += imported.interactions;
    if (json_) return;
    Print(imported.chat.str() + "  " + std::to_string(imported.interactions) +
          (imported.interactions == 1 ? " interaction" : " interactions") + " from " + VisibleLine(source) + "\n");
    for (const std::string& note : imported.notes) Print("  " + VisibleLine(note) + "\n");
  }
  void Fail(const std::string& source, const Error& error) {
    failed_.push_back({{"source", source}, {"message", error.message}});
    Complain(error);
  }
  int Finish() const {
    if (json_) {
      Print(DumpJson(Json{{"imported", list_}, {"failed", failed_}}) + "\n");
    } else if (list_.size() > 1) {
      Print(std::to_string(list_.size()) + " chats imported, with " + std::to_string(interactions_) +
            " interactions\n");
    }
    return failed_.empty() ? kExitOk : kExitFailure;
  }

 private:
  const bool json_;
  Json list_ = Json::array(), failed_ = Json::array();
  std::size_t interactions_ = 0;
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

int ImportAll(const std::vector<std::string>& sources, const std::string& as, const TakeIn& take_in, Progress& progress,
              Report& report) {
  LongTask task{.doing = "importing", .things = "interactions and files", .steps_each = 2};
  if (progress.is_shown()) task.total = CountAll(sources);
  const bool expects = task.total == 0 && sources.size() == 1;
  progress.Begin(std::move(task));
  for (const std::string& source : sources) {
    const auto imported = Import(source, as, take_in, expects ? &progress : nullptr);
    if (progress.interrupted()) break;
    imported ? report.Add(source, *imported) : report.Fail(source, imported.error());
  }
  progress.End();
  return report.Finish();
}

// Imports without a server.
Exited ImportHere(const Options& options, const std::shared_ptr<const KeySet>& keys,
                  const std::vector<std::string>& sources, const std::string& as, WorkCounter& counter,
                  Progress& progress, Report& report) {
  const auto bucket = TRY(ChatBucket::Open(options, counter.stop_token()));
  const auto take_new_files = [&](const std::string& root, FileSystem& file_system) -> Result<void> {
    return bucket ? bucket->TakeNewFiles(root, file_system) : Result<void>();
  };
  if (options.store.type == StoreOptions::Type::kPostgres) {
    const auto shared = TRY(SharedDatabase::Open({.url = options.store.url, .version = std::string(Version())}));
    const auto database = TRY(PostgresParts::Open(*shared, {.tenant = {}, .keys = keys, .bucket = FilesOf(bucket)}));
    TRY(take_new_files(DatabaseFiles::kRoot, database->store().files()));
    return ImportAll(sources, as, IntoDatabase(*database, counter), progress, report);
  }
  const auto folder = TRY(IncomingChats::Open(
      {.root = options.data_dir, .keys = keys, .file_system = Disk(), .counter = &counter, .bucket = FilesOf(bucket)}));
  TRY(take_new_files(options.data_dir, Disk()));
  NoteKeysOf(options.data_dir, keys.get());
  return ImportAll(sources, as, IntoFolder(folder), progress, report);
}

}  // namespace

Exited RunImport(const CommandLine& line, const Environment& environment) {
  if (!line.as.empty() && !ChatId::Parse(line.as)) return Misused("--as: \"" + line.as + "\" cannot be a chat's name");
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  Report report(line.json);
  std::vector<std::string> sources;
  for (const std::string& path : line.arguments) {
    const auto found = FindForeignChats(path);
    if (found) {
      sources.insert(sources.end(), found->begin(), found->end());
    } else {
      report.Fail(path, found.error());
    }
  }
  if (!line.as.empty() && sources.size() > 1) return Misused("--as is for one chat, and there are several");
  if (sources.empty()) return report.Finish();

  const auto server = TRY(OfUse(OpenServer(line.url, options, environment)));
  WorkCounter counter;
  if (server) {
    Progress progress(counter, environment);
    return ImportAll(sources, line.as, ThroughServer(*server, counter), progress, report);
  }
  const auto keys = TRY(KeysForServing(options));
  Progress progress(counter, environment);
  // Prints before the progress ends, because after a Ctrl-C that ends the process.
  return StatusOf(ImportHere(options, keys, sources, line.as, counter, progress, report));
}

}  // namespace reprise
