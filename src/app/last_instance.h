#pragma once

#include <memory>
#include <optional>
#include <string>

#include "reprise/file_system.h"
#include "store/data_folder.h"

namespace reprise {

// Knows which instance of a database the last server of this data folder was. A server holds a lock while it runs, so a
// server that gets the lock knows that the last one has ended, and need not wait for the end of its lease.
class LastInstance {
 public:
  // Looks for the last one. Ignores notes of another machine, and of this machine before its last boot, because the
  // lock proves nothing about them.
  static LastInstance Take(const std::string& data_folder, FileSystem& disk);

  // The last instance, which has certainly ended; nullopt if that is unknown.
  const std::optional<std::string>& ended() const { return ended_; }
  // Notes the present instance. Best effort: without the note, the next server waits for the lease.
  void Note(const std::string& instance) const;

 private:
  LastInstance(std::string file, FileSystem& disk) : file_(std::move(file)), disk_(disk) {}

  const std::string file_;
  FileSystem& disk_;
  std::unique_ptr<DirectoryLock> lock_;  // null if another process has it
  std::optional<std::string> ended_;
};

}  // namespace reprise
