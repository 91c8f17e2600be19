#include "client/acp/client_tools.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/embedded.h"
#include "app/mcp_setup.h"
#include "base/logging.h"
#include "base/posix_file_system.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "terminal/console.h"

namespace reprise::acp {
namespace {

constexpr std::size_t kMostServers = 32;
constexpr std::size_t kMostTools = 250, kMostBytes = 8u << 20;  // offered to the server
constexpr std::size_t kMostFiles = 20;                          // per call
constexpr std::chrono::minutes kLongestCall{60};                // the server's own limit decides
constexpr const char* kAnyBytes = "application/octet-stream";

Error BadServer(const std::string& message) {
  return MakeError(ErrorCode::kInvalidArgument, "\"mcpServers\": " + message);
}

// Makes a unique name that folders and tools can have.
std::string PlainName(std::string name, const std::vector<McpServerOptions>& others) {
  constexpr std::size_t kMost = 40;
  for (char& c : name) {
    if (!IsToolNameCharacter(c)) c = '-';
  }
  if (name.size() > kMost) name.resize(kMost);
  const auto is_taken = [&](const std::string& candidate) {
    return std::ranges::any_of(others, [&](const auto& other) { return other.name == candidate; });
  };
  std::string candidate = name;
  for (int next = 2; is_taken(candidate); ++next) candidate = name + "-" + std::to_string(next);
  return candidate;
}

// [{"name", "value"}, ...]; absent: none.
Result<std::vector<std::pair<std::string, std::string>>> Pairs(const Json& server, const char* member) {
  const Json& list = MemberOf(server, member);
  if (list.is_null()) return std::vector<std::pair<std::string, std::string>>();
  if (!list.is_array()) return Fail(BadServer(std::string("\"") + member + "\" must be an array"));
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const Json& each : list) {
    const std::string name = TextMember(each, "name");
    if (name.empty() || !MemberOf(each, "value").is_string()) {
      return Fail(BadServer(std::string("an element of \"") + member + "\" needs a \"name\" and a \"value\""));
    }
    std::string value = TextMember(each, "value");
    if (HasControlCharacter(name) || HasControlCharacter(value) || name.find_first_of("=: ") != std::string::npos) {
      return Fail(BadServer(std::string("\"") + member + "\" has a name or a value that cannot be one"));
    }
    pairs.emplace_back(name, std::move(value));
  }
  return pairs;
}

Result<McpServerOptions> ReadServer(const Json& server, const std::vector<McpServerOptions>& others) {
  const std::string name = TextMember(server, "name"), type = TextMember(server, "type");
  if (name.empty()) return Fail(BadServer("a server needs a \"name\""));
  McpServerOptions options{.name = PlainName(name, others), .command = {}};
  if (type == "http") {
    options.url = TextMember(server, "url");
    const bool is_http = options.url.starts_with("http://") || options.url.starts_with("https://");
    if (!is_http || HasControlCharacter(options.url)) {
      return Fail(BadServer("the \"url\" of " + VisibleLine(name) + " must begin with http:// or https://"));
    }
    options.headers = TRY(Pairs(server, "headers"));
    return options;
  }
  if (!type.empty() && type != "stdio") {
    return Fail(BadServer("servers of the type " + Shortened(VisibleLine(type), 40) + " are not supported; http is"));
  }
  options.command = TextMember(server, "command");
  if (options.command.empty() || HasControlCharacter(options.command))
    return Fail(BadServer(VisibleLine(name) + " needs a \"command\""));
  const Json& arguments = MemberOf(server, "args");
  if (!arguments.is_null() && !arguments.is_array()) return Fail(BadServer("\"args\" must be an array"));
  for (const Json& each : arguments) {
    if (!each.is_string()) return Fail(BadServer("an element of \"args\" must be a text"));
    options.arguments.push_back(each.get<std::string>());
  }
  options.environment = TRY(Pairs(server, "env"));
  return options;
}

Json AnswerOf(const ToolOutcome& outcome) {
  Json answer = {{"output", outcome.output}, {"is_error", outcome.is_error}};
  for (const ToolFile& file : outcome.files) {
    if (file.content.empty() || answer["files"].size() == kMostFiles) continue;
    answer["files"].push_back({{"mime_type", file.mime_type.empty() ? kAnyBytes : file.mime_type},
                               {"filename", file.filename},
                               {"content", EncodeBase64Url(file.content)}});
  }
  return answer;
}

}  // namespace

Result<std::vector<McpServerOptions>> ClientTools::Read(const Json& servers) {
  std::vector<McpServerOptions> list;
  if (servers.is_null()) return list;
  if (!servers.is_array() || servers.size() > kMostServers) {
    return Fail(BadServer("must be an array of at most " + std::to_string(kMostServers) + " servers"));
  }
  for (const Json& server : servers) list.push_back(TRY(ReadServer(server, list)));
  return list;
}

Result<std::unique_ptr<ClientTools>> ClientTools::Start(const std::vector<McpServerOptions>& servers,
                                                        const std::string& workspace) {
  Options options;
  options.workspace = workspace;
  const std::string folders = McpFolder(options);
  if (folders.empty()) return Fail(ErrorCode::kUnavailable, "there is no folder of this user's own to start them in");
  auto folder = TRY(ServerFolder::Make(folders, "acp"));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (wake.get() < 0) return Fail(ErrorCode::kUnavailable, "the system has no room for another descriptor");
  std::unique_ptr<ClientTools> tools(new ClientTools(servers.size(), std::move(folder), std::move(wake)));
  // Approvals and log-ins do not happen here, because the chat's server asks the user about each call.
  const std::string own = tools->folder_.path();
  McpServers::Parts parts{.transport = tools->transport_,
                          .file_system = Disk(),
                          .approvals_file = own + "/approvals.json",
                          .logins_file = own + "/logins.json",
                          .eras_file = own + "/eras.json",
                          .keys = nullptr,
                          .workspace = workspace,
                          .folders = folders,
                          .client_version = std::string(Version()),
                          .on_change = {}};
  parts.on_change = [tools = tools.get()](ToolServer server, std::vector<std::shared_ptr<Tool>> offered,
                                          const UnlistedTool&) { tools->Hear(std::move(server), std::move(offered)); };
  tools->mcp_servers_ = std::make_unique<McpServers>(servers, std::move(parts));
  tools->mcp_servers_->Start();
  return tools;
}

ClientTools::ClientTools(std::size_t servers, ServerFolder folder, UniqueFd wake)
    : servers_(servers), folder_(std::move(folder)), wake_(std::move(wake)) {}

ClientTools::~ClientTools() {
  CancelAll();
  calls_.clear();
  mcp_servers_.reset();
}

void ClientTools::Wake() { ::eventfd_write(wake_.get(), 1); }

void ClientTools::ClearWake() {
  eventfd_t ignored;
  ::eventfd_read(wake_.get(), &ignored);
}

void ClientTools::Hear(ToolServer server, std::vector<std::shared_ptr<Tool>> tools) {
  {
    const MutexLock lock(mutex_);
    Source& source = sources_[server.name];
    if (server.state == ToolServer::State::kFailed && !std::exchange(source.was_told_of, true)) {
      Warn("the MCP server " + server.name + " of the client does not come: " + VisibleLine(server.message));
    }
    source.server = std::move(server);
    source.tools = std::move(tools);
    has_changed_ = true;
  }
  heard_.notify_all();
  Wake();
}

void ClientTools::AwaitOffers(std::chrono::milliseconds limit) {
  MutexLock lock(mutex_);
  const auto all_known = [&]() REQUIRES(mutex_) {
    const auto is_known = [](const auto& each) { return each.second.server.state != ToolServer::State::kConnecting; };
    return sources_.size() == servers_ && std::ranges::all_of(sources_, is_known);
  };
  heard_.wait_for(lock, limit, all_known);
}

std::optional<Json> ClientTools::TakeOffer(bool anyway) {
  const MutexLock lock(mutex_);
  if (!std::exchange(has_changed_, false) && !anyway) return std::nullopt;
  Json offered = Json::array();
  std::size_t bytes = 0;
  for (const auto& [name, source] : sources_) {
    for (const auto& tool : source.tools) {
      const ToolTraits& traits = tool->traits();
      auto schema = ParseJson(traits.spec.parameters);
      bytes += traits.spec.description.size() + traits.spec.parameters.size() + traits.terms.value_or("").size();
      if (offered.size() == kMostTools || bytes > kMostBytes) {
        Warn("the client's servers have too many tools; those of " + name + " and behind it are not all used");
        return Json{{"tools", std::move(offered)}};
      }
      offered.push_back({{"name", traits.spec.name},
                         {"description", traits.spec.description},
                         {"input_schema", schema && schema->is_object() ? *std::move(schema) : Json::object()},
                         {"server", "the MCP server " + name},
                         {"terms", traits.terms.value_or("")}});
    }
  }
  return Json{{"tools", std::move(offered)}};
}

std::shared_ptr<Tool> ClientTools::Find(const std::string& name) {
  const MutexLock lock(mutex_);
  for (const auto& [server, source] : sources_) {
    for (const auto& tool : source.tools) {
      if (tool->traits().spec.name == name) return tool;
    }
  }
  return nullptr;
}

void ClientTools::Call(const std::string& id, const std::string& tool, const std::string& terms,
                       const Json& arguments) {
  auto found = Find(tool);
  if (found && found->traits().terms.value_or("") != terms) found.reset();  // not the tool that the user agreed to
  const auto work = [this, id, found, given = DumpJson(arguments)](const std::stop_token& stop) {
    Json answer = {{"error", "this tool is not there any more, or is not what it was; nothing was done"}};
    const auto run = [&] {
      if (!found) return;
      answer = {{"error", "the tool failed for an internal reason"}};
      answer =
          AnswerOf(found->Run(given, ToolContext{.stop = stop, .timeout = kLongestCall, .on_output = {}, .ask = {}}));
    };
    Guarded("a tool", run);
    {
      const MutexLock lock(mutex_);
      answers_.emplace_back(id, std::move(answer));
    }
    Wake();
  };
  try {
    calls_[id] = std::jthread(work);
  } catch (const std::system_error&) {
    {
      const MutexLock lock(mutex_);
      answers_.emplace_back(id, Json{{"error", "the system is out of threads"}});
    }
    Wake();
  }
}

void ClientTools::Cancel(const std::string& id) {
  if (const auto call = calls_.find(id); call != calls_.end()) call->second.request_stop();
}

void ClientTools::CancelAll() {
  for (auto& [id, call] : calls_) call.request_stop();
}

std::optional<std::pair<std::string, Json>> ClientTools::TakeAnswer() {
  std::pair<std::string, Json> answer;
  {
    const MutexLock lock(mutex_);
    if (answers_.empty()) return std::nullopt;
    answer = std::move(answers_.front());
    answers_.pop_front();
  }
  calls_.erase(answer.first);  // its thread has nothing left to do
  return answer;
}

}  // namespace reprise::acp
