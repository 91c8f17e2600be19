#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/queues.h"
#include "engine/chat_document.h"
#include "reprise/blob_store.h"
#include "reprise/file_store.h"
#include "reprise/interaction_store.h"
#include "reprise/result.h"

namespace reprise {

// Writes interactions of a chat as the plain JSON documents of schemas/ into `directory`/CHAT, long states as their
// additions, together with the chat's files and blobs: a folder that people, `reprise import` and `reprise serve
// --plain` can read. `chat` selects them; the states come from `store`. Returns the faults of `files` and `blobs` that
// are damaged, and so left out. All or nothing; kConflict (reason "file_exists") if the folder exists and not
// `replace`. `counter` counts each written interaction; kCancelled if it is told to stop.
Result<std::vector<Error>> WriteChatFolder(const std::string& directory, const Chat& chat, InteractionStore& store,
                                           FileStore& files, BlobStore& blobs, bool replace, WorkCounter& counter);

// Whether the folder is one chat: it has its interactions, and is not a folder of chats, one of which has that name.
bool IsChatFolder(const std::string& path);

// The chats in `path`: a chat's folder or a JSON document is itself one, another folder holds some. Whether its
// documents (.json, .jsonl) are chats shows when they are read. kNotFound; kInvalidArgument if it is none of these.
struct FoundChats {
  std::vector<std::string> paths;
  std::vector<std::string> others{};  // names of what is no chat; without hidden ones and the audit log
};
Result<FoundChats> FindForeignChats(const std::string& path);

// Reads a chat from a folder or a document of plain JSON (engine/chat_document). kInvalidArgument if anything in it is
// unusable; the message names the file and the fault.
Result<ForeignChat> ReadForeignChat(const std::string& path);

// The files of an exported chat, to read.
class FilesOfExport final : public FilesOfChat {
 public:
  explicit FilesOfExport(std::vector<StoredFile> files) : files_(std::move(files)) {}
  Result<FileListing> List() override { return Fail(ErrorCode::kForbidden, "an exported chat only gives its files"); }
  Result<StoredFile> Get(const FileId& id) override {
    const auto found = std::ranges::find(files_, id, [](const StoredFile& file) { return file.info.id; });
    if (found == files_.end()) return Fail(Reason::kNoSuchFile, "the exported chat has no such file");
    return *found;
  }
  Result<FileInfo> Add(std::string_view, std::string_view, std::string) override {
    return Fail(ErrorCode::kForbidden, "an exported chat takes no files");
  }
  Result<void> Delete(const FileId&) override { return Fail(ErrorCode::kForbidden, "an exported chat stays as it is"); }

 private:
  const std::vector<StoredFile> files_;
};

}  // namespace reprise
