#include "app/trusted_files.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/private_file.h"
#include "base/try.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxList = 4u << 20;
constexpr std::chrono::seconds kLongestWait{10};  // for another writer

Error Damaged(const std::string& path) {
  return MakeError(ErrorCode::kCorruption,
                   path + " is damaged; remove it, and allow your files again with `reprise trust`");
}

bool IsDigest(const Json& value) {
  if (!value.is_string()) return false;
  const std::string_view text = value.get_ref<const std::string&>();
  return text.starts_with("sha256:") && text.size() == 7 + 64;
}

}  // namespace

Result<FileDigests> TrustedFiles::Read() const {
  if (path_.empty()) return FileDigests();
  std::error_code failed;
  if (fs::is_symlink(path_, failed)) {
    // Its target may lie where tools write.
    return Fail(ErrorCode::kForbidden, path_ + " is a symbolic link; put the file itself there");
  }
  const auto text = ReadOwnFile(path_, kMaxList);
  if (!text && text.error().code == ErrorCode::kNotFound) return FileDigests();
  if (!text) return Fail(text.error());
  const auto json = ParseJson(*text);
  if (!json || !json->is_object() || json->value("schema", Json()) != 1 || !json->contains("files") ||
      !json->at("files").is_object()) {
    return Fail(Damaged(path_));
  }
  FileDigests files;
  for (const auto& [path, digest] : json->at("files").items()) {
    if (!IsDigest(digest)) return Fail(Damaged(path_));
    files[path] = digest.get<std::string>();
  }
  return files;
}

Result<void> TrustedFiles::Allow(const FileDigests& files) const {
  const auto alone = TRY(FolderLock::Take(ParentDirectory(path_), kLongestWait));
  auto all = TRY(Read());
  for (const auto& [path, digest] : files) all[path] = digest;
  return Write(all);
}

Result<bool> TrustedFiles::Revoke(const std::string& path) const {
  const auto alone = TRY(FolderLock::Take(ParentDirectory(path_), kLongestWait));
  auto all = TRY(Read());
  if (all.erase(path) == 0) return false;
  return Write(all).map([] { return true; });
}

Result<void> TrustedFiles::Write(const FileDigests& files) const {
  if (path_.empty()) {
    return Fail(ErrorCode::kUnavailable, "there is no place for the list of allowed files (HOME is not set)");
  }
  PosixFileSystem disk;
  Json list = Json::object();
  for (const auto& [path, digest] : files) list[path] = digest;
  const std::string text = DumpJsonPretty({{"schema", 1}, {"files", std::move(list)}}) + "\n";
  const std::string folder = ParentDirectory(path_);
  return CreateDirectories(disk, folder).and_then([&](bool) { return ReplaceFile(disk, path_, text); }).and_then([&] {
    return disk.SyncDirectory(folder);
  });
}

std::optional<std::string> ConfigFolder(const Environment& environment) {
  // By the XDG rule a relative path counts as not set.
  const auto absolute = [&](const char* name) {
    auto value = environment(name);
    return value && value->starts_with('/') ? value : std::nullopt;
  };
  if (const auto config = absolute("XDG_CONFIG_HOME")) return *config + "/reprise";
  if (const auto home = absolute("HOME")) return *home + "/.config/reprise";
  return std::nullopt;
}

std::string PlaceOf(const std::string& path) {
  std::error_code failed;
  const fs::path absolute = fs::absolute(path, failed);
  const fs::path folder = fs::weakly_canonical(absolute.parent_path(), failed);
  return failed ? absolute.lexically_normal().string() : (folder / absolute.filename()).string();
}

bool OpenToTools(const std::string& path, const std::string& workspace, const std::string& config_folder) {
  std::error_code failed;
  const fs::path root = fs::canonical(workspace, failed);
  if (failed) return false;  // no workspace, so no tools
  const fs::path absolute = fs::absolute(path, failed);
  if (!LeadsInto(absolute, root)) return false;
  if (config_folder.empty()) return true;
  const fs::path closed = fs::weakly_canonical(config_folder, failed);
  return failed || !LiesBeneath(fs::weakly_canonical(absolute, failed), closed);
}

}  // namespace reprise
