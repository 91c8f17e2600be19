#include "doors/openai/request.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "domain/file_kind.h"
#include "doors/openai/request_members.h"
#include "doors/openai/request_tools.h"

namespace reprise::openai {
namespace {

constexpr std::string_view kAgent = "reprise";
constexpr std::string_view kFilesOnly = "(see the attached files)";
constexpr std::size_t kMostFiles = 20;  // in one message

Result<std::optional<std::string>> Text(const Json& object, const char* name) {
  const Json& value = MemberOf(object, name);
  if (value.is_null()) return std::nullopt;
  if (!value.is_string()) return Fail(WrongType(name, "a string"));
  return value.get<std::string>();
}
Result<bool> Flag(const Json& object, const char* name) {
  const Json& value = MemberOf(object, name);
  if (value.is_null()) return false;
  if (!value.is_boolean()) return Fail(WrongType(name, "true or false"));
  return value.get<bool>();
}

void AddLine(std::string& text, std::string_view line) {
  if (!text.empty() && !line.empty()) text += "\n";
  text += line;
}

// Reads "data:image/png;base64,...". nullopt for any other address.
std::optional<Result<ForeignFile>> FileOfDataUrl(std::string_view url, std::string_view filename,
                                                 std::string_view param) {
  if (!url.starts_with("data:")) return std::nullopt;
  const std::size_t comma = url.find(',');
  const std::string_view head = url.substr(5, comma == std::string_view::npos ? 0 : comma - 5);
  if (comma == std::string_view::npos || !head.ends_with(";base64")) {
    return Fail(Invalid("invalid_member", "a data URL must be of the form data:TYPE;base64,DATA", param));
  }
  auto content = DecodeBase64(url.substr(comma + 1));
  if (!content) return Fail(Invalid("invalid_member", "the data URL's base64 cannot be decoded", param));
  const std::string type(head.substr(0, head.find(';')));
  std::string name = filename.empty() ? std::string(type.starts_with("image/") ? "image" : "file") + EndingOf(type)
                                      : std::string(filename);
  return ForeignFile{std::move(name), type, *std::move(content)};
}

// A message's content: its text, and the files among its parts.
struct Content {
  std::string text;
  std::vector<ForeignFile> files;
};

Result<void> TakeAddress(Content& content, std::string_view url, std::string_view filename, const char* what,
                         std::string_view param) {
  if (url.empty()) {  // for example a file that OpenAI keeps
    return Fail(
        Invalid("unsupported_value", std::string(what) + " content must come as a data URL or with an address", param));
  }
  auto file = FileOfDataUrl(url, filename, param);
  if (!file) {  // we fetch nothing for a client: the agent has a tool for that, which asks
    AddLine(content.text, "[" + std::string(what) + ": " + std::string(url) + "]");
    return {};
  }
  content.files.push_back(TRY(*std::move(file)));
  if (content.files.size() > kMostFiles) return Fail(Invalid("invalid_member", "a message may have 20 files", param));
  return {};
}

Result<void> TakePart(Content& content, const Json& part) {
  constexpr std::string_view kParam = "content";
  const std::string type = TextMember(part, "type");
  if (type == "text" || type == "input_text" || type == "output_text") {
    if (!MemberOf(part, "text").is_string()) return Fail(WrongType("text", "a string"));
    AddLine(content.text, TextMember(part, "text"));
    return {};
  }
  if (type == "refusal") return AddLine(content.text, TextMember(part, "refusal")), Result<void>();
  if (type == "image_url") {
    const Json& image = MemberOf(part, "image_url");
    return TakeAddress(content, image.is_string() ? image.get<std::string>() : TextMember(image, "url"), "", "image",
                       kParam);
  }
  if (type == "input_image") return TakeAddress(content, TextMember(part, "image_url"), "", "image", kParam);
  if (type == "file" || type == "input_file") {
    const Json& file = type == "file" ? MemberOf(part, "file") : part;
    const std::string data = TextMember(file, "file_data"), name = TextMember(file, "filename");
    if (const std::string url = TextMember(file, "file_url"); data.empty() && !url.empty()) {
      return TakeAddress(content, url, name, "file", kParam);
    }
    if (data.empty()) return Fail(Invalid("unsupported_value", "a file must come with its \"file_data\"", kParam));
    return TakeAddress(content, data.starts_with("data:") ? data : "data:application/octet-stream;base64," + data, name,
                       "file", kParam);
  }
  if (type == "input_audio") {
    const Json& audio = MemberOf(part, "input_audio");
    const std::string format = TextMember(audio, "format");
    return TakeAddress(content,
                       "data:audio/" + (format == "mp3" ? "mpeg" : format) + ";base64," + TextMember(audio, "data"),
                       "audio." + format, "audio", kParam);
  }
  return Fail(Invalid("unsupported_value",
                      "content of the type \"" + std::string(Utf8Prefix(type, kMostOfAType)) + "\" is not supported",
                      kParam));
}

Result<Content> ReadContent(const Json& json) {
  Content content;
  if (json.is_null()) return content;
  if (json.is_string()) return Content{json.get<std::string>(), {}};
  if (!json.is_array()) return Fail(WrongType("content", "a string or an array of parts"));
  for (const Json& part : json) TRY(TakePart(content, part));
  return content;
}

// Builds the conversation of a request from its messages, one after the other.
class Conversation {
 public:
  explicit Conversation(OpenAiRequest& request) : request_(request) {}

  Result<void> Instruct(const Json& content) {
    auto read = TRY(ReadContent(content));
    AddLine(request_.instructions, read.text);
    return {};
  }

  Result<void> Ask(const Json& content) {
    auto read = TRY(ReadContent(content));
    if (!request_.is_agent) {
      AddFiles(read.files);
      request_.messages.push_back({.role = Role::kUser, .content = std::move(read.text)});
      return {};
    }
    if (IsBlank(read.text) && !read.files.empty()) read.text = kFilesOnly;
    ends_empty_ = IsBlank(read.text);
    if (ends_empty_) return {};  // an empty message is no turn
    Close();
    asked_ = ForeignTurn{.user = std::move(read.text)};
    request_.files = std::move(read.files);
    return {};
  }

  Result<void> Answer(const Json& content, std::vector<ToolCall> calls) {
    auto read = TRY(ReadContent(content));
    if (!read.files.empty()) {
      return Fail(Invalid("unsupported_value", "files in a message of the assistant are not supported", "content"));
    }
    if (request_.is_agent) {
      for (ToolCall& call : calls) calls_.insert_or_assign(call.id, call.name + " " + call.arguments);
      AnswerAgent(read.text);
      return {};
    }
    const bool joins = !calls.empty() && read.text.empty() && !request_.messages.empty() &&
                       request_.messages.back().role == Role::kAssistant;
    if (joins) {  // Responses has a separate item for each call
      auto& before = request_.messages.back().tool_calls;
      before.insert(before.end(), std::make_move_iterator(calls.begin()), std::make_move_iterator(calls.end()));
      return {};
    }
    Message message{.role = Role::kAssistant, .tool_calls = std::move(calls)};
    if (!read.text.empty() || message.tool_calls.empty()) message.content = std::move(read.text);
    request_.messages.push_back(std::move(message));
    return {};
  }

  // An agent did not make this call, so it gets the result of the client's tool as a message.
  Result<void> TakeToolResult(std::string call_id, const Json& content) {
    auto read = TRY(ReadContent(content));
    if (!request_.is_agent) {
      AddFiles(read.files);
      request_.messages.push_back(
          {.role = Role::kTool, .content = std::move(read.text), .tool_call_id = std::move(call_id)});
      return {};
    }
    const auto call = calls_.find(call_id);
    std::string told = "A tool of the client has run" + (call == calls_.end() ? "" : ": " + call->second) +
                       ". Its result:\n" +
                       (IsBlank(read.text) ? read.files.empty() ? "(nothing)" : std::string(kFilesOnly) : read.text);
    ends_empty_ = false;
    if (asked_ && asked_->is_tool_result) {  // several calls of one answer
      asked_->user += "\n\n" + told;
      std::move(read.files.begin(), read.files.end(), std::back_inserter(request_.files));
      return {};
    }
    Close();
    asked_ = ForeignTurn{.user = std::move(told), .is_tool_result = true};
    request_.files = std::move(read.files);
    return {};
  }

  Result<void> Finish(const char* param) {
    if (!request_.is_agent) {
      if (request_.messages.empty()) return Fail(Invalid("invalid_member", "there is no message", param));
      return {};
    }
    if (ends_empty_) return Fail(Invalid("invalid_member", "the last message must not be empty", param));
    if (!asked_ && turns().empty()) return Fail(Invalid("invalid_member", "there is no message of the user's", param));
    if (!asked_) request_.files.clear();  // they belong to the message before the answer
    request_.conversation.message = asked_ ? std::move(asked_->user) : std::string(kContinueMessage);
    request_.conversation.files = request_.files.size();
    return {};
  }

  // The whole conversation, for a request that wants no answer.
  std::vector<ForeignTurn> TakeTurns() {
    Close();
    return std::move(turns());
  }

 private:
  std::vector<ForeignTurn>& turns() { return request_.conversation.before; }
  void Close() {
    if (!asked_) return;
    asked_->files = request_.files.size();
    turns().push_back(*std::exchange(asked_, std::nullopt));
  }
  void AnswerAgent(const std::string& text) {
    if (IsBlank(text)) return;  // it called tools, or failed, which is no answer
    ends_empty_ = false;
    Close();
    if (turns().empty()) return AddLine(request_.conversation.opening, text);
    auto& answer = turns().back().answer;
    answer = answer ? *answer + "\n" + text : text;
  }
  void AddFiles(std::vector<ForeignFile>& files) {
    for (ForeignFile& file : files) request_.message_files.push_back({request_.messages.size(), std::move(file)});
  }

  OpenAiRequest& request_;
  std::optional<ForeignTurn> asked_{};          // the last message, for an agent
  bool ends_empty_ = false;                     // the last message is empty
  std::map<std::string, std::string> calls_{};  // calls of the client's tools, by id
};

Result<std::vector<ToolCall>> ReadToolCalls(const Json& json) {
  std::vector<ToolCall> calls;
  if (json.is_null()) return calls;
  if (!json.is_array()) return Fail(WrongType("tool_calls", "an array"));
  for (const Json& each : json) {
    const Json& function = MemberOf(each, "function");
    calls.push_back({TextMember(each, "id"), TextMember(function, "name"), TextMember(function, "arguments")});
  }
  return calls;
}

Result<std::optional<double>> Number(const Json& object, const char* name, double most) {
  const Json& value = MemberOf(object, name);
  if (value.is_null()) return std::nullopt;
  if (!value.is_number() || !(value.get<double>() >= 0 && value.get<double>() <= most)) {
    return Fail(WrongType(name, ("a number from 0 to " + std::to_string(static_cast<int>(most))).c_str()));
  }
  return value.get<double>();
}

// The first of these names that is present, because an older name exists.
Result<std::int64_t> MostTokens(const Json& body, std::initializer_list<const char*> names) {
  constexpr std::int64_t kMost = 100'000'000;
  for (const char* name : names) {
    const Json& value = MemberOf(body, name);
    if (value.is_null()) continue;
    const bool fits = value.is_number_integer() && value >= 1 && value <= kMost;
    return fits ? Result<std::int64_t>(value.get<std::int64_t>()) : Fail(WrongType(name, "a whole number above 0"));
  }
  return 0;
}

Result<std::vector<std::string>> StopTexts(const Json& body) {
  const Json& stop = MemberOf(body, "stop");
  if (stop.is_null()) return std::vector<std::string>();
  if (stop.is_string()) return std::vector<std::string>{stop.get<std::string>()};
  const bool are_texts =
      stop.is_array() && std::all_of(stop.begin(), stop.end(), [](const Json& each) { return each.is_string(); });
  if (!are_texts) return Fail(WrongType("stop", "a string or an array of strings"));
  return stop.get<std::vector<std::string>>();
}

// {"type":"json_schema","json_schema":{"name","schema","strict"}}, or for Responses with these members beside the type.
Result<void> TakeFormat(const Json& format, const char* param, ModelWishes& wishes) {
  if (format.is_null()) return {};
  const std::string type = TextMember(format, "type");
  if (type == "text") return {};
  if (type == "json_object") return wishes.format = ModelWishes::Format::kJson, Result<void>();
  if (type != "json_schema") {
    return Fail(Invalid("unsupported_value",
                        "the type of \"" + std::string(param) + "\" must be text, json_object or json_schema", param));
  }
  const Json& what = format.contains("json_schema") ? MemberOf(format, "json_schema") : format;
  if (!MemberOf(what, "schema").is_object() || TextMember(what, "name").empty()) {
    return Fail(Invalid("invalid_member", "a json_schema must have a \"name\" and a \"schema\"", param));
  }
  wishes.format = ModelWishes::Format::kSchema;
  wishes.schema = DumpJson(MemberOf(what, "schema"));
  wishes.schema_name = TextMember(what, "name");
  wishes.strict = MemberOf(what, "strict") == true;
  return {};
}

Result<Json> ReadCommon(std::string_view text, Interface interface, OpenAiRequest& request) {
  auto body = TRY(ParseJson(text.empty() ? "{}" : text));
  if (!body.is_object()) return Fail(Invalid("invalid_body", "the body must be a JSON object", ""));
  const auto model = TRY(Text(body, "model"));
  if (!model || model->empty()) {
    return Fail(Invalid("missing_required_parameter", "\"model\" is missing; GET /v1/models lists them", "model"));
  }
  request.asked_model = *model;
  request.is_agent = *model == kAgent || model->starts_with(std::string(kAgent) + "/");
  if (!request.is_agent) request.model = *model;
  if (request.is_agent && *model != kAgent) request.model = model->substr(kAgent.size() + 1);
  request.interface = interface;
  request.left_out_members = TRY(LeftOutMembers(body, interface, request.is_agent));
  request.stream = TRY(Flag(body, "stream"));
  const Json& metadata = MemberOf(body, "metadata");
  if (!metadata.is_null() && !metadata.is_object()) return Fail(WrongType("metadata", "a JSON object"));
  if (metadata.is_object()) {
    request.metadata = DumpJson(metadata);
    request.chat_name = TRY(Text(metadata, "chat_id"));
  }
  TRY(ReadTools(body, request));
  if (!request.is_agent) {
    request.wishes.temperature = TRY(Number(body, "temperature", 2));
    request.wishes.top_p = TRY(Number(body, "top_p", 1));
  }
  return body;
}

Result<void> TakeItem(Conversation& conversation, const Json& item) {
  if (!item.is_object()) return Fail(WrongType("input", "a string or an array of items"));
  const std::string type = TextMember(item, "type"), role = TextMember(item, "role");
  if (type == "function_call") {
    return conversation.Answer(
        Json(), {{TextMember(item, "call_id"), JoinedName(TextMember(item, "namespace"), TextMember(item, "name")),
                  TextMember(item, "arguments")}});
  }
  if (type == "function_call_output") {
    return conversation.TakeToolResult(TextMember(item, "call_id"), MemberOf(item, "output"));
  }
  if (type == "reasoning") return {};
  if (!type.empty() && type != "message") {
    return Fail(Invalid("unsupported_value",
                        "items of the type \"" + std::string(Utf8Prefix(type, kMostOfAType)) + "\" are not supported",
                        "input"));
  }
  const Json& content = MemberOf(item, "content");
  if (role == "system" || role == "developer") return conversation.Instruct(content);
  if (role == "user") return conversation.Ask(content);
  if (role == "assistant") return conversation.Answer(content, {});
  return Fail(Invalid("invalid_member", "a message's role must be user, assistant, system or developer", "input"));
}

}  // namespace

Result<OpenAiRequest> ParseChatCompletion(std::string_view text) {
  OpenAiRequest request;
  const Json body = TRY(ReadCommon(text, Interface::kChatCompletions, request));
  const Json& choices = MemberOf(body, "n");
  if (!choices.is_null() && choices != 1) {
    return Fail(Invalid("unsupported_value", "\"n\" must be 1: ask again for another answer", "n"));
  }
  const Json& stream_options = MemberOf(body, "stream_options");
  if (!stream_options.is_null() && !stream_options.is_object()) return Fail(WrongType("stream_options", "an object"));
  request.include_usage = TRY(Flag(stream_options, "include_usage"));
  if (!request.is_agent) {
    request.wishes.max_output_tokens = TRY(MostTokens(body, {"max_completion_tokens", "max_tokens"}));
    request.wishes.stop = TRY(StopTexts(body));
    TRY(TakeFormat(MemberOf(body, "response_format"), "response_format", request.wishes));
  }
  const Json& messages = MemberOf(body, "messages");
  if (!messages.is_array()) {
    return Fail(messages.is_null() ? Invalid("missing_required_parameter", "\"messages\" is missing", "messages")
                                   : WrongType("messages", "an array"));
  }
  Conversation conversation(request);
  for (const Json& message : messages) {
    if (!message.is_object()) return Fail(WrongType("messages", "an array of objects"));
    const std::string role = TextMember(message, "role");
    const Json& content = MemberOf(message, "content");
    if (role == "system" || role == "developer") {
      TRY(conversation.Instruct(content));
    } else if (role == "user") {
      TRY(conversation.Ask(content));
    } else if (role == "assistant") {
      TRY(conversation.Answer(content, TRY(ReadToolCalls(MemberOf(message, "tool_calls")))));
    } else if (role == "tool" || role == "function") {
      TRY(conversation.TakeToolResult(TextMember(message, "tool_call_id"), content));
    } else {
      return Fail(
          Invalid("invalid_member", "a message's role must be system, developer, user, assistant or tool", "messages"));
    }
  }
  TRY(conversation.Finish("messages"));
  return request;
}

Result<OpenAiRequest> ParseResponse(std::string_view text) {
  OpenAiRequest request;
  const Json body = TRY(ReadCommon(text, Interface::kResponses, request));
  request.background = TRY(Flag(body, "background"));
  request.previous_response_id = TRY(Text(body, "previous_response_id"));
  const Json& chat = MemberOf(body, "conversation");
  if (!chat.is_null()) {
    if (!chat.is_string() && !chat.is_object()) return Fail(WrongType("conversation", "the id of a chat"));
    request.chat_name = chat.is_string() ? chat.get<std::string>() : TextMember(chat, "id");
    request.continues = true;
    if (request.chat_name->empty()) return Fail(WrongType("conversation", "the id of a chat"));
    if (request.previous_response_id) {
      return Fail(
          Invalid("invalid_member", "\"conversation\" does not go with \"previous_response_id\"", "conversation"));
    }
  }
  if (!request.is_agent && (request.previous_response_id || !chat.is_null())) {
    return Fail(Invalid("unsupported_value",
                        "a model alone remembers nothing: send all messages, or ask the agent reprise/" +
                            std::string(Utf8Prefix(request.model, 80)),
                        request.previous_response_id ? "previous_response_id" : "conversation"));
  }
  request.instructions = TRY(Text(body, "instructions")).value_or("");
  if (!request.is_agent) {
    request.wishes.max_output_tokens = TRY(MostTokens(body, {"max_output_tokens"}));
    TRY(TakeFormat(MemberOf(MemberOf(body, "text"), "format"), "text", request.wishes));
  }
  const Json& input = MemberOf(body, "input");
  if (input.is_null()) return Fail(Invalid("missing_required_parameter", "\"input\" is missing", "input"));
  Conversation conversation(request);
  if (input.is_string()) {
    TRY(conversation.Ask(input));
  } else if (!input.is_array()) {
    return Fail(WrongType("input", "a string or an array of items"));
  } else {
    for (const Json& item : input) TRY(TakeItem(conversation, item));
  }
  TRY(conversation.Finish("input"));
  return request;
}

Result<ConversationBody> ParseConversation(std::string_view text, bool needs_items) {
  const Json body = TRY(ParseJson(text.empty() ? "{}" : text));
  if (!body.is_object()) return Fail(Invalid("invalid_body", "the body must be a JSON object", ""));
  ConversationBody parsed;
  const Json& metadata = MemberOf(body, "metadata");
  if (!metadata.is_null() && !metadata.is_object()) return Fail(WrongType("metadata", "a JSON object"));
  if (metadata.is_object()) parsed.metadata = DumpJson(metadata);
  const Json& items = MemberOf(body, "items");
  if (items.is_null() && !needs_items) return parsed;
  if (!items.is_array()) return Fail(WrongType("items", "an array of items"));
  OpenAiRequest request{.is_agent = true};
  Conversation conversation(request);
  for (const Json& item : items) TRY(TakeItem(conversation, item));
  parsed.turns = conversation.TakeTurns();
  const auto refuse = [](const char* why) { return Fail(Invalid("unsupported_value", why, "items")); };
  if (!request.instructions.empty()) {
    return refuse("a conversation keeps no system messages: send them with each response, as \"instructions\"");
  }
  if (!request.conversation.opening.empty()) return refuse("the first message must be the user's");
  if (std::any_of(parsed.turns.begin(), parsed.turns.end(), [](const ForeignTurn& turn) { return turn.files > 0; })) {
    return refuse("files come with a message that is to be answered");
  }
  if (needs_items && parsed.turns.empty()) return Fail(WrongType("items", "items that say something"));
  return parsed;
}

std::string ResponseId(const InteractionRef& interaction) {
  return "resp_" + interaction.chat_id.str() + "_" + interaction.interaction_id.str();
}

std::optional<InteractionRef> ParseResponseId(std::string_view id) {
  constexpr std::string_view kPrefix = "resp_", kNumber = "_int_";
  const std::size_t number = id.rfind(kNumber);
  if (!id.starts_with(kPrefix) || number == std::string_view::npos || number < kPrefix.size()) return std::nullopt;
  const auto chat = ChatId::Parse(id.substr(kPrefix.size(), number - kPrefix.size()));
  const auto interaction = InteractionId::Parse(id.substr(number + 1));
  if (!chat || !interaction) return std::nullopt;
  return InteractionRef{*chat, *interaction};
}

Error WrongType(std::string_view param, const char* type) {
  return Invalid("invalid_member", "\"" + std::string(param) + "\" must be " + type, param);
}

Error ParamError(ErrorCode code, std::string reason, std::string message, std::string_view param) {
  return Error{.code = code,
               .reason = std::move(reason),
               .message = std::move(message),
               .details_json = DumpJson({{"param", std::string(param)}})};
}

}  // namespace reprise::openai
