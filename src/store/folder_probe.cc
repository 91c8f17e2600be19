#include "store/folder_probe.h"

#include "base/random.h"
#include "base/try.h"

namespace reprise {

Result<void> ProbeFolder(FileSystem& file_system, const std::string& folder) {
  constexpr std::size_t kBytes = 16 * 1024;
  const std::string path = folder + "/.probe." + RandomHex(8) + ".tmp";  // a temporary name: nobody reads it
  auto file = TRY(file_system.CreateFile(path));
  auto written = file->Append(std::string(kBytes, '\0'));
  if (written) written = file->Sync();
  const auto closed = file->Close();
  if (written) written = closed;
  const auto removed = file_system.RemoveFile(path);
  return written ? removed : written;
}

}  // namespace reprise
