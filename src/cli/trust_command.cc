#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/instruction_files.h"
#include "app/options.h"
#include "app/prompt_files.h"
#include "app/trust.h"
#include "base/atomic_write.h"
#include "base/json.h"
#include "base/path.h"
#include "base/private_file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "crypto/digest.h"
#include "terminal/console.h"

namespace reprise {
namespace {

TrustedFiles ListOf(const Environment& environment) {
  const auto folder = ConfigFolder(environment);
  return TrustedFiles(folder ? *folder + "/" + kTrustedFileName : "");
}

// Whether an allowed file still exists with the same content.
std::string_view StateOf(const std::string& path, const std::string& digest) {
  std::error_code failed;
  if (std::filesystem::is_directory(path, failed)) return "allowed";
  const auto now = Sha256OfFile(path);
  if (!now) return "gone";
  return *now == digest ? "allowed" : "changed";
}

Exited PrintList(const TrustedFiles& trusted, bool json) {
  const auto files = TRY(trusted.Read());
  Json list = Json::array();
  for (const auto& [path, digest] : files) {
    const std::string state(StateOf(path, digest));
    list.push_back({{"path", path}, {"digest", digest}, {"state", state}});
    if (!json) Print(state + std::string(9 - state.size(), ' ') + VisibleLine(path) + "\n");
  }
  if (json) PrintDocument({{"files", list}});
  if (!json && list.empty()) Warn("no file is allowed yet (`reprise trust FILE` allows one)");
  return kExitOk;
}

Exited Revoke(const TrustedFiles& trusted, const std::string& path) {
  std::error_code failed;
  const std::string place = std::filesystem::is_directory(path, failed) ? Resolved(path).string() : PlaceOf(path);
  const auto revoked = TRY(trusted.Revoke(place));
  if (!revoked) return Complain(MakeError(ErrorCode::kNotFound, path + " was not allowed"));
  Print("no longer allowed: " + VisibleLine(place) + "\n");
  return kExitOk;
}

// A configuration, and the workspace files that it names.
Result<FileDigests> TakeConfig(const CommandLine& line, const Environment& environment, const std::string& path) {
  // Digested before it is parsed, and again at the end, so that the shown content is the allowed one.
  auto digest = TRY(Sha256OfFile(path));
  Flags flags = line.flags;
  // A folder's file is shown for that folder. With another workspace it is a configuration that will be named.
  const std::string folder = ParentDirectory(PlaceOf(path));
  const auto other = flags.find("workspace");
  const bool is_folders = std::filesystem::path(path).filename() == kDefaultConfigFile &&
                          folder != Resolved(ConfigFolder(environment).value_or("")).string() &&
                          (other == flags.end() || Resolved(other->second).string() == folder);
  is_folders ? flags.insert_or_assign("workspace", folder) : flags.insert_or_assign("config", path);
  const auto options = TRY(LoadOptions(flags, environment, LoadedFor::kShowing));
  auto files = FilesToTrust(options);
  if (!files) return files;
  Print(VisibleLine(PlaceOf(path)) + "\n" + WhatItWouldDo(options, *files));
  const auto now = Sha256OfFile(path);
  if (!now || *now != digest) return Fail(ErrorCode::kConflict, path + " is being changed; try again");
  files->emplace(PlaceOf(path), std::move(digest));
  return files;
}

// Shows the part of a skill that models will get.
void ShowSkill(const std::string& path) {
  const auto text = ReadSmallFile(path, kMaxSkillFile);
  const auto head = text ? ReadSkillHead(ToValidUtf8(*text)) : Result<SkillHead>(Fail(text.error()));
  Print(head ? "  the skill " + head->name + ": " + VisibleLine(head->description) + "\n"
             : "  it cannot be used: " + VisibleLine(head.error().message) + "\n");
}

// Says so if models will get nothing of the file.
void ShowInstructions(const std::string& path) {
  const auto text = ReadSmallFile(path, kMaxInstructionFile);
  const std::string why = !text ? text.error().message : IsUtf8(*text) ? "" : path + " is not valid UTF-8";
  if (!why.empty()) Print("  it cannot be used: " + VisibleLine(why) + "\n");
}

Result<FileDigests> Take(const CommandLine& line, const Environment& environment, const std::string& path) {
  std::error_code failed;
  if (std::filesystem::is_directory(path, failed)) {
    if (IsHomeFolder(path, environment)) return FolderToTrust(path);
    return Fail(ErrorCode::kInvalidArgument, path + " is a folder; only your home folder must be allowed as a whole");
  }
  if (path.ends_with(".json")) return TakeConfig(line, environment, path);
  auto digest = TRY(Sha256OfFile(path));
  Print(VisibleLine(PlaceOf(path)) + "\n");
  const std::string name = std::filesystem::path(path).filename().string();
  if (name == kSkillName) ShowSkill(path);
  if (name == kInstructionsName || std::ranges::count(kOtherInstructions, name) > 0) ShowInstructions(path);
  return FileDigests{{PlaceOf(path), std::move(digest)}};
}

}  // namespace

Exited RunTrust(const CommandLine& line, const Environment& environment) {
  const TrustedFiles trusted = ListOf(environment);
  if (line.list) return PrintList(trusted, line.json);
  if (!line.revoke.empty()) return Revoke(trusted, line.revoke);
  std::vector<std::string> paths = line.arguments;
  if (paths.empty()) paths.push_back(environment("REPRISE_CONFIG").value_or(kDefaultConfigFile));
  FileDigests all;
  for (const std::string& path : paths) {
    auto files = Take(line, environment, path);
    if (!files) {
      Complain(files.error());
      return files.error().code == ErrorCode::kInvalidArgument ? kExitUsage : kExitFailure;
    }
    all.merge(*files);
  }
  TRY(trusted.Allow(all));
  Print("allowed as " + std::string(all.size() == 1 ? "it is" : "they are") +
        " now; a change asks again (reprise trust --list, --revoke FILE)\n");
  return kExitOk;
}

}  // namespace reprise
