#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/history.h"
#include "reprise/audio.h"
#include "reprise/document_reader.h"
#include "reprise/file_store.h"
#include "reprise/interaction.h"

namespace reprise {

// The files of a message as the model sees them: the text of text files, the name, type and size of all, and message
// parts for the others.
struct Attached {
  std::vector<Attachment> files{};
  std::string text{};                // follows the user's text; empty without files
  std::vector<MessagePart> parts{};  // follow `text`
  std::string documents{};           // the text of documents among the parts; for guardrails, not stored
};

// The services that attach files. All may be null.
struct AttachmentServices {
  FileStore* files;
  DocumentReader* documents;
  Audio* audio;
};

// kNotFound (reason "no_such_file") if one is missing; the failures of FileStore.
Result<void> FindFiles(FileStore* store, const ChatId& chat, const std::vector<FileId>& ids);

// Fails like FindFiles. `recipient` says what the model takes; each file's note says what the model does not get. Reads
// documents and transcribes recordings where needed and possible, and blocks meanwhile.
Result<Attached> AttachFiles(const AttachmentServices& services, const ChatId& chat, const std::vector<FileId>& ids,
                             const PartRecipient& recipient);

// The attachments of a stored interaction, as the model was told of them then.
Attached AttachedTo(const Interaction& interaction);

// Writes these notes again for another model, and transcribes recordings that it does not take.
void NoteFor(const AttachmentServices& services, const ChatId& chat, const PartRecipient& recipient,
             Attached& attached);

// Stores a file unless the chat has one of the same name, type and content, whose info it then returns.
Result<FileInfo> KeepOnce(FileStore& store, const ChatId& chat, StoredFile file);

// The files of a chat in a store, which must outlive this.
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
