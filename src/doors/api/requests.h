#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doors/api/server.h"
#include "doors/audio.h"
#include "reprise/approval.h"
#include "reprise/audio.h"
#include "reprise/engine.h"
#include "reprise/ids.h"
#include "reprise/result.h"
#include "reprise/what_if.h"

// The bodies of requests as types. Every function fails with kInvalidArgument if the text is not JSON, or if a member
// is unknown, missing, of the wrong type or out of range; the message names the member. An empty body counts as {}; an
// optional member that is null counts as absent.
namespace reprise {

// Of POST .../interactions, .../edit and .../regenerate.
struct RunBody {
  StartRequest request;
  bool stream = true;
  bool dry_run = false;  // edit only
};
Result<RunBody> ParseStartBody(std::string_view body);
Result<RunBody> ParseEditBody(std::string_view body);
// `with_files` is for regenerate, the only request with this body that can restore files.
Result<RunBody> ParseRegenerateBody(std::string_view body, bool with_files = false);

enum class ReplayMode { kEvents, kRecorded, kLive };
struct ReplayBody {
  ReplayMode mode = ReplayMode::kEvents;
  double speed = 0;                            // for kEvents: the factor to the recorded speed; 0: at once
  ReplayInput input = ReplayInput::kRecorded;  // for kRecorded
};
Result<ReplayBody> ParseReplayBody(std::string_view body);

Result<WhatIfChanges> ParseWhatIfBody(std::string_view body);

struct ApprovalBody {
  std::string approval_id;
  ApprovalAnswer answer;
};
// `approval_id_in_path` is the id in the path, if it has one; an id in the body must equal it.
Result<ApprovalBody> ParseApprovalBody(std::string_view body, std::optional<std::string> approval_id_in_path);

// Of POST .../respond: a text or an object as `response`, or `"declined": true`.
struct RespondBody {
  std::string request_id;
  InputAnswer answer;
};
Result<RespondBody> ParseRespondBody(std::string_view body);

// Of PATCH /chats/{chat}/tasks.
Result<AgendaChange> ParseAgendaBody(std::string_view body);

struct CreateChatBody {
  ChatId id;
  ChatSettings settings;
};
Result<CreateChatBody> ParseCreateChatBody(std::string_view body);  // a random id if none is given
// Of PATCH /chats/{chat}. Here null is a value: the server's mode, the default model.
Result<ChatSettings> ParseChatSettings(std::string_view body);
Result<std::string> ParseLoginBody(std::string_view body);  // the token
// With `dry_run` the request only tells what it would change.
struct HeadBody {
  InteractionId interaction;
  FilesChoice files{};
  bool dry_run = false;
};
Result<HeadBody> ParseHeadBody(std::string_view body);
struct UndoBody {
  FilesChoice files{};
  bool dry_run = false;
};
Result<UndoBody> ParseUndoBody(std::string_view body);
struct SpeechBody {
  SpeechRequest request;
  const SpeechFormat* format;  // one of kSpeechFormats
};
Result<SpeechBody> ParseSpeechBody(std::string_view body);
// Of PUT /chats/{chat}/editor.
Result<std::vector<EditorTool>> ParseEditorTools(std::string_view body);
// Of POST /chats/{chat}/editor/{request}: exactly one of `content`, `error`, `"done": true` or `output`.
Result<EditorAnswer> ParseEditorAnswer(std::string_view body);
// Of PATCH /chats/{chat}/queue/{id}: the message.
Result<std::string> ParseQueuedBody(std::string_view body);
struct ForkBody {
  InteractionId interaction;
  ChatId chat;  // a random id if none is given
  std::optional<std::string> title;
  FilesChoice files{};
  bool dry_run = false;
};
Result<ForkBody> ParseForkBody(std::string_view body);
// Of POST /instructions/expand.
struct ExpandCommandBody {
  std::string command, arguments;
};
Result<ExpandCommandBody> ParseExpandCommandBody(std::string_view body);

struct TrustInstructionsBody {
  std::string path, digest;
};
Result<TrustInstructionsBody> ParseTrustInstructionsBody(std::string_view body);
// Of PUT /tools/servers/{name}, without its name and whether the sender is local.
Result<ToolServerSettings::Wanted> ParseToolServerBody(std::string_view body);
// Of POST /rules, without whether the sender is local.
Result<RuleSettings::Wanted> ParseRuleBody(std::string_view body);
// Of PUT /providers/{name}, without its name.
Result<ProviderConnections::Wanted> ParseProviderBody(std::string_view body);
// Of POST /push/devices.
Result<DevicePush::Wanted> ParseDeviceBody(std::string_view body);
// Of POST /chats/{chat}/workspace/files: the path.
Result<std::string> ParseWorkspaceFileBody(std::string_view body);
Result<void> ParseEmptyBody(std::string_view body);

}  // namespace reprise
