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

// As the OpenAI chat shape names it: "assistant".
std::string_view RoleName(Role role);

// The JSON forms of the domain types: what the wire shows and what a checkpoint's plaintext is. schemas/*.schema.json
// describe them and the tests hold the two together. Reading checks types and required members: kCorruption (reason
// "integrity_version" for a schema number we do not know, else "integrity_format").
//
// AppendJson writes the same at the end of a string, without building it as an object first (and U+007F as an escape).

class JsonReader;

Json ToJson(const ToolCall& call);
void AppendJson(std::string& out, const ToolCall& call);
// Estimates of what parts cost that are larger are refused: they would not add up.
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
// {"tasks":[...],"plan":[...]}; reading, either may lack.
Json ToJson(const Agenda& agenda);
Result<Agenda> AgendaFromJson(const Json& json);

Json ToJson(const std::vector<Entity>& memory);
Result<std::vector<Entity>> MemoryFromJson(const Json& json);  // an array

// The messages before the `first` one are left out.
Json ToJson(const AgentState& state, std::size_t first = 0);
void AppendJson(std::string& out, const AgentState& state, std::size_t first = 0);
Result<AgentState> AgentStateFromJson(const Json& json);

Json ToJson(const AgentEvent& event);
void AppendJson(std::string& out, const AgentEvent& event);
Result<AgentEvent> AgentEventFromJson(const Json& json);
// The SSE event name and the wire type of a payload: "tool_call", "TOOL_CALL".
std::string_view EventName(const EventPayload& payload);
std::string_view EventType(const EventPayload& payload);

Json ToJson(const ClientRequest& request);
Result<ClientRequest> ClientRequestFromJson(const Json& json);
Json ToJson(const Attachment& attachment);
void AppendJson(std::string& out, const Attachment& attachment);
Json ToJson(const std::vector<Attachment>& attachments);
Result<std::vector<Attachment>> AttachmentsFromJson(const Json& json);

// Of the final state, the messages before the `first_message` are left out.
Json ToJson(const Interaction& interaction, std::size_t first_message = 0);
void AppendJson(std::string& out, const Interaction& interaction, std::size_t first_message = 0);
// The state says how many of the parent's messages come before its own.
inline constexpr const char* kKeptMessages = "kept_messages";
Json ToJson(const AddedInteraction& added);
void AppendJson(std::string& out, const AddedInteraction& added);
InteractionJson ToInteractionJson(const AddedInteraction& added);
Result<Interaction> InteractionFromJson(const Json& json);

Json ToJson(const QueuedMessage& message);
Result<QueuedMessage> QueuedMessageFromJson(const Json& json);
Json ToJson(const InteractionRef& ref);
Json ToJson(const DamagedInteraction& damaged);
// A path that is not UTF-8 has its bytes in "path_base64" besides.
Json ToJson(const WorkspaceChange& change);
void AppendJson(std::string& out, const WorkspaceChange& change);
Result<WorkspaceChange> WorkspaceChangeFromJson(const Json& json);
// The paths of the files and links, and of directories only where nothing else says that they are there, with a slash
// Whether a path is a folder of git's own or lies in one. What git obeys there is recorded, so that people see it, and
// never put back.
bool IsOfGit(std::string_view path);
// behind them. Valid UTF-8.
std::vector<std::string> ShownPaths(const std::vector<WorkspaceChange>& changes);
Json ToJson(const ChatSummary& summary);
Json ToJson(const TrashEntry& entry);
Json ToJson(const PendingApproval& approval);
Json ToJson(const PendingInput& input);
Json ToJson(const FileInfo& file);
Result<FileInfo> FileInfoFromJson(const Json& json);
// With its content: as text where it is text, else in base64url.
Json ToJson(const StoredFile& file);
// "integrity_version" also for an encoding that we do not know.
Result<StoredFile> StoredFileFromJson(const Json& json);
// Without the mode.
Json ToJson(const ReplayReport& report);

// "sha256:" and the hex digest of the bytes.
std::string ArgumentsDigest(std::string_view arguments);

// The same of what a person agrees to beyond the arguments: the tool as it is offered, its terms, and why these
// arguments ask (Tool::ReasonToAsk). Empty if the terms are not known.
std::string TermsDigest(const ToolTraits& traits, const std::optional<std::string>& reason_to_ask = std::nullopt);

// Names a grant, in every list of grants that has it: "grant_" and 32 hex digits.
std::string GrantId(const Grant& grant);
// What the names of all patterns begin with that are granted for this call's tool on these terms.
std::string PatternGrantPrefix(const Grant& call);
// Whether a call needs no question because of this grant, or has the tool and the terms that its pattern is for. Never
// a call without terms.
bool BearsOn(const Grant& grant, const Grant& call, Timestamp now);
// Reads the members that a state or a list of grants has of one; ask reader.error() at the end.
Grant ReadGrant(JsonReader& reader);
Json ToJson(const CallPattern& pattern);
void AppendJson(std::string& out, const CallPattern& pattern);
// With its id.
Json ToJson(const Grant& grant);
void AppendJson(std::string& out, const Grant& grant);
Json ToJson(const StandingGrant& grant);

// "encoding" and "content" as in a StoredFile.
Json ToJson(const Blob& blob);
// Fails also if the content does not have the digest.
Result<Blob> BlobFromJson(const Json& json);

// So many changes as one event tells at most, in each; the last one says how many are omitted.
std::vector<event::FilesChanged> InEvents(const std::optional<std::string>& call_id, WorkspaceChanges changes);
// The digests of what the interaction's changed files held, each once.
std::vector<std::string> BlobsOf(const Interaction& interaction);

// A chat's title: the first 50 characters of its first user message, on one line.
std::string TitleFromMessage(std::string_view user_message);
// Of a chat in which nothing has ended yet the summary is empty: its title and times are those of what has begun.
void FillFromBegun(ChatSummary& summary, const Interaction& begun);
// An interaction has come to the chat, whose tokens are known: its model and its tokens are the chat's too.
void AddUsage(ChatSummary& summary, const Interaction& interaction);
// What a person has set is so from now on.
void Apply(const ChatSettings& settings, ChatSummary& summary);
// Of a copy: what was set for the original, but for kApproveAll.
void TakeSettings(const ChatSummary& original, ChatSummary& copy);

// The data line of an event: one line of JSON, "type", "seq", "round_index" and (but for deltas) "at" first. The same
// bytes for the same event, live and from a file.
std::string EventData(const AgentEvent& event);

// Any event, as a server sends or lists it, perhaps without a number. nullopt: this program does not know its type (a
// newer server's), or it lacks a member of its type.
std::optional<AgentEvent> ReceivedEvent(const Json& json);

// What a person has said to the question of this id, as journals and databases keep it.
Json ToJson(const std::string& question_id, const GivenAnswer& answer);
// kCorruption unless it is what ToJson makes.
Result<std::pair<std::string, GivenAnswer>> AnswerFromJson(const Json& json);

// The event that asks, without number and time.
Json QuestionToJson(const PendingQuestion& question);
Result<PendingQuestion> QuestionFromJson(const InteractionRef& run, const Json& json);

// The members of a token usage, in events and interactions. Those about the provider's cache are there only if it was
// used. `out`: see domain/json_reader.h.
void WriteUsage(auto& out, const TokenUsage& usage) {
  out["input_tokens"] = usage.input_tokens;
  out["output_tokens"] = usage.output_tokens;
  if (usage.cache_read_tokens != 0) out["cache_read_tokens"] = usage.cache_read_tokens;
  if (usage.cache_write_tokens != 0) out["cache_write_tokens"] = usage.cache_write_tokens;
}
TokenUsage ReadUsage(JsonReader& in);

}  // namespace reprise
