#include "app/last_instance.h"

#include <fstream>
#include <utility>

#include "base/atomic_write.h"
#include "base/logging.h"

namespace reprise {
namespace {

constexpr std::uint64_t kMostNoteBytes = 256;

// The id of this machine's present boot (random(4)); empty if there is none.
std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace

LastInstance LastInstance::Take(const std::string& data_folder, FileSystem& disk) {
  LastInstance last(data_folder + "/.instance", disk);
  auto lock = DirectoryLock::Acquire(data_folder + "/.instance_lock");
  if (!lock) return last;
  last.lock_ = *std::move(lock);
  const auto text = disk.ReadFile(last.file_, kMostNoteBytes);
  const std::string boot = BootId();
  if (!text || boot.empty() || !text->starts_with(boot + "\n") || !text->ends_with("\n")) return last;
  last.ended_ = text->substr(boot.size() + 1, text->size() - boot.size() - 2);
  return last;
}

void LastInstance::Note(const std::string& instance) const {
  if (!lock_) return;
  if (auto noted = ReplaceFile(disk_, file_, BootId() + "\n" + instance + "\n"); !noted) {
    LogWarning("this server's instance could not be noted", {{"detail", noted.error().message}});
  }
}

}  // namespace reprise
