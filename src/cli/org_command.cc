#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "app/factories.h"
#include "app/folders.h"
#include "app/keys.h"
#include "app/options.h"
#include "base/json.h"
#include "base/posix_file_system.h"
#include "base/terminal_text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "remote/postgres/schema.h"
#include "store/data_folder.h"
#include "store/file_names.h"
#include "terminal/console.h"

namespace reprise {
namespace {

struct DeletedOrg {
  std::size_t users = 0, tokens = 0;
};

Error NoSuchOrg(const std::string& org) {
  return MakeError(ErrorCode::kNotFound, "there is no organization " + VisibleLine(org) + " with chats here");
}

// Removes the key first, so that leftovers of a failure are unreadable.
Result<std::size_t> DeleteFolders(const Options& options, const std::string& org) {
  const std::string folder = OrgFolder(options.data_dir, org);
  std::size_t users = 0;
  for (const Principal& each : ListTenants(options.data_dir, Disk())) users += each.org == org ? 1 : 0;
  if (users == 0) return Fail(NoSuchOrg(org));
  auto lock = DirectoryLock::Acquire(LockFile(options.data_dir));
  if (!lock && lock.error().code == ErrorCode::kConflict) {
    lock.error().message =
        "an organization cannot be deleted while a server runs; stop it first: " + lock.error().message;
  }
  if (!lock) return Fail(std::move(lock.error()));
  TRY(RemoveOrgKey(folder, Disk()));
  std::error_code failed;
  std::filesystem::remove_all(folder, failed);
  if (failed) return Fail(ErrorCode::kIo, "not all of " + folder + " could be deleted: " + failed.message());
  return users;
}

Result<std::size_t> DeleteRows(const Options& options, const std::string& org) {
  const auto users = TRY(DeleteOrgRows(options.store.url, org));
  if (users == 0) return Fail(NoSuchOrg(org));
  return users;
}

Result<DeletedOrg> DeleteOrg(const Options& options, const std::string& org) {
  DeletedOrg deleted;
  deleted.users =
      TRY(options.store.type == StoreOptions::Type::kPostgres ? DeleteRows(options, org) : DeleteFolders(options, org));
  const auto tokens = TRY(OpenTokens(options));
  const auto content = TRY(tokens->Read());
  for (const ApiToken& token : content.tokens) {
    if (token.principal.org != org) continue;
    TRY(tokens->Revoke(token.id));
    ++deleted.tokens;
  }
  return deleted;
}

}  // namespace

int RunOrgDelete(const CommandLine& line, const Environment& environment) {
  const auto options = LoadOptions(line.flags, environment);
  if (!options) return ComplainOfUse(options.error());
  if (!line.yes) {
    return Misused("this deletes all chats of the users of " + VisibleLine(line.argument) +
                   " for good, and the key that copies of them need; say --yes");
  }
  const auto deleted = DeleteOrg(*options, line.argument);
  if (!deleted) return Complain(deleted.error());
  if (line.json) {
    Print(DumpJson(Json{{"org", line.argument}, {"users", deleted->users}, {"tokens", deleted->tokens}}) + "\n");
  } else {
    Print("deleted " + VisibleLine(line.argument) + ": " + std::to_string(deleted->users) + " users, " +
          std::to_string(deleted->tokens) + " tokens; copies of what they had cannot be read any more\n");
  }
  return kExitOk;
}

}  // namespace reprise
