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

// Files that go with a message, and what the model is told of them: the text of those that are text, the name, type and
// size of all, and the parts of the message that the others are.
struct Attached {
  std::vector<Attachment> files{};
  std::string text{};                // goes behind what the user wrote; empty without files
  std::vector<MessagePart> parts{};  // behind that
  std::string documents{};  // what the model is told of documents among the parts; for guardrails, kept nowhere
};

// What files are attached with. All may be null.
struct AttachmentServices {
  FileStore* files;
  DocumentReader* documents;
  Audio* audio;
};

// kNotFound (reason "no_such_file") if one of them is not there; the failures of FileStore.
Result<void> FindFiles(FileStore* store, const ChatId& chat, const std::vector<FileId>& ids);

// Likewise. Notes with each file what a model does not get that takes what `recipient` says: reads documents for it,
// and blocks meanwhile. A recording that it does not take is transcribed, if somebody can.
Result<Attached> AttachFiles(const AttachmentServices& services, const ChatId& chat, const std::vector<FileId>& ids,
                             const PartRecipient& recipient);

// What was attached to a stored interaction, as the model was told then.
Attached AttachedTo(const Interaction& interaction);

// Notes anew what another model does not get of what was attached. Recordings that it does not take are transcribed.
void NoteFor(const AttachmentServices& services, const ChatId& chat, const PartRecipient& recipient,
             Attached& attached);

// Puts a file into the store, unless the chat has the same one: its name, type and content. Gives the one that is there
// then.
Result<FileInfo> KeepOnce(FileStore& store, const ChatId& chat, StoredFile file);

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
