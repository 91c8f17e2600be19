#include "mcp/mcp_tool.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "approval/decision.h"
#include "base/json.h"
#include "base/text.h"
#include "crypto/digest.h"

namespace reprise {

namespace {

constexpr std::size_t kMaxName = 64;
constexpr std::size_t kDigestDigits = 8;
constexpr std::string_view kBetween = "__";

}  // namespace

std::string McpToolName(std::string_view server, std::string_view tool) {
  std::string name = std::string(server) + std::string(kBetween) + std::string(tool);
  // The first "__" must be the separator.
  const bool one_reading = server.find(kBetween) == std::string_view::npos && !server.ends_with('_');
  if (one_reading && !tool.empty() && name.size() <= kMaxName &&
      std::all_of(name.begin(), name.end(), IsToolNameCharacter)) {
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

ToolOutcome ReadOutcome(Result<ToolOutcome> read) {
  if (!read) return {.output = read.error().message, .is_error = true};
  return *std::move(read);
}

ToolOutcome TextOutcome(const Result<std::string>& text) {
  if (!text) return {.output = text.error().message, .is_error = true};
  return {.output = *text, .is_error = false};
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

std::string StringMember(const Json& object, const char* name) {
  return object.contains(name) && object[name].is_string() ? object[name].get<std::string>() : std::string();
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
    return Call(**session, arguments, options);
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
        return ReadOutcome(ReadResource(session, StringMember(given, "uri"), options));
      case McpOffer::Kind::kListPrompts:
        return Lines(ListPrompts(session, options), PromptLine);
      case McpOffer::Kind::kGetPrompt: {
        const std::string_view inner = given.contains("arguments") ? RawMember(arguments, "arguments") : "{}";
        return TextOutcome(GetPrompt(session, StringMember(given, "name"), inner, options));
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
