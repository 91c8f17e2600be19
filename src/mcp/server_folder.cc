#include "mcp/server_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/posix_file_system.h"
#include "base/try.h"

namespace reprise {

Result<ServerFolder> ServerFolder::Make(const std::string& parent, const std::string& name) {
  if (parent.empty()) {
    return Fail(ErrorCode::kUnavailable,
                "there is no folder outside the workspace to start it in; give mcpServers." + name + ".cwd");
  }
  std::string path = parent + "/" + name + ".XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) {
    return Fail(ErrorCode::kUnavailable, "its folder cannot be made: " + std::generic_category().message(errno),
                parent);
  }
  ServerFolder folder(std::move(path));
  PosixFileSystem disk;
  TRY(disk.CreateFile(folder.path_ + "/package.json").and_then([](std::unique_ptr<WritableFile> file) {
    return file->Append("{}\n").and_then([&] { return file->Close(); });
  }));
  return folder;
}

ServerFolder::ServerFolder(ServerFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

ServerFolder::~ServerFolder() {
  std::error_code ignored;  // it is empty, or what a server has left there
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace reprise
