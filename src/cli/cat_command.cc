#include "cli/cat_command.h"

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "base/posix_file_system.h"
#include "cli/chat_reader.h"
#include "cli/console.h"
#include "cli/key_access.h"
#include "domain/codec.h"
#include "store/record.h"

namespace reprise {
namespace {

int CatRecord(InteractionStore& store, const RecordReference& what) {
  if (what.interaction) {
    const auto interaction = store.LoadInteraction(what.chat, *what.interaction);
    if (!interaction) return Complain(interaction.error());
    Print(DumpJson(ToJson(*interaction)) + "\n");
    return kExitOk;
  }
  const auto chat = store.LoadChat(what.chat);
  if (!chat) return Complain(chat.error());
  Print(DumpJson(ChatToJson(*chat, /*all_branches=*/true)) + "\n");
  ComplainOfDamage(*chat);
  return chat->damaged.empty() ? kExitOk : kExitFailure;
}

bool IsFile(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool HasChat(InteractionStore& store, const ChatId& chat) {
  const auto summary = store.LoadSummary(chat);
  return summary || summary.error().code != ErrorCode::kNotFound;
}

int CatFile(const std::string& path, const CommandLine& line, const Environment& environment) {
  const auto options = LoadOptions(line.flags, environment);
  if (!options) return Complain(options.error());
  PosixFileSystem disk;
  const auto keys = LoadKeyFile(KeyFileOf(*options), disk, PassphraseFrom(*options));
  if (!keys && keys.error().code != ErrorCode::kNotFound) return Complain(keys.error());
  const auto record = ReadRecordFile(path, keys ? &*keys : nullptr, disk);
  if (!record && record.error().code == ErrorCode::kNotFound) {
    return Complain(MakeError(ErrorCode::kNotFound, "there is no file " + path));
  }
  if (!record) return Complain(record.error());
  Print(record->plaintext + (record->plaintext.ends_with('\n') ? "" : "\n"));
  return kExitOk;
}

}  // namespace

int RunCat(const CommandLine& line, const Environment& environment) {
  // What reads like a chat's id is one, unless only a file has that name.
  if (const auto what = ParseReference(line.argument)) {
    auto reader = ChatReader::Open(line, environment);
    const bool is_file = IsFile(line.argument);
    if (!reader && !is_file) return Complain(reader.error());
    if (reader && (!is_file || HasChat(reader->store(), what->chat))) return CatRecord(reader->store(), *what);
  }
  return CatFile(line.argument, line, environment);
}

}  // namespace reprise
