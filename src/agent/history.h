#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/document_reader.h"
#include "reprise/file_store.h"
#include "reprise/message.h"
#include "reprise/model_client.h"
#include "reprise/tool.h"

namespace reprise {

// The result of a tool call that had begun when the process ended: nobody knows what it did, so it is never run again
// by itself.
inline constexpr std::string_view kOutcomeUnknown = "The server ended while this call ran. What it did is not known.";

// What a provider accepts: directly behind an assistant message that calls tools stand the results of exactly those
// calls, one each, and no result stands anywhere else. Providers refuse a history that breaks this, for ever.

// Gives every call that has no result one that says `placeholder`, in the place where a provider expects it. A result
// that exists is never replaced, moved or dropped (results are looked for before any gap is filled). Returns how many
// were added.
std::size_t CompleteToolCalls(Messages& messages, std::string_view placeholder, std::size_t first = 0);

// What stands before the result of a call whose arguments a hook has changed to these.
std::string ChangedByHook(const std::string& arguments);

// The file as a part of a message, if it is of a kind that stands in one; nullopt: it is text, or nothing that any
// model takes, as images that are cut short.
std::optional<MessagePart> PartOf(const FileInfo& info, std::string_view content);

// Whether a model of these abilities takes the recording as it is.
bool TakesRecording(const ModelAbilities& abilities, const MessagePart& part);

// As people see them.
std::vector<Attachment> AttachmentsOf(const std::vector<MessagePart>& parts);

// Makes what a tool has given beside its text into files of the chat: `outcome.files` become `outcome.parts`, and the
// text names each. What cannot be kept is told in the text.
void KeepFiles(FilesOfChat& files, std::string_view tool_name, ToolOutcome& outcome);

// The text of a file within a message, between marks that nobody knew who wrote it; cut to `room` bytes, and says so.
std::string MarkedText(const FileId& id, std::string_view text, std::size_t room);

// Who gets messages, as far as it matters to their parts.
struct PartRecipient {
  ModelAbilities abilities{};
  PartLimits limits{};
  std::int64_t window = 0;  // tokens, of request and response together; 0: not known
};

// What one model gets of the parts of messages: the files themselves where it takes such and there is room, else their
// text, else why there is none. One per run, on one thread at a time; what it has read it keeps.
class MessageParts {
 public:
  // Both may be null: then no file can be read, and no document.
  MessageParts(FilesOfChat* files, DocumentReader* documents, PartRecipient recipient);

  static bool HasAny(const Messages& messages);
  // The messages with the parts that are sent as they are; the others have become text. There is room for the newest
  // first. May read files and wait for documents.
  Messages Shown(const Messages& messages, const std::stop_token& stop);

  // From now on every part is told in text, for this reason.
  void SendNone(std::string why) { why_none_ = std::move(why); }

  // For people: what the model does not get of this file, and why; empty: it gets it as it is, or all of its text.
  std::string NoteOn(const MessagePart& part, const std::stop_token& stop);
  // What the model would be told of it in text, were it the only part; empty: it is sent as it is, or cannot be read.
  std::string TextFor(const MessagePart& part, const std::stop_token& stop);

 private:
  struct Room;  // that is left in a request
  struct DocumentText {
    std::string text;  // empty if there is a problem
    std::string problem{};
  };
  std::string WhyNotAsIs(const MessagePart& part) const;
  std::string Told(const MessagePart& part, const std::string& why, std::size_t& room, const std::stop_token& stop);
  const DocumentText& TextOf(const MessagePart& part, const std::stop_token& stop);
  std::int64_t MostTokens() const;
  std::size_t MostText() const;

  FilesOfChat* const files_;
  DocumentReader* const documents_;
  const PartRecipient recipient_;
  std::string why_none_;  // empty: parts are sent
  std::map<FileId, DocumentText> texts_;
};

}  // namespace reprise
