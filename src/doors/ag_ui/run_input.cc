#include "doors/ag_ui/run_input.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "domain/file_kind.h"

namespace reprise::ag_ui {
namespace {

// Parts that are files: those of 1.0, and the older "binary".
constexpr std::array<std::string_view, 5> kFileTypes = {"image", "audio", "video", "document", "binary"};

Error Wrong(const std::string& what) { return Refused(Reason::kInvalidMember, what); }

Error WrongPayload(const std::string& id, const std::string& what) {
  return Refused(Reason::kInvalidPayload, "the payload for the interrupt " + id + " " + what);
}

Result<std::string> NeededText(const Json& object, const char* name) {
  const Json& member = MemberOf(object, name);
  if (!member.is_string() || member.get_ref<const std::string&>().empty()) {
    return Fail(Wrong(std::string("\"") + name + "\" must be a text"));
  }
  return member.get<std::string>();
}

void AddText(std::string& all, const std::string& text) { all += (all.empty() || text.empty() ? "" : "\n\n") + text; }

// Returns the text of a message's content and adds its files to `files`, unless that is null.
Result<std::string> TakeContent(const Json& content, const std::string& where, std::vector<ForeignFile>* files) {
  if (content.is_string()) return content.get<std::string>();
  if (content.is_null()) return std::string();
  if (!content.is_array()) return Fail(Wrong(where + ".content must be a text or an array of parts"));
  std::string text;
  for (const Json& part : content) {
    const std::string type = TextMember(part, "type");
    if (type == "text" && MemberOf(part, "text").is_string()) {
      AddText(text, TextMember(part, "text"));
      continue;
    }
    if (std::ranges::find(kFileTypes, type) == kFileTypes.end()) {
      return Fail(Wrong(where + " has content of the type \"" + std::string(Utf8Prefix(type, 40)) +
                        "\", which is not supported, or lacks its text"));
    }
    const Json& source = MemberOf(part, "source");
    const bool is_data = TextMember(source, "type") == "data" || MemberOf(part, "data").is_string();
    const std::string data = source.is_object() ? TextMember(source, "value") : TextMember(part, "data");
    const std::string mime_type = TextMember(source.is_object() ? source : part, "mimeType");
    if (!is_data) {
      const std::string url = source.is_object() ? data : TextMember(part, "url");
      if (url.empty()) return Fail(Wrong(where + " has a part with neither data nor an address"));
      AddText(text, "[" + type + ": " + url + "]");
      continue;
    }
    if (files == nullptr) continue;
    auto bytes = DecodeBase64(data);
    if (!bytes) return Fail(Wrong(where + " has a part whose base64 cannot be decoded"));
    const std::string named = TextMember(part, "filename");
    files->push_back({named.empty() ? type + EndingOf(mime_type) : named,
                      mime_type.empty() ? "application/octet-stream" : mime_type, *std::move(bytes)});
    if (files->size() > 20) return Fail(Wrong(where + " has more than 20 files"));
  }
  return text;
}

Result<void> TakeMessages(RunInput& input) {
  std::optional<ForeignTurn> turn;  // the latest, whose answer may continue
  std::vector<ForeignFile> files;
  for (std::size_t i = 0; i < input.messages.size(); ++i) {
    const Json& message = input.messages[i];
    const std::string where = "messages[" + std::to_string(i) + "]";
    if (!message.is_object()) return Fail(Wrong(where + " must be an object"));
    const std::string role = TextMember(message, "role");
    const Json& content = MemberOf(message, "content");
    if (role == "user") {
      if (turn) input.conversation.before.push_back(*std::move(turn));
      files.clear();
      turn = ForeignTurn{.user = TRY(TakeContent(content, where, &files))};
      if (turn->user.empty() && !files.empty()) turn->user = files.front().filename;
      input.has_message = true;
    } else if (role == "assistant") {
      const std::string said = TRY(TakeContent(content, where, nullptr));
      if (turn) {
        turn->answer = turn->answer.value_or("") + said;
      } else {
        AddText(input.conversation.opening, said);
      }
      input.has_message = false;
    } else if (role == "tool") {
      input.has_message = false;
    } else if (role == "system" || role == "developer") {
      AddText(input.instructions, TRY(TakeContent(content, where, nullptr)));
    } else if (role != "reasoning" && role != "activity") {
      return Fail(Wrong(where + ".role is none of user, assistant, tool, system, developer, reasoning, activity"));
    }
  }
  if (!input.has_message || !turn) return {};
  if (turn->user.find_first_not_of(" \t\r\n") == std::string::npos) return Fail(Wrong("the last message is empty"));
  input.conversation.message = std::move(turn->user);
  input.files = std::move(files);
  return {};
}

// True if the client's message is this one of the chat.
bool IsSameMessage(const Json& client, const Json& ours) {
  if (!MemberOf(client, "id").is_string() || MemberOf(client, "role") != ours["role"]) return false;
  if (client["id"] == ours["id"]) return true;
  const auto text = TakeContent(MemberOf(client, "content"), "", nullptr);
  return text && !text->empty() && *text == TextMember(ours, "content");
}

// A text in the payload; nullopt if it is missing or empty.
Result<std::optional<std::string>> PayloadText(const ResumeEntry& entry, const char* name) {
  const Json& text = MemberOf(entry.payload, name);
  if (text.is_null() || text == "") return std::nullopt;
  if (!text.is_string())
    return Fail(WrongPayload(entry.interrupt_id, std::string("has \"") + name + "\" that is no text"));
  return text.get<std::string>();
}

Result<ApprovalScope> ScopeOf(const ResumeEntry& entry) {
  const Json& scope = MemberOf(entry.payload, "scope");
  if (scope.is_null() || scope == "once") return ApprovalScope::kOnce;
  if (scope == "chat") return ApprovalScope::kChat;
  if (scope == "always") return ApprovalScope::kAlways;
  return Fail(WrongPayload(entry.interrupt_id, "has a \"scope\" that is none of once, chat, always"));
}

Result<void> TakeResume(const Json& resume, RunInput& input) {
  if (resume.is_null()) return {};
  if (!resume.is_array()) return Fail(Wrong("\"resume\" must be an array"));
  for (const Json& entry : resume) {
    const std::string status = TextMember(entry, "status");
    if (status != "resolved" && status != "cancelled") {
      return Fail(Wrong("\"status\" in \"resume\" must be resolved or cancelled"));
    }
    input.resume.push_back({.interrupt_id = TRY(NeededText(entry, "interruptId")),
                            .cancelled = status == "cancelled",
                            .payload = MemberOf(entry, "payload")});
  }
  return {};
}

}  // namespace

Result<RunInput> ParseRunInput(std::string_view body) {
  const Json json = TRY(ParseJson(body));
  if (!json.is_object()) {
    return Fail(Reason::kInvalidBody, "the body must be a JSON object");
  }
  RunInput input;
  input.thread_id = TRY(NeededText(json, "threadId"));
  input.run_id = TRY(NeededText(json, "runId"));
  for (const char* name : {"parentRunId", "protocolVersion"}) {
    if (const Json& member = MemberOf(json, name); !member.is_null() && !member.is_string()) {
      return Fail(Wrong(std::string("\"") + name + "\" must be a text"));
    }
  }
  for (const char* name : {"tools", "context"}) {
    const Json& member = MemberOf(json, name);
    const auto is_object = [](const Json& each) { return each.is_object(); };
    if (!member.is_null() && !(member.is_array() && std::all_of(member.begin(), member.end(), is_object))) {
      return Fail(Wrong(std::string("\"") + name + "\" must be an array of objects"));
    }
  }
  input.parent_run_id = TextMember(json, "parentRunId");
  input.is_current = !TextMember(json, "protocolVersion").empty();
  // A thread always has a name here, so "new" and "null" are names too.
  const auto plain = ChatId::Parse(input.thread_id);
  input.conversation.chat = plain ? std::optional(*plain) : ChatNamed(input.thread_id);
  if (!input.conversation.chat) return Fail(Wrong("\"threadId\" names no thread"));
  if (const Json& messages = MemberOf(json, "messages"); messages.is_array()) {
    input.messages = messages;
  } else if (!messages.is_null()) {
    return Fail(Wrong("\"messages\" must be an array"));
  }
  TRY(TakeMessages(input));
  TRY(TakeResume(MemberOf(json, "resume"), input));
  if (const Json& context = MemberOf(json, "context"); context.is_array()) {
    for (const Json& each : context) {
      AddText(input.instructions, TextMember(each, "description") + ": " + TextMember(each, "value"));
    }
  }
  input.model = TextMember(MemberOf(json, "forwardedProps"), "model");
  return input;
}

void KeepMessagesOf(const Json& client, Json& shown) {
  std::size_t next = 0;  // the first message of the client that can still match
  for (Json& message : shown) {
    const bool is_users = TextMember(message, "role") == "user";
    for (std::size_t i = next; i < client.size(); ++i) {
      if (IsSameMessage(client[i], message)) {
        if (is_users) {
          message = client[i];
        } else {
          message["id"] = client[i]["id"];
        }
        next = i + 1;
        break;
      }
      if (!is_users && TextMember(client[i], "role") == "user") break;  // the next turn begins here
    }
  }
}

std::optional<std::string> ContradictedInterrupt(const std::vector<ResumeEntry>& entries) {
  std::map<std::string, const ResumeEntry*> first;
  for (const ResumeEntry& entry : entries) {
    const ResumeEntry& other = *first.emplace(entry.interrupt_id, &entry).first->second;
    if (entry.cancelled != other.cancelled || entry.payload != other.payload) return entry.interrupt_id;
  }
  return std::nullopt;
}

Result<ApprovalAnswer> ApprovalOf(const ResumeEntry& entry) {
  ApprovalAnswer answer;
  if (entry.cancelled) return answer;
  const Json& approved = MemberOf(entry.payload, "approved");
  if (!approved.is_boolean()) return Fail(WrongPayload(entry.interrupt_id, "needs \"approved\", true or false"));
  answer.approved = approved.get<bool>();
  if (const Json& edited = MemberOf(entry.payload, "editedArgs"); !edited.is_null()) {
    if (!edited.is_object()) return Fail(WrongPayload(entry.interrupt_id, "has \"editedArgs\" that are no object"));
    answer.arguments = DumpJson(edited);
  }
  answer.feedback = TRY(PayloadText(entry, "feedback"));
  answer.arguments_digest = TRY(PayloadText(entry, "argumentsDigest"));
  answer.scope = TRY(ScopeOf(entry));
  if (const Json& outside = MemberOf(entry.payload, "outsideSandbox"); !outside.is_null()) {
    if (!outside.is_boolean())
      return Fail(WrongPayload(entry.interrupt_id, "has \"outsideSandbox\" that is no boolean"));
    answer.outside_sandbox = outside.get<bool>();
  }
  return answer;
}

Result<InputAnswer> InputOf(const ResumeEntry& entry, const event::InputRequired& asked) {
  InputAnswer answer;
  if (entry.cancelled) return answer;
  if (asked.url) return answer.response = "done", answer;
  if (asked.schema) {
    if (!entry.payload.is_object()) return Fail(WrongPayload(entry.interrupt_id, "must be an object"));
    answer.response = DumpJson(entry.payload);
    return answer;
  }
  std::string said = entry.payload.is_string() ? entry.payload.get<std::string>() : TextMember(entry.payload, "answer");
  if (said.empty()) said = TextMember(entry.payload, "response");
  if (said.empty()) return Fail(WrongPayload(entry.interrupt_id, "must be a text, or an object with \"answer\""));
  answer.response = std::move(said);
  return answer;
}

}  // namespace reprise::ag_ui
