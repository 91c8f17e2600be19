#include "mcp/mcp_tool.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "approval/decision.h"
#include "base/text.h"
#include "crypto/digest.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxText = 128 * 1024;
constexpr std::size_t kAtEachEnd = 16 * 1024;  // of a longer text that is kept

// The decoded size of base64, computed without decoding.
std::string SizeText(const std::string& base64) {
  const std::size_t bytes = base64.size() / 4 * 3;
  return bytes < 1024 ? std::to_string(bytes) + " bytes" : std::to_string(bytes / 1024) + " KiB";
}

std::string TextBlock(const std::string& text);
void DescribeMedia(Json& value);

std::string TypeText(const Json& object) {
  const std::string type = TextMember(object, "mimeType");
  return type.empty() ? "" : ", " + type;
}

std::string ContentsText(const Json& contents) {
  const std::string uri = TextMember(contents, "uri");
  if (MemberOf(contents, "text").is_string()) return "[" + uri + "]\n" + TextBlock(TextMember(contents, "text"));
  return "(" + uri + TypeText(contents) + ", " + SizeText(TextMember(contents, "blob")) + ", not text)";
}

// The base64 in this member as a file; nullopt if it is not valid base64.
std::optional<ToolFile> FileOf(const Json& object, const char* member) {
  auto bytes = DecodeBase64(TextMember(object, member));
  if (!bytes || bytes->empty()) return std::nullopt;
  return ToolFile{.mime_type = TextMember(object, "mimeType"), .content = *std::move(bytes)};
}

// "report.pdf" for "file:///a/report.pdf?x"; empty if there is no name.
std::string NameIn(const std::string& uri) {
  const std::string path = uri.substr(0, uri.find_first_of("?#"));
  return path.substr(path.find_last_of('/') + 1);
}

// A resource's contents as a file; nullopt if they are text.
std::optional<ToolFile> FileOfContents(const Json& contents) {
  if (!MemberOf(contents, "blob").is_string()) return std::nullopt;
  auto file = FileOf(contents, "blob");
  if (file) file->filename = NameIn(TextMember(contents, "uri"));
  return file;
}

// Adds a block that holds a file to `files`. False if the block holds none.
bool TakeFile(const Json& block, std::vector<ToolFile>& files) {
  const std::string type = TextMember(block, "type");
  std::optional<ToolFile> file;
  if (type == "image" || type == "audio") file = FileOf(block, "data");
  if (type == "resource") file = FileOfContents(MemberOf(block, "resource"));
  if (!file) return false;
  files.push_back(*std::move(file));
  return true;
}

std::string BlockText(const Json& block) {
  if (block.is_string()) return TextBlock(block.get<std::string>());
  const std::string type = TextMember(block, "type");
  const Json& words = MemberOf(block, "text");
  if (words.is_string() && (type == "text" || type.empty())) return TextBlock(words.get<std::string>());
  if (type == "image" || type == "audio")
    return "(" + type + TypeText(block) + ", " + SizeText(TextMember(block, "data")) + ", not shown)";
  if (type == "resource") return ContentsText(MemberOf(block, "resource"));
  if (type == "resource_link") {
    std::string text =
        "(resource " + TextMember(block, "uri") + ": " + TextMember(block, "name") + TypeText(block) + ")";
    if (const std::string about = TextMember(block, "description"); !about.empty()) text += " " + about;
    return text;
  }
  Json described = block;  // its type is unknown or missing, but the model may understand it
  DescribeMedia(described);
  return DumpJson(described);
}

// Whether text is only base64, or a data: URL with base64, which is useless to a model.
bool IsEncoded(std::string_view text) {
  static constexpr std::size_t kLongerThanAnyKey = 512;
  static constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_";
  if (text.starts_with("data:")) {
    const std::size_t comma = text.find(";base64,");
    return comma != std::string_view::npos && comma < 128;
  }
  if (text.size() < kLongerThanAnyKey) return false;
  const std::size_t end = text.find_first_not_of(kAlphabet);
  return text.find_first_not_of("=", std::min(end, text.size())) == std::string_view::npos;
}

bool IsMedium(const Json& value) {
  const std::string type = TextMember(value, "type");
  return ((type == "image" || type == "audio") && MemberOf(value, "data").is_string()) ||
         MemberOf(value, "blob").is_string();
}

// Replaces media and base64 in `value` by descriptions.
void DescribeMedia(Json& value) {
  if (IsMedium(value)) {
    value = MemberOf(value, "blob").is_string() ? ContentsText(value) : BlockText(value);
  } else if (value.is_structured()) {
    for (Json& each : value) DescribeMedia(each);
  } else if (value.is_string() && IsEncoded(value.get_ref<const std::string&>())) {
    value = "(base64, " + SizeText(value.get_ref<const std::string&>()) + ", not shown)";
  }
}

// Some servers put media into text blocks.
std::string TextBlock(const std::string& text) {
  auto parsed = ParseJson(text);
  if (!parsed) return IsEncoded(text) ? "(base64, " + SizeText(text) + ", not shown)" : text;
  const Json before = *parsed;
  DescribeMedia(*parsed);
  return *parsed == before ? text : DumpJson(*parsed);
}

void AddLine(std::string& text, const std::string& line) {
  if (!text.empty() && text.back() != '\n') text += '\n';
  text += line;
}

// Whether `text` equals `value`, as a string or as JSON.
bool Tells(const std::string& text, const Json& value) {
  if (value == text) return true;
  const auto parsed = ParseJson(text);
  return parsed && *parsed == value;
}

// Servers repeat structured content as blocks for older clients: one text with all of it or with its only member, one
// text for each element of that member, or the blocks themselves as the member.
bool Repeats(const Json& blocks, const Json& structured) {
  const auto tells = [](const Json& block, const Json& value) {
    return TextMember(block, "type") == "text" && Tells(TextMember(block, "text"), value);
  };
  const Json& only = structured.size() == 1 ? structured.front() : structured;
  for (const Json& block : blocks) {
    if (tells(block, structured) || tells(block, only)) return true;
  }
  if (only == blocks) return true;
  return only.is_array() && only.size() == blocks.size() && !blocks.empty() &&
         std::equal(blocks.begin(), blocks.end(), only.begin(), tells);
}

// The content of a tool's result as blocks. Some servers send a single block, a text, or a result without content.
Json BlocksOf(const Json& result) {
  if (!result.is_object()) return result.is_null() ? Json::array() : result.is_array() ? result : Json::array({result});
  const Json& content = MemberOf(result, "content");
  if (content.is_array()) return content;
  if (!content.is_null()) return Json::array({content});
  Json rest = result;
  for (const char* known : {"content", "structuredContent", "isError", "_meta", "resultType"}) rest.erase(known);
  return rest.empty() ? Json::array() : Json::array({std::move(rest)});
}

}  // namespace

std::string Shortened(std::string text, const std::function<std::unique_ptr<OutputKeeper>()>& keep) {
  if (text.size() <= kMaxText) return text;
  const auto keeper = keep ? keep() : nullptr;
  const std::size_t at_each_end = keeper ? kAtEachEnd : kMaxText / 2;
  const std::string_view whole = text;
  std::string_view head = whole.substr(0, at_each_end);
  head.remove_suffix(IncompleteUtf8Tail(head));
  const std::string_view tail = FromUtf8Start(whole.substr(whole.size() - at_each_end));
  std::string shortened(head);
  shortened.append("\n(... ").append(std::to_string(whole.size() - head.size() - tail.size()));
  shortened.append(" bytes cut ...)\n").append(tail);
  if (!keeper) return shortened;
  keeper->Add(whole);
  return shortened + "\n" + keeper->Finish();
}

bool SaysError(const Json& result) {
  const Json& said = MemberOf(result, "isError");
  if (said.is_string()) return said != "" && LowerCase(said.get_ref<const std::string&>()) != "false";
  return !said.is_null() && said != false && said != 0;
}

ToolOutcome ToolResultText(const Json& result) {
  std::string text;
  const Json& structured = MemberOf(result, "structuredContent");
  if (MemberOf(structured, "requires_confirmation") == true) {
    std::string message = TextMember(structured, "message");
    if (message.empty()) message = "The tool asks for confirmation.";
    return {.output = std::move(message), .requires_confirmation = true};
  }
  std::vector<ToolFile> files;
  const Json content = BlocksOf(result);
  for (const Json& block : content) {
    if (!TakeFile(block, files)) AddLine(text, BlockText(block));
  }
  if (!structured.is_null() && !Repeats(content, structured)) {
    Json described = structured;
    DescribeMedia(described);
    AddLine(text, DumpJson(described));
  }
  if (text.empty() && files.empty()) text = "(no output)";
  return {.output = std::move(text), .is_error = SaysError(result), .files = std::move(files)};
}

ToolOutcome ResourceOutcome(const Json& result) {
  ToolOutcome outcome;
  const Json& given = MemberOf(result, "contents");
  const Json contents = given.is_object() ? Json::array({given}) : given;
  if (contents.is_array()) {
    for (const Json& each : contents) {
      if (auto file = FileOfContents(each)) {
        outcome.files.push_back(*std::move(file));
      } else {
        AddLine(outcome.output, ContentsText(each));
      }
    }
  }
  if (given.is_null() && !result.empty()) outcome.output = DumpJson(result);  // the model may understand it
  if (outcome.output.empty() && outcome.files.empty()) outcome.output = "(empty)";
  return outcome;
}

std::string PromptText(const Json& result) {
  std::string text = TextMember(result, "description");
  const Json& messages = MemberOf(result, "messages");
  if (messages.is_array()) {
    for (const Json& message : messages) {
      AddLine(text, TextMember(message, "role") + ": " + BlockText(MemberOf(message, "content")));
    }
  }
  return text.empty() ? "(empty)" : text;
}

namespace {

constexpr std::size_t kMaxQuestion = 4000;

Json WithDefaults(const Json& schema, const Json& given) {
  Json content = Json::object();
  const Json& properties = MemberOf(schema, "properties");
  if (!properties.is_object()) return content;
  for (const auto& [name, field] : properties.items()) {
    if (given.contains(name)) {
      content[name] = given[name];
    } else if (field.is_object() && field.contains("default")) {
      content[name] = field["default"];
    }
  }
  return content;
}

bool HasRequired(const Json& schema, const Json& content) {
  const Json& required = MemberOf(schema, "required");
  return !required.is_array() || std::ranges::all_of(required, [&](const Json& name) {
    return !name.is_string() || content.contains(name.get<std::string>());
  });
}

}  // namespace

Result<ToolQuestion> ParseQuestion(const Json& params) {
  ToolQuestion question{
      .text = std::string(Utf8Prefix(TextMember(params, "message"), kMaxQuestion)), .schema = {}, .url = {}};
  if (TextMember(params, "mode") == "url") {
    question.url = TextMember(params, "url");
    const bool usable = question.url.starts_with("https://") || question.url.starts_with("http://");
    if (!usable) return Fail(ErrorCode::kInvalidArgument, "the url must be http or https");
    return question;
  }
  const Json& schema = MemberOf(params, "requestedSchema");
  if (!schema.is_object()) return Fail(ErrorCode::kInvalidArgument, "requestedSchema is missing");
  question.schema = DumpJson(schema);
  return question;
}

Json AnswerToJson(const ToolQuestion& question, const ToolAnswer& answer) {
  if (answer.action == ToolAnswer::Action::kDecline) return {{"action", "decline"}};
  if (answer.action == ToolAnswer::Action::kCancel) return {{"action", "cancel"}};
  if (question.schema.empty()) return {{"action", "accept"}};
  const auto given = ParseJson(answer.content.empty() ? "{}" : answer.content);
  const auto schema = ParseJson(question.schema);
  if (!given || !given->is_object() || !schema) return {{"action", "cancel"}};
  Json content = WithDefaults(*schema, *given);
  if (!HasRequired(*schema, content)) return {{"action", "cancel"}};
  return {{"action", "accept"}, {"content", std::move(content)}};
}

namespace {

constexpr std::size_t kMaxName = 64;
constexpr std::size_t kDigestDigits = 8;
constexpr std::string_view kBetween = "__";

}  // namespace

std::string McpToolName(std::string_view server, std::string_view tool) {
  std::string name = std::string(server) + std::string(kBetween) + std::string(tool);
  // The first "__" must be the separator.
  const bool one_reading = server.find(kBetween) == std::string_view::npos && !server.ends_with('_');
  if (one_reading && !tool.empty() && name.size() <= kMaxName && std::ranges::all_of(name, IsToolNameCharacter)) {
    return name;
  }
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !IsToolNameCharacter(c); }, '_');
  name.resize(std::min(name.size(), kMaxName - kDigestDigits - 1));
  const std::string digest = Sha256Digest({server, std::string_view("\0", 1), tool});
  return name + "_" + digest.substr(digest.find(':') + 1, kDigestDigits);
}

namespace {

// How long a call waits for a server that is being started.
constexpr std::chrono::seconds kMaxStarting{30};
// How long AwaitOffer waits for the server's current tools. An early call is harmless, because Run checks again.
constexpr std::chrono::seconds kMaxListing{5};

template <typename T, typename Line>
ToolOutcome Lines(const Result<std::vector<T>>& items, Line line) {
  if (!items) return {.output = items.error().message, .is_error = true};
  std::string text;
  for (const T& item : *items) text += line(item) + "\n";
  return {.output = text.empty() ? "(none)" : text, .is_error = false};
}

std::string ResourceLine(const McpResource& resource) {
  std::string line = resource.uri;
  if (!resource.name.empty()) line += " (" + resource.name + ")";
  if (!resource.type.empty()) line += " " + resource.type;
  if (!resource.description.empty()) line += ": " + resource.description;
  return line;
}

std::string PromptLine(const McpPrompt& prompt) {
  std::string line = prompt.name + "(";
  for (const auto& [name, required] : prompt.arguments) {
    if (line.back() != '(') line += ", ";
    line += name + (required ? "" : "?");
  }
  return line + ")" + (prompt.description.empty() ? "" : ": " + prompt.description);
}

ToolOutcome OutcomeOf(Result<ToolOutcome> outcome) {
  if (!outcome) return {.output = outcome.error().message, .is_error = true};
  return *std::move(outcome);
}

// Whether this argument is optional but must not be null.
bool RefusesNull(const Json& schema, const std::string& argument) {
  const Json& required = MemberOf(schema, "required");
  if (required.is_array() && std::find(required.begin(), required.end(), argument) != required.end()) return false;
  const Json& member = MemberOf(MemberOf(schema, "properties"), argument);
  const Json& type = MemberOf(member, "type");
  const Json& values = MemberOf(member, "enum");
  if (type.is_null() && values.is_array()) return std::find(values.begin(), values.end(), nullptr) == values.end();
  return type.is_array() ? std::find(type.begin(), type.end(), "null") == type.end()
                         : type.is_string() && type != "null";
}

// Removes null arguments where the schema allows no null, because models write null for an omitted argument and servers
// reject it. The rest stays unchanged, byte for byte.
std::string WithoutNulls(std::string_view arguments, const std::string& schema) {
  const auto parsed = ParseJson(schema);
  if (!parsed) return std::string(arguments);
  bool any = false;
  std::string kept;
  for (const RawJsonMember& member : RawMembers(arguments)) {
    const auto name = ParseJson(member.name);
    const bool is_left_out = member.value == "null" && name && name->is_string() &&
                             RefusesNull(*parsed, name->get_ref<const std::string&>());
    any = any || is_left_out;
    if (is_left_out) continue;
    kept.append(kept.empty() ? "" : ",").append(member.name).append(":").append(member.value);
  }
  return any ? "{" + kept + "}" : std::string(arguments);
}

class McpTool final : public Tool {
 public:
  McpTool(std::shared_ptr<ServerConnection> server, McpOffer offer, ToolTraits traits)
      : server_(std::move(server)), offer_(std::move(offer)), traits_(std::move(traits)), launch_(server_->launch()) {}

  const ToolTraits& traits() const override { return traits_; }

  void AwaitOffer(const std::stop_token& stop) override { static_cast<void>(server_->AwaitOffers(kMaxListing, stop)); }

  std::vector<CallPattern> PatternsOf(std::string_view) const override {
    return {{std::string(every_call::kPattern), *MeaningOf(every_call::kPattern, PatternUse::kAllow)}};
  }
  Result<std::string> MeaningOf(std::string_view pattern, PatternUse) const override {
    return every_call::MeaningOf(pattern, "Calls " + traits_.spec.name + " of the MCP server " + Name() +
                                              " with any arguments, as long as server and tool are what they are now.");
  }
  std::optional<std::vector<std::size_t>> CoveredBy(const std::vector<std::string>& patterns,
                                                    std::string_view) const override {
    return every_call::CoveredBy(patterns);
  }
  Touch Touches(std::string_view, std::string_view) const override { return Touch::kYes; }

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    const auto session =
        server_->SessionFor(offer_, std::min<std::chrono::milliseconds>(context.timeout, kMaxStarting), context.stop);
    const bool changed = session ? IsAnother() : session.error().code == ErrorCode::kConflict;
    if (changed) {
      return {
          .output = "Not run: the MCP server " + Name() + " has changed this tool just now. Look at what it is now.",
          .is_error = true};
    }
    if (!session)
      return {.output = "The MCP server " + Name() + " is not there: " + session.error().message, .is_error = true};
    if (context.approved && traits_.needs_consent) server_->Approved(offer_);
    RequestOptions options{.timeout = context.timeout, .stop = context.stop};
    options.ask = context.ask;
    options.span = context.span;
    options.header_parameters = &offer_.definition.header_parameters;
    if (context.on_output) {
      options.on_progress = [&](std::string_view text) { context.on_output(std::string(text) + "\n"); };
    }
    ToolOutcome outcome = Call(**session, arguments, options);
    outcome.output = Shortened(std::move(outcome.output), context.keep_output);
    return outcome;
  }

 private:
  const std::string& Name() const { return server_->options().name; }

  // Whether the program that runs now differs from the one that was offered and approved.
  bool IsAnother() const { return server_->launch() != launch_; }

  ToolOutcome Call(Session& session, std::string_view arguments, const RequestOptions& options) const {
    const auto parsed = ParseJson(arguments.empty() ? "{}" : arguments);
    const bool is_object = parsed && parsed->is_object();
    const Json given = is_object ? *parsed : Json::object();
    switch (offer_.kind) {
      case McpOffer::Kind::kTool: {
        const auto call = offer_.definition.as_task ? CallToolAsTask : CallTool;
        const std::string told =
            is_object ? WithoutNulls(arguments, offer_.definition.input_schema) : std::string(arguments);
        const auto outcome = call(session, offer_.definition.name, told, options);
        if (outcome) return *outcome;
        if (outcome.error().Is(Reason::kMcpHeaderMismatch)) server_->ListAgain();  // its tools may have changed
        return {.output = "The call of the MCP server " + Name() + " failed: " + outcome.error().message,
                .is_error = true};
      }
      case McpOffer::Kind::kListResources: {
        ToolOutcome listed = Lines(ListResources(session, options), ResourceLine);
        const auto templates = ListResourceTemplates(session, options);  // not every server has any
        if (templates && !templates->empty()) listed.output += "Templates:\n" + Lines(templates, ResourceLine).output;
        return listed;
      }
      case McpOffer::Kind::kReadResource:
        return OutcomeOf(ReadResource(session, TextMember(given, "uri"), options));
      case McpOffer::Kind::kListPrompts:
        return Lines(ListPrompts(session, options), PromptLine);
      case McpOffer::Kind::kGetPrompt: {
        const std::string_view inner = given.contains("arguments") ? RawMember(arguments, "arguments") : "{}";
        return OutcomeOf(GetPrompt(session, TextMember(given, "name"), inner, options).map([](std::string text) {
          return ToolOutcome{.output = std::move(text)};
        }));
      }
    }
    return {.output = "unknown kind of tool", .is_error = true};
  }

  const std::shared_ptr<ServerConnection> server_;
  const McpOffer offer_;
  const ToolTraits traits_;
  const std::string launch_;
};

class UnlistedMcpTool final : public Tool {
 public:
  UnlistedMcpTool(std::shared_ptr<ServerConnection> server, std::string_view name) : server_(std::move(server)) {
    traits_.spec = {std::string(name), "a tool of the MCP server " + server_->options().name, R"({"type":"object"})"};
    traits_.read_only = traits_.idempotent = false;
    traits_.requires_approval = traits_.needs_consent = true;
    traits_.risk = Risk::kHigh;
    traits_.approval_reason = "calls the MCP server " + server_->options().name;
    traits_.terms.reset();
  }

  const ToolTraits& traits() const override { return traits_; }

  void AwaitOffer(const std::stop_token& stop) override { static_cast<void>(server_->AwaitOffers(kMaxStarting, stop)); }

  // The caller has waited for the server in vain. An unknown tool cannot have been approved, so nothing runs.
  ToolOutcome Run(std::string_view, const ToolContext& context) override {
    const auto known = server_->AwaitOffers(std::chrono::milliseconds(0), context.stop);
    const std::string why = known ? "it was still being started" : known.error().message;
    return {.output = "The MCP server " + server_->options().name + " is not there: " + why, .is_error = true};
  }

 private:
  const std::shared_ptr<ServerConnection> server_;
  ToolTraits traits_;
};

}  // namespace

std::shared_ptr<Tool> MakeMcpTool(std::shared_ptr<ServerConnection> server, McpOffer offer, ToolTraits traits) {
  return std::make_shared<McpTool>(std::move(server), std::move(offer), std::move(traits));
}

std::shared_ptr<Tool> MakeUnlistedMcpTool(std::shared_ptr<ServerConnection> server, std::string_view name) {
  // Compares the part that the names of all this server's tools share.
  const std::string example = McpToolName(server->options().name, "x");
  if (!name.starts_with(example.substr(0, server->options().name.size() + 2))) return nullptr;
  return std::make_shared<UnlistedMcpTool>(std::move(server), name);
}

}  // namespace reprise
