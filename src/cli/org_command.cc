#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "app/factories.h"
#include "app/folders.h"
#include "app/keys.h"
#include "app/options.h"
#include "base/json.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/terminal_text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "people/api_tokens.h"
#include "remote/postgres/schema.h"
#include "store/data_folder.h"
#include "store/file_names.h"
#include "terminal/console.h"

namespace reprise {
namespace {

struct DeletedOrg {
  std::size_t users = 0, tokens = 0;
  bool had_folder = false;  // perhaps without users: what an earlier deletion left
};

Error NoSuchOrg(const std::string& org) {
  return MakeError(ErrorCode::kNotFound, "there is no organization " + VisibleLine(org) + " with chats or tokens here");
}

// Removes the key first, so that leftovers of a failure are unreadable.
Result<DeletedOrg> DeleteFolders(const Options& options, const std::string& org) {
  const std::string folder = OrgFolder(options.data_dir, org);
  DeletedOrg deleted{.had_folder = IsDirectory(folder)};
  for (const Principal& each : ListTenants(options.data_dir, Disk())) deleted.users += each.org == org ? 1 : 0;
  if (deleted.users == 0 && !deleted.had_folder) return deleted;
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
  return deleted;
}

Result<DeletedOrg> DeleteOrg(const Options& options, const std::string& org) {
  DeletedOrg deleted;
  if (options.store.type == StoreOptions::Type::kPostgres) {
    deleted.users = TRY(DeleteOrgRows(options.store.url, org));
  } else {
    deleted = TRY(DeleteFolders(options, org));
  }
  // Also where there are no chats (any more): a command that was cut off here is run again.
  const auto tokens = TRY(OpenTokens(options));
  const auto content = TRY(tokens->Read());
  for (const ApiToken& token : content.tokens) {
    if (token.principal.org != org) continue;
    TRY(tokens->Revoke(token.id));
    ++deleted.tokens;
  }
  if (deleted.users == 0 && deleted.tokens == 0 && !deleted.had_folder) return Fail(NoSuchOrg(org));
  return deleted;
}

}  // namespace

Exited RunOrgDelete(const CommandLine& line, const Environment& environment) {
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  if (!line.yes) {
    return Misused("this deletes all chats of the users of " + VisibleLine(line.argument) +
                   " for good, and the key that copies of them need; say --yes");
  }
  const auto deleted = TRY(DeleteOrg(options, line.argument));
  return PrintEither(line.json, {{"org", line.argument}, {"users", deleted.users}, {"tokens", deleted.tokens}},
                     "deleted " + VisibleLine(line.argument) + ": " + std::to_string(deleted.users) + " users, " +
                         std::to_string(deleted.tokens) + " tokens; copies of what they had cannot be read any more\n");
}

namespace {

Json Described(const ApiToken& token, const TokenUses& uses) {
  const auto used = uses.find(token.id);
  return {{"id", token.id},
          {"org", token.principal.org},
          {"user", token.principal.user},
          {"role", token.principal.role == Principal::Role::kOrgAdmin ? "org_admin" : "user"},
          {"name", token.name},
          {"created_at", FormatTimestamp(token.created_at)},
          {"expires_at", token.expires_at ? Json(FormatTimestamp(*token.expires_at)) : Json(nullptr)},
          {"last_used_at", used == uses.end() ? Json(nullptr) : Json(FormatTimestamp(used->second))}};
}

std::string Day(Timestamp time) { return FormatTimestamp(time).substr(0, std::string_view("2026-01-31").size()); }

std::string LineOf(const ApiToken& token, const TokenUses& uses) {
  const auto used = uses.find(token.id);
  const bool admin = token.principal.role == Principal::Role::kOrgAdmin;
  const std::string until = !token.expires_at            ? "until it is revoked"
                            : *token.expires_at <= Now() ? "EXPIRED " + Day(*token.expires_at)
                                                         : "until " + Day(*token.expires_at);
  return token.id + "  " + VisibleLine(token.principal.org + "/" + token.principal.user) +
         (admin ? " (org admin)" : "") + "  " + until + "  " +
         (used == uses.end() ? "never used" : "used " + Day(used->second)) +
         (token.name.empty() ? "" : "  " + VisibleLine(token.name));
}

}  // namespace

Exited RunTokenAdd(const CommandLine& line, const Environment& environment) {
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  using Role = Principal::Role;
  std::optional<Timestamp> expires;
  if (line.token.expires_days > 0) expires = Now() + std::chrono::days(line.token.expires_days);
  const auto tokens = TRY(OpenTokens(options));
  const auto made = TRY(tokens->Add(
      {.role = line.token.org_admin ? Role::kOrgAdmin : Role::kUser, .org = line.token.org, .user = line.argument},
      line.token.name, expires));
  Json json = Described(made.token, {});
  json["token"] = made.text;
  if (PrintEither(line.json, json, made.text + "\n"); line.json) return kExitOk;
  if (!options.auth.has_people()) Warn("no \"auth\" is configured, so no server asks for this token (docs: people.md)");
  return kExitOk;
}

Exited RunTokenList(const CommandLine& line, const Environment& environment) {
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  const auto tokens = TRY(OpenTokens(options));
  const auto content = TRY(tokens->Read());
  const TokenUses uses = tokens->ReadUses();
  Json list = Json::array();
  for (const ApiToken& token : content.tokens) {
    list.push_back(Described(token, uses));
    if (!line.json) Print(LineOf(token, uses) + "\n");
  }
  if (line.json) PrintDocument({{"tokens", list}});
  if (!line.json && list.empty()) Warn("there is no token yet (`reprise users token add` makes one)");
  return kExitOk;
}

Exited RunTokenRevoke(const CommandLine& line, const Environment& environment) {
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  const auto tokens = TRY(OpenTokens(options));
  const auto revoked = TRY(tokens->Revoke(line.argument));
  return PrintEither(
      line.json, {{"revoked", revoked.id}},
      "revoked " + revoked.id + " of " + VisibleLine(revoked.principal.org + "/" + revoked.principal.user) + "\n");
}

}  // namespace reprise
