#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/file_store.h"
#include "reprise/interaction.h"

namespace reprise {

// Files that go with a message, and what the model is told of them: the text of those that are text, the name, type and
// size of all.
struct Attached {
  std::vector<Attachment> files{};
  std::string text{};                // goes behind what the user wrote; empty without files
  std::vector<MessagePart> parts{};  // behind that
};

// kNotFound (reason "no_such_file") if one of them is not there; the failures of FileStore.
Result<Attached> AttachFiles(FileStore* store, const ChatId& chat, const std::vector<FileId>& ids);

// What was attached to a stored interaction, as the model was told then.
Attached AttachedTo(const Interaction& interaction);

// The files of a chat, kept in a store, which must outlive this.
class FilesInStore final : public FilesOfChat {
 public:
  FilesInStore(FileStore& store, ChatId chat) : store_(store), chat_(std::move(chat)) {}

  Result<FileListing> List() override { return store_.List(chat_); }
  Result<StoredFile> Get(const FileId& id) override { return store_.Get(chat_, id); }
  Result<FileInfo> Add(std::string_view filename, std::string_view mime_type, std::string content) override;
  Result<void> Delete(const FileId& id) override { return store_.Delete(chat_, id); }

 private:
  FileStore& store_;
  const ChatId chat_;
};

}  // namespace reprise
