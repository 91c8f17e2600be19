#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "domain/json_reader.h"
#include "reprise/agenda.h"
#include "reprise/approval.h"
#include "reprise/blob_store.h"
#include "reprise/event.h"
#include "reprise/file_store.h"
#include "reprise/grant_store.h"
#include "reprise/history.h"
#include "reprise/interaction.h"
#include "reprise/interaction_store.h"
#include "reprise/message.h"
#include "reprise/question_store.h"
#include "reprise/queue.h"
#include "reprise/replay.h"
#include "reprise/tool.h"

namespace reprise {

// The role's name in the OpenAI chat format: "assistant".
std::string_view RoleName(Role role);

// The JSON forms of the domain types, on the wire and in a checkpoint's plaintext. schemas/*.schema.json describe them,
// and tests compare the two. Reading checks types and required members: kCorruption (reason "integrity_version" for a
// schema number we do not know, else "integrity_format").
//
// AppendJson appends the same as text without building an object first (and escapes U+007F).

class JsonReader;

Json ToJson(const ToolCall& call);
void AppendJson(std::string& out, const ToolCall& call);
// Larger estimates of a part's cost are refused because their sum could overflow.
inline constexpr std::int64_t kMaxPartTokens = 100'000'000;
Json ToJson(const MessagePart& part);
Json ToJson(const std::vector<MessagePart>& parts);
Result<std::vector<MessagePart>> MessagePartsFromJson(const Json& json);  // an array
Json ToJson(const Message& message);
void AppendJson(std::string& out, const Message& message);
Result<Message> MessageFromJson(const Json& json);

Json ToJson(const Task& task);
void AppendJson(std::string& out, const Task& task);
Json ToJson(const std::vector<Task>& tasks);
Result<std::vector<Task>> TasksFromJson(const Json& json);  // an array
// {"tasks":[...],"plan":[...]}; the reader accepts either without the other.
Json ToJson(const Agenda& agenda);
Result<Agenda> AgendaFromJson(const Json& json);

Json ToJson(const std::vector<Entity>& memory);
Result<std::vector<Entity>> MemoryFromJson(const Json& json);  // an array

// Omits the messages before `first`.
Json ToJson(const std::vector<StartedJob>& jobs);
Result<std::vector<StartedJob>> JobsFromJson(const Json& json);  // an array
Json ToJson(const AgentState& state, std::size_t first = 0);
void AppendJson(std::string& out, const AgentState& state, std::size_t first = 0);
Result<AgentState> AgentStateFromJson(const Json& json);

Json ToJson(const AgentEvent& event);
void AppendJson(std::string& out, const AgentEvent& event);
Result<AgentEvent> AgentEventFromJson(const Json& json);
// The SSE event name and the wire type of a payload: "tool_call", "TOOL_CALL".
std::string_view EventName(const EventPayload& payload);
std::string_view EventType(const EventPayload& payload);

// {"place":["int_001",0],"heads":[[bytes,digest],...],"tail":[bytes,digest]}
Json ToJson(const RequestMarks& marks);
void AppendJson(std::string& out, const RequestMarks& marks);
Result<RequestMarks> RequestMarksFromJson(const Json& json);
std::string_view ToString(SentRequest::Purpose purpose);
std::string_view ToString(SentResponse::Finish finish);
// The number of failed requests that this one repeats, as far as the record tells.
std::size_t AttemptOf(const std::vector<SentRequest>& requests, std::size_t index);
// `asked`: the model that the request named, whose name is left out.
Json ToJson(const SentResponse& response, const std::string& asked);
Result<SentResponse> SentResponseFromJson(const Json& json, const std::string& asked);
// By origin: [{"server":"docs","version":"Docs 1.2","revision":"2025-11-25","tools":{"docs__find":"sha256:..."}},
// {"client":"browser","tools":{...}}].
Json ToJson(const std::vector<ToldTool>& tools);
Json ToJson(const SentRequest& request);
void AppendJson(std::string& out, const SentRequest& request);
// As an interaction has it: without the name of the model and the usage that the interaction itself tells.
struct RecordedRequest {
  const SentRequest& request;
  const std::string* model = nullptr;  // the interaction's; null: none
  const TokenUsage* usage = nullptr;   // of the round's answer; null: this is not the request for it
};
Json ToJson(const RecordedRequest& recorded);
void AppendJson(std::string& out, const RecordedRequest& recorded);
// SharedText::literal() of a text that many chats have: deflated if that is shorter. As slow as zlib.
std::string PackedLiteral(std::string_view text);
// `model`: that of a request which names none.
Result<SentRequest> SentRequestFromJson(const Json& json, const std::string& model = {});

Json ToJson(const ClientRequest& request);
Result<ClientRequest> ClientRequestFromJson(const Json& json);
Json ToJson(const Attachment& attachment);
void AppendJson(std::string& out, const Attachment& attachment);
Json ToJson(const std::vector<Attachment>& attachments);
Result<std::vector<Attachment>> AttachmentsFromJson(const Json& json);

// Omits the final state's messages before `first_message`.
Json ToJson(const Interaction& interaction, std::size_t first_message = 0);
void AppendJson(std::string& out, const Interaction& interaction, std::size_t first_message = 0);
// The member of a state that counts the parent's messages before its own.
inline constexpr const char* kKeptMessages = "kept_messages";
Json ToJson(const AddedInteraction& added);
void AppendJson(std::string& out, const AddedInteraction& added);
InteractionJson ToInteractionJson(const AddedInteraction& added);
Result<Interaction> InteractionFromJson(const Json& json);

Json ToJson(const QueuedMessage& message);
Result<QueuedMessage> QueuedMessageFromJson(const Json& json);
Json ToJson(const InteractionRef& ref);
Json ToJson(const DamagedInteraction& damaged);
// A path that is not UTF-8 also has its bytes in "path_base64".
Json ToJson(const FileExtras& extras);  // names
Json ToJson(const WorkspaceChange& change);
void AppendJson(std::string& out, const WorkspaceChange& change);
Result<WorkspaceChange> WorkspaceChangeFromJson(const Json& json);
// Whether a path is one of git's own folders or lies in one. Changes there that affect git are recorded, so that people
// see them, but never restored.
bool IsOfGit(std::string_view path);
// The paths of files and links, and of directories (with a trailing slash) that no other path implies. Valid UTF-8.
std::vector<std::string> ShownPaths(const std::vector<WorkspaceChange>& changes);
Json ToJson(const ChatSummary& summary);
Json ToJson(const TrashEntry& entry);
Json ToJson(const PendingApproval& approval);
Json ToJson(const PendingInput& input);
Json ToJson(const FileInfo& file);
Result<FileInfo> FileInfoFromJson(const Json& json);
// With its content, as text if it is text, else in base64url.
Json ToJson(const StoredFile& file);
// "integrity_version" also for an unknown encoding.
Result<StoredFile> StoredFileFromJson(const Json& json);
std::string_view ToString(Drift::Cause cause);
Json ToJson(const Drift& drift);
// Omits the mode.
Json ToJson(const ReplayReport& report);

// "sha256:" and the hex digest of the bytes.
std::string ArgumentsDigest(std::string_view arguments);

// The digest of everything else that a person agrees to: the tool as offered, its terms, and why these arguments need
// approval (Tool::ReasonToAsk). Empty if the terms are unknown.
std::string TermsDigest(const ToolTraits& traits, const std::optional<std::string>& reason_to_ask = std::nullopt);

// A grant's id, the same in every list of grants: "grant_" and 32 hex digits.
std::string GrantId(const Grant& grant);
// The common prefix of the ids of all pattern grants for this call's tool and terms.
std::string PatternGrantPrefix(const Grant& call);
// Whether this grant covers the call, or its pattern is for the call's tool and terms. Never true for a call without
// terms.
bool BearsOn(const Grant& grant, const Grant& call, Timestamp now);
// Reads a grant from a state or a list of grants; check reader.error() at the end.
Grant ReadGrant(JsonReader& reader);
Json ToJson(const CallPattern& pattern);
void AppendJson(std::string& out, const CallPattern& pattern);
Json ToJson(const WebSource& source);
void AppendJson(std::string& out, const WebSource& source);
Json ToJson(const Citation& citation);
void AppendJson(std::string& out, const Citation& citation);
// With its id.
Json ToJson(const Grant& grant);
void AppendJson(std::string& out, const Grant& grant);
Json ToJson(const StandingGrant& grant);

// "encoding" and "content" as in a StoredFile.
Json ToJson(const Blob& blob);
// Also fails if the content does not match the digest.
Result<Blob> BlobFromJson(const Json& json);

// Splits the changes into events of the greatest size; the last one says how many are omitted.
std::vector<event::FilesChanged> InEvents(const std::optional<std::string>& call_id, WorkspaceChanges changes);
// The digests of the contents of the interaction's changed files, each once.
std::vector<std::string> BlobsOf(const Interaction& interaction);

// A chat's title: the first 50 characters of its first user message, on one line.
std::string TitleFromMessage(std::string_view user_message);
// Fills the empty summary of a chat without a finished interaction with the title and times of the started one.
void FillFromBegun(ChatSummary& summary, const Interaction& begun);
// Takes over the model of the chat's new interaction and adds its tokens to the chat's, if those are known.
void AddUsage(ChatSummary& summary, const Interaction& interaction);
// Applies a person's settings.
void Apply(const ChatSettings& settings, ChatSummary& summary);
// Part of the wire and of the file format.
std::string_view ToString(ChatShelf shelf);
std::optional<ChatShelf> ParseChatShelf(std::string_view name);
// Copies the original's settings except kApproveAll and its shelf.
void TakeSettings(const ChatSummary& original, ChatSummary& copy);

// The data line of an event: one line of JSON, "type", "seq", "round_index" and (but for deltas) "at" first. The same
// event gives the same bytes, live and from a file.
std::string EventData(const AgentEvent& event);

// Reads any event that a server sends or lists, perhaps without a number. nullopt if its type is unknown (a newer
// server's) or one of its members is missing.
std::optional<AgentEvent> ReceivedEvent(const Json& json);

// A person's answer to the question of this id, as journals and databases store it.
Json ToJson(const std::string& question_id, const GivenAnswer& answer);
// kCorruption unless ToJson can produce it.
Result<std::pair<std::string, GivenAnswer>> AnswerFromJson(const Json& json);

// The event that asks the question, without number and time.
Json QuestionToJson(const PendingQuestion& question);
Result<PendingQuestion> QuestionFromJson(const InteractionRef& run, const Json& json);

// The members of a token usage, in events and interactions. Those about the provider's cache and its web search exist
// only if it was used.
// `out`: see domain/json_reader.h.
void WriteUsage(auto& out, const TokenUsage& usage) {
  out["input_tokens"] = usage.input_tokens;
  out["output_tokens"] = usage.output_tokens;
  if (usage.cache_read_tokens != 0) out["cache_read_tokens"] = usage.cache_read_tokens;
  if (usage.cache_write_tokens != 0) out["cache_write_tokens"] = usage.cache_write_tokens;
  if (usage.web_searches != 0) out["web_searches"] = usage.web_searches;
}
TokenUsage ReadUsage(JsonReader& in);

}  // namespace reprise
