#pragma once

#include <memory>
#include <optional>
#include <string>

#include "reprise/file_system.h"
#include "store/data_folder.h"

namespace reprise {

// Which instance of a database the last server of this data folder was. A server holds a lock while it runs. Whoever
// gets that lock knows that the last server has ended, and need not wait for the end of its lease.
class LastInstance {
 public:
  // Looks for the last one. What another machine has noted, or this one before it was last started, does not count:
  // the lock proves nothing there.
  static LastInstance Take(const std::string& data_folder, FileSystem& disk);

  // The last one, which has ended for sure; nullopt: that is not known.
  const std::optional<std::string>& ended() const { return ended_; }
  // Who it is now. Best effort: without it the next server waits for the lease.
  void Note(const std::string& instance) const;

 private:
  LastInstance(std::string file, FileSystem& disk) : file_(std::move(file)), disk_(disk) {}

  const std::string file_;
  FileSystem& disk_;
  std::unique_ptr<DirectoryLock> lock_;  // null: somebody else has it
  std::optional<std::string> ended_;
};

}  // namespace reprise
