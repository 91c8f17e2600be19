#include "tools/own_program.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace reprise {

std::string FindOwnProgram(std::string_view name) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& place :
       {folder, folder / ".." / "libexec" / "reprise", folder / "..", fs::path(REPRISE_LIBEXEC)}) {
    const fs::path real = fs::canonical(place / name, error);
    if (!error && ::access(real.c_str(), X_OK) == 0) return real.string();
  }
  return {};
}

}  // namespace reprise
