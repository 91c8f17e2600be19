#include "base/atomic_write.h"

#include "base/random.h"

namespace reprise {
namespace {

std::string TemporaryPath(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  return path.substr(0, name) + "." + path.substr(name) + "." + RandomHex(8) + ".tmp";
}

Result<void> WriteNewFile(FileSystem& file_system, const std::string& path, std::string_view content,
                          Durability durability) {
  auto file = file_system.CreateFile(path);
  if (!file) return Fail(std::move(file.error()));
  auto written = (*file)->Append(content);
  if (written && durability == Durability::kSynced) written = (*file)->Sync();
  return written.and_then([&] { return (*file)->Close(); });
}

}  // namespace

std::string ParentDirectory(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Result<void> ReplaceFile(FileSystem& file_system, const std::string& path, std::string_view content,
                         Durability durability) {
  const std::string temporary = TemporaryPath(path);
  auto written = WriteNewFile(file_system, temporary, content, durability).and_then([&] {
    return file_system.Rename(temporary, path);
  });
  // Whether this succeeds does not matter: a leftover is ignored by every reader.
  if (!written) static_cast<void>(file_system.RemoveFile(temporary));
  return written;
}

Result<bool> CreateDirectories(FileSystem& file_system, const std::string& path) {
  const std::string parent = ParentDirectory(path);
  if (parent != path) {
    if (auto above = CreateDirectories(file_system, parent); !above) return above;
  }
  auto created = file_system.CreateDirectory(path);
  if (!created) return created;
  // Also what was there: the process that made it may have died before it synced the name. Of a directory that is not
  // ours the kernel may refuse it; then it was not us who made something in it either.
  auto synced = file_system.SyncDirectory(parent);
  if (*created && !synced) return Fail(std::move(synced.error()));
  return created;
}

}  // namespace reprise
