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

// Where stored chats are read: the data folder, or a database that looks like one. Whoever reads does not tell them
// apart.
class ChatSource {
 public:
  // What keeps a database from being used; a folder is not looked at yet.
  static Result<ChatSource> Open(const Options& options);

  const std::string& root() const { return root_; }
  FileSystem& file_system() const;

  // What each user of a database has, as a data folder, with the keys for it: by those of the operator (null: plain).
  // Without what is the operator's own. None if it is a folder: there each has their own.
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
  std::unique_ptr<DatabaseFiles> files_;  // null: it is a folder
};

}  // namespace reprise
