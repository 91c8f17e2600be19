#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "crypto/key_set.h"
#include "postgres/database.h"
#include "postgres/database_files.h"
#include "reprise/file_system.h"
#include "reprise/options.h"
#include "reprise/principal.h"
#include "reprise/result.h"

namespace reprise {

// The source of stored chats: the data folder, or a database that looks like one to readers.
class ChatSource {
 public:
  // Fails if the database is unusable; does not look at a folder yet.
  static Result<ChatSource> Open(const Options& options);

  const std::string& root() const { return root_; }
  FileSystem& file_system() const;

  // The data of each user of a database, as a data folder, with its keys, derived from the operator's (null: plain).
  // Without the operator's own data. Empty for a folder, where each user has a folder.
  struct OfUser {
    Principal user;
    std::unique_ptr<DatabaseFiles> files;
    Result<std::shared_ptr<const KeySet>> keys;
  };
  Result<std::vector<OfUser>> OfUsers(const KeySet* operators) const;

 private:
  explicit ChatSource(std::string root) : root_(std::move(root)) {}

  std::string root_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<DatabaseFiles> files_;  // null for a folder
};

}  // namespace reprise
