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

// The result of a tool call that was running when the process ended: its effects are unknown, so it is never repeated
// automatically.
inline constexpr std::string_view kOutcomeUnknown = "The server ended while this call ran. What it did is not known.";

// Providers demand that an assistant message with tool calls is directly followed by exactly one result for each call,
// and that there are no other results. They reject a history that breaks this in every later request.

// Adds a result with the text `placeholder` for every call without one, in the place that providers expect. Existing
// results are never replaced, moved or dropped (all are found before any gap is filled). Returns the number of added
// results.
std::size_t CompleteToolCalls(Messages& messages, std::string_view placeholder, std::size_t first = 0);

// The text before the result of a call whose arguments a hook has changed to these.
std::string ChangedByHook(const std::string& arguments);

// The file as a part of a message. nullopt if it is text, or of a kind that no model accepts, such as a truncated
// image.
std::optional<MessagePart> PartOf(const FileInfo& info, std::string_view content);

// Whether a model with these abilities accepts the recording as it is.
bool TakesRecording(const ModelAbilities& abilities, const MessagePart& part);

// The parts in the form that people see.
std::vector<Attachment> AttachmentsOf(const std::vector<MessagePart>& parts);

// Stores a tool's files in the chat: `outcome.files` become `outcome.parts`, and the text names each. A file that
// cannot be stored is mentioned in the text.
void KeepFiles(FilesOfChat& files, std::string_view tool_name, ToolOutcome& outcome);

// The text of a file within a message, between marks that its author could not know; cut to `room` bytes, with a note.
std::string MarkedText(const FileId& id, std::string_view text, std::size_t room);

// The model that gets messages: its properties that matter for their parts.
struct PartRecipient {
  ModelAbilities abilities{};
  PartLimits limits{};
  std::int64_t window = 0;  // tokens, of request and response together; 0: unknown
};

// Chooses the form in which a model gets the parts of messages: the files themselves if it accepts them and there is
// room, else their text, else the reason why there is none. One per run, on one thread at a time; caches texts.
class MessageParts {
 public:
  // Both may be null; then files or documents cannot be read.
  MessageParts(FilesOfChat* files, DocumentReader* documents, PartRecipient recipient);

  static bool HasAny(const Messages& messages);
  // The messages with the parts that are sent as they are; the other parts become text. The newest get room first. May
  // read files and wait for documents.
  Messages Shown(const Messages& messages, const std::stop_token& stop);

  // Turns all parts into text from now on, for this reason.
  void SendNone(std::string why) { why_none_ = std::move(why); }

  // For people: how much of this file the model does not get, and why; empty if it gets the file or all of its text.
  std::string NoteOn(const MessagePart& part, const std::stop_token& stop);
  // The text that the model would get if this were the only part; empty if it is sent as it is, or cannot be read.
  std::string TextFor(const MessagePart& part, const std::stop_token& stop);

 private:
  struct Room;  // the remaining room in a request
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
  std::string why_none_;  // see SendNone; empty: parts are sent
  std::map<FileId, DocumentText> texts_;
};

}  // namespace reprise
