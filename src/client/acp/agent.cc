#include "client/acp/agent.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/embedded.h"
#include "base/json.h"
#include "base/path.h"
#include "base/terminal_text.h"
#include "base/try.h"
#include "client/acp/rpc_error.h"
#include "client/acp/session.h"
#include "client/line_channel.h"
#include "reprise/ids.h"
#include "reprise/result.h"
#include "terminal/console.h"

namespace reprise::acp {
namespace {

constexpr int kProtocolVersion = 1;
constexpr int kMaxMessageDepth = kMaxJsonDepth + 16;
constexpr const char* kAuthMethod = "configuration";

struct Mode {
  const char *id, *name, *description;
};
constexpr std::array kModes = {
    Mode{"ask", "Ask", "Tools that write, delete, run commands or use the network ask first"},
    Mode{"read_only", "Read only", "Tools that only read never ask; all others do"},
    Mode{"plan", "Plan", "Nothing is changed before you have approved a plan"},
    Mode{"auto", "Auto", "Changes of files in the workspace and commands in the sandbox do not ask; all else does"},
    Mode{"approve_all", "Approve all", "Nothing asks: only where you could lose all of it"},
    Mode{"deny_all", "Deny all", "Whatever would ask is rejected"},
};

Error Invalid(const std::string& message) { return MakeError(ErrorCode::kInvalidArgument, message); }

Result<std::string> TextParameter(const Json& params, const char* name) {
  const Json& value = MemberOf(params, name);
  if (!value.is_string()) return Fail(Invalid(std::string("\"") + name + "\" must be a text"));
  return value.get<std::string>();
}

bool IsId(const Json& id) { return id.is_string() || id.is_number_integer() || id.is_null(); }

Json SelectOption(const std::string& id, const std::string& name, const char* category, const std::string& current,
                  Json options) {
  return {{"id", id},
          {"name", name},
          {"category", category},
          {"type", "select"},
          {"currentValue", current},
          {"options", std::move(options)}};
}

class Agent final : public SessionClient {
 public:
  // `link` must outlive it.
  Agent(ServerLink& link, int in, int out) : link_(link), channel_(in, out) {}

  // Runs until the client closes its end or stops reading. Returns the exit status.
  int Run() {
    while (!channel_.is_broken()) {
      while (auto line = channel_.Next()) Take(*line);
      for (const auto& [chat, session] : sessions_) session->Proceed();
      channel_.Flush();
      if (channel_.input_ended()) break;
      Wait();
    }
    channel_.FlushLast();
    return kExitOk;
  }

  // SessionClient.
  void Notify(const std::string& method, Json params) override {
    channel_.Send({{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}});
  }

  int Ask(const std::string& method, Json params, Answered answered) override {
    const int id = next_request_++;
    asked_[id] = std::move(answered);
    channel_.Send({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}});
    return id;
  }

  void Withdraw(int request) override {
    if (asked_.erase(request) > 0) Notify("$/cancel_request", {{"requestId", request}});
  }

  void Answer(const Json& request_id, Json result) override {
    channel_.Send({{"jsonrpc", "2.0"}, {"id", request_id}, {"result", std::move(result)}});
  }

  void Refuse(const Json& request_id, Json error) override {
    channel_.Send({{"jsonrpc", "2.0"}, {"id", request_id}, {"error", std::move(error)}});
  }

 private:
  // Waits until there is something to do.
  void Wait() {
    std::vector<pollfd> waits = {{channel_.in(), POLLIN, 0}, {channel_.has_unsent() ? channel_.out() : -1, POLLOUT, 0}};
    int timeout_ms = -1;
    for (const auto& [chat, session] : sessions_) {
      // A client that reads slowly gets nothing more: the streams wait, and so does the server.
      waits.push_back({channel_.is_crowded() ? -1 : session->descriptor(), POLLIN, 0});
      waits.push_back({channel_.is_crowded() ? -1 : session->editor_descriptor(), POLLIN, 0});
      waits.push_back({session->tools_descriptor(), POLLIN, 0});
      if (const int limit = session->TimeoutMs(); limit >= 0)
        timeout_ms = timeout_ms < 0 ? limit : std::min(timeout_ms, limit);
    }
    if (::poll(waits.data(), waits.size(), timeout_ms) < 0) return;
    if (waits[0].revents != 0) channel_.Read();
  }

  void Take(const LineChannel::Line& line) {
    if (line.too_long) {
      return Refuse(nullptr, rpc::ErrorObject(rpc::kInvalidRequest, "a message is longer than " +
                                                                        std::to_string(LineChannel::kMaxLine >> 20) +
                                                                        " MiB, and was not read"));
    }
    const auto message = ParseJson(line.text, kMaxMessageDepth);
    if (!message)
      return Refuse(nullptr, rpc::ErrorObject(rpc::kParseError, message.error().message, message.error().reason));
    const bool has_id = message->is_object() && message->contains("id");
    const Json id = has_id && IsId((*message)["id"]) ? (*message)["id"] : Json(nullptr);
    const auto refuse = [&](const char* why) { Refuse(id, rpc::ErrorObject(rpc::kInvalidRequest, why)); };
    if (!message->is_object()) return refuse("a message must be a JSON object");
    if (MemberOf(*message, "jsonrpc") != Json("2.0")) return refuse("\"jsonrpc\" must be \"2.0\"");
    if (has_id && !IsId((*message)["id"])) return refuse("\"id\" must be a text, a whole number or null");
    if (!message->contains("method")) {
      if (has_id && (message->contains("result") || message->contains("error"))) return TakeResponse(*message);
      return refuse("a message needs a \"method\", or answers a request");
    }
    const Json& method = (*message)["method"];
    if (!method.is_string()) return refuse("\"method\" must be a text");
    const Json& params = MemberOf(*message, "params");
    if (!params.is_null() && !params.is_object()) {
      if (has_id) Refuse(id, rpc::ErrorObject(rpc::kInvalidParams, "\"params\" must be an object"));
      return;
    }
    has_id ? TakeRequest(id, method.get<std::string>(), params) : TakeNotification(method.get<std::string>(), params);
  }

  void TakeRequest(const Json& id, const std::string& method, const Json& params) {
    const Method* const known = FindMethod(method);
    const bool is_load = method == "session/load", is_prompt = method == "session/prompt";
    if (known == nullptr && !is_load && !is_prompt) {
      return Refuse(id,
                    rpc::ErrorObject(rpc::kMethodNotFound, "there is no method " + Shortened(VisibleLine(method), 80)));
    }
    if (!abilities_ && method != "initialize") {
      return Refuse(id, rpc::ErrorObject(rpc::kInvalidRequest, "the first request must be \"initialize\""));
    }
    if (is_load) return LoadSession(id, params);
    if (is_prompt) return Prompt(id, params);
    auto answer = (this->*known->run)(params);
    if (!answer) return Refuse(id, rpc::ErrorObject(answer.error()));
    Answer(id, *std::move(answer));
    const auto session_of = [&](std::string& name) {
      const auto found = sessions_.find(std::exchange(name, {}));
      return found == sessions_.end() ? nullptr : found->second.get();
    };
    if (Session* const session = session_of(announce_)) session->AnnounceCommands();
    if (Session* const session = session_of(follow_)) session->FollowRun();
  }

  void TakeNotification(const std::string& method, const Json& params) {
    if (method == "session/cancel") {
      const auto session = sessions_.find(TextMember(params, "sessionId"));
      if (session != sessions_.end()) session->second->Cancel();
    } else if (method == "$/cancel_request") {
      const Json& request = MemberOf(params, "requestId");
      for (const auto& [chat, session] : sessions_) {
        if (!request.is_null() && session->CancelRequest(request)) return;
      }
    }
  }

  void TakeResponse(const Json& message) {
    const Json& id = message["id"];
    const auto asked = id.is_number_integer() ? asked_.find(id.get<int>()) : asked_.end();
    if (asked == asked_.end()) return;  // it was withdrawn
    const Answered answered = std::move(asked->second);
    asked_.erase(asked);
    answered(message);
  }

  // A method that is answered at once.
  struct Method {
    const char* name;
    Result<Json> (Agent::*run)(const Json& params);
  };

  static const Method* FindMethod(const std::string& name) {
    static constexpr Method kMethods[] = {
        {"initialize", &Agent::Initialize},
        {"authenticate", &Agent::Authenticate},
        {"session/new", &Agent::NewSession},
        {"session/resume", &Agent::ResumeSession},
        {"session/list", &Agent::ListSessions},
        {"session/delete", &Agent::DeleteSession},
        {"session/close", &Agent::CloseSession},
        {"session/set_mode", &Agent::SetMode},
        {"session/set_config_option", &Agent::SetConfigOption},
    };
    const auto found = std::ranges::find_if(kMethods, [&](const Method& each) { return name == each.name; });
    return found == std::end(kMethods) ? nullptr : found;
  }

  Result<Json> Initialize(const Json& params) {
    if (!MemberOf(params, "protocolVersion").is_number_integer()) {
      return Fail(Invalid("\"protocolVersion\" must be a whole number"));
    }
    const Json& client = MemberOf(params, "clientCapabilities");
    const Json& of_sessions = MemberOf(client, "session");
    const Json& forms = MemberOf(client, "elicitation");
    const Json& files = MemberOf(client, "fs");
    abilities_ = ClientAbilities{
        .updates = {.notices = MemberOf(of_sessions, "notices").is_object(),
                    .compaction = MemberOf(of_sessions, "compaction").is_object()},
        .forms = {.form = MemberOf(forms, "form").is_object(), .url = MemberOf(forms, "url").is_object()},
        .reads_files = MemberOf(files, "readTextFile") == true,
        .writes_files = MemberOf(files, "writeTextFile") == true,
        .has_terminal = MemberOf(client, "terminal") == true};
    const Json none = Json::object();
    return Json{
        {"protocolVersion", kProtocolVersion},
        {"agentCapabilities",
         {{"loadSession", true},
          {"promptCapabilities", {{"image", true}, {"audio", true}, {"embeddedContext", true}}},
          {"mcpCapabilities", {{"http", true}, {"sse", false}}},
          {"sessionCapabilities", {{"list", none}, {"delete", none}, {"resume", none}, {"close", none}}}}},
        {"authMethods",
         Json::array({{{"id", kAuthMethod},
                       {"name", "Reprise's configuration"},
                       {"description",
                        "Keys of providers come from the environment and from reprise.json; nobody logs in here"}}})},
        {"agentInfo", {{"name", "reprise"}, {"title", "Reprise"}, {"version", std::string(Version())}}}};
  }

  // Needs no log-in, because the keys are in the configuration. Checks it, so that a missing setting is reported now.
  Result<Json> Authenticate(const Json& params) {
    const std::string method = TRY(TextParameter(params, "methodId"));
    if (method != kAuthMethod) return Fail(Invalid("\"methodId\" must be \"configuration\""));
    TRY(link_.Check());
    return Json::object();
  }

  Result<Json> NewSession(const Json& params) {
    const std::string workspace = TRY(Reach(params));
    const std::string chat = ChatId::Random().str();
    auto session = MakeSession(chat, /*exists=*/false, params, workspace, TRY(StartTools(params, workspace)));
    Json answer = {{"sessionId", chat}};
    answer.update(TRY(Settings(*session)));
    sessions_[chat] = std::move(session);
    announce_ = chat;
    return answer;
  }

  Result<Json> ResumeSession(const Json& params) {
    Opened opened = TRY(OpenSession(params));
    announce_ = follow_ = opened.session->chat();
    return std::move(opened.settings);
  }

  Result<Json> ListSessions(const Json& params) {
    const std::string cwd = TextMember(params, "cwd"), cursor = TextMember(params, "cursor");
    if (!cwd.empty() && !cwd.starts_with('/')) return Fail(Invalid("\"cwd\" must be an absolute path"));
    if (!link_.is_reached()) TRY(link_.Reach(cwd));
    const std::string wanted = cwd.empty() ? "" : Resolved(cwd).string();
    if (cursor.find_first_of("&#? %/") != std::string::npos) return Fail(Invalid("\"cursor\" is none of this agent's"));
    const auto list = TRY(link_.Call("GET", "/chats?limit=50" + (cursor.empty() ? "" : "&cursor=" + cursor)));
    Json sessions = Json::array();
    for (const Json& chat : MemberOf(list, "chats")) {
      if (chat.contains("error")) continue;
      const auto open = sessions_.find(TextMember(chat, "id"));
      const std::string workspace = WorkspaceOf(chat);
      if (!cwd.empty() && !workspace.empty() && workspace != wanted) continue;
      const std::string shown = open != sessions_.end() ? open->second->cwd() : workspace;
      Json session = {{"sessionId", TextMember(chat, "id")}, {"cwd", shown.empty() ? "/" : shown}};
      if (const std::string title = TextMember(chat, "title"); !title.empty()) session["title"] = title;
      if (const std::string at = TextMember(chat, "updated_at"); !at.empty()) session["updatedAt"] = at;
      sessions.push_back(std::move(session));
    }
    Json answer = {{"sessions", std::move(sessions)}};
    if (const std::string next = TextMember(list, "next"); !next.empty()) answer["nextCursor"] = next;
    return answer;
  }

  Result<Json> DeleteSession(const Json& params) {
    const std::string chat = TRY(TextParameter(params, "sessionId"));
    TRY(ChatId::Parse(chat));
    if (!link_.is_reached()) TRY(link_.Reach({}));
    if (const auto open = sessions_.find(chat); open != sessions_.end()) {
      open->second->Close();
      sessions_.erase(open);
    }
    auto deleted = link_.Call("DELETE", "/chats/" + chat);
    if (!deleted && !deleted.error().Is(Reason::kNotFound)) return Fail(std::move(deleted.error()));
    return Json::object();
  }

  Result<Json> CloseSession(const Json& params) {
    Session* const session = TRY(FindSession(params));
    session->Close();
    sessions_.erase(session->chat());
    return Json::object();
  }

  Result<Json> SetMode(const Json& params) {
    Session* const session = TRY(FindSession(params));
    const std::string mode = TRY(TextParameter(params, "modeId"));
    TRY(session->Change({{"approval_mode", mode}}));
    const Json settings = TRY(Settings(*session));
    session->Update({{"sessionUpdate", "config_option_update"}, {"configOptions", settings["configOptions"]}});
    return Json::object();
  }

  Result<Json> SetConfigOption(const Json& params) {
    Session* const session = TRY(FindSession(params));
    const std::string option = TRY(TextParameter(params, "configId")), value = TRY(TextParameter(params, "value"));
    if (option != "mode" && option != "model") return Fail(Invalid("\"configId\" must be \"mode\" or \"model\""));
    TRY(session->Change({{option == "mode" ? "approval_mode" : "model", value}}));
    if (option == "mode") session->Update({{"sessionUpdate", "current_mode_update"}, {"currentModeId", value}});
    const Json settings = TRY(Settings(*session));
    return Json{{"configOptions", settings["configOptions"]}};
  }

  // These two are answered later.
  void LoadSession(const Json& id, const Json& params) {
    auto opened = OpenSession(params);
    if (!opened) return Refuse(id, rpc::ErrorObject(opened.error()));
    opened->session->AnnounceCommands();
    opened->session->Load(id, std::move(opened->settings));
  }

  void Prompt(const Json& id, const Json& params) {
    auto session = FindSession(params);
    if (!session) return Refuse(id, rpc::ErrorObject(session.error()));
    (*session)->Prompt(id, MemberOf(params, "prompt"));
  }

  // Finds or starts the server. Returns where a chat of the request's "cwd" works; empty if the server does not say.
  Result<std::string> Reach(const Json& params) {
    const std::string cwd = TRY(TextParameter(params, "cwd"));
    if (!cwd.starts_with('/')) return Fail(Invalid("\"cwd\" must be an absolute path"));
    if (!IsDirectory(cwd)) return Fail(Invalid("\"cwd\" is no folder: " + VisibleLine(cwd)));
    const Json& more = MemberOf(params, "additionalDirectories");
    if (more.is_array() && !more.empty()) {
      return Fail(Invalid("\"additionalDirectories\" are not supported: a chat works in one folder"));
    }
    TRY(link_.Reach(cwd));
    return link_.WorkspaceAt(cwd);
  }

  // Where a chat of the server works.
  std::string WorkspaceOf(const Json& chat) const {
    const std::string own = TextMember(chat, "workspace");
    return own.empty() ? link_.workspace() : own;
  }

  // Null if the client names no servers, or they cannot be started.
  Result<std::unique_ptr<ClientTools>> StartTools(const Json& params, const std::string& workspace) {
    const auto servers = TRY(ClientTools::Read(MemberOf(params, "mcpServers")));
    if (servers.empty()) return std::unique_ptr<ClientTools>();
    auto tools = ClientTools::Start(servers, workspace.empty() ? TextMember(params, "cwd") : workspace);
    if (tools) return tools;
    Warn("the client's MCP servers are not used: " + tools.error().message);
    return std::unique_ptr<ClientTools>();
  }

  std::unique_ptr<Session> MakeSession(const std::string& chat, bool exists, const Json& params,
                                       const std::string& workspace, std::unique_ptr<ClientTools> tools) {
    return std::make_unique<Session>(Session::Parts{.link = link_,
                                                    .client = *this,
                                                    .abilities = *abilities_,
                                                    .chat = chat,
                                                    .cwd = TextMember(params, "cwd"),
                                                    .workspace = workspace,
                                                    .exists = exists,
                                                    .tools = std::move(tools)});
  }

  struct Opened {
    Session* session;
    Json settings;
  };

  // Opens a session for an existing chat, or finds the open one. An open session must survive a failed request, so
  // everything is checked before anything changes.
  Result<Opened> OpenSession(const Json& params) {
    const std::string chat = TRY(TextParameter(params, "sessionId"));
    const std::string workspace = TRY(Reach(params));
    TRY(ChatId::Parse(chat));
    const auto open = sessions_.find(chat);
    const bool is_open = open != sessions_.end();
    std::string works_in = is_open ? open->second->workspace() : "";
    if (!is_open) works_in = WorkspaceOf(TRY(link_.Call("GET", "/chats/" + chat + "?limit=1&state=none")));
    if (works_in != workspace) {
      return Fail(Reason::kWorksElsewhere, "the chat works in " + VisibleLine(works_in) + ", not in " +
                                               VisibleLine(workspace) + "; open it with that folder as \"cwd\"");
    }
    auto tools = TRY(StartTools(params, workspace));
    if (is_open) {
      Json settings = TRY(Settings(*open->second));
      open->second->Reopen(TextMember(params, "cwd"), std::move(tools));
      return Opened{open->second.get(), std::move(settings)};
    }
    auto session = MakeSession(chat, /*exists=*/true, params, workspace, std::move(tools));
    Json settings = TRY(Settings(*session));
    return Opened{(sessions_[chat] = std::move(session)).get(), std::move(settings)};
  }

  Result<Session*> FindSession(const Json& params) {
    const std::string chat = TRY(TextParameter(params, "sessionId"));
    const auto open = sessions_.find(chat);
    if (open != sessions_.end()) return open->second.get();
    return Fail(Reason::kNotFound, "there is no session " + Shortened(VisibleLine(chat), 80) +
                                       " here; session/new, session/load and session/resume open one");
  }

  // "modes" and "configOptions".
  Result<Json> Settings(Session& session) {
    const Json chat = TRY(session.Summary());
    const std::string& of_server = link_.approval_mode();
    const std::string own = TextMember(chat, "approval_mode");
    const std::string mode = own.empty() || of_server == "deny_all" ? of_server : own;
    Json modes = Json::array(), choices = Json::array();
    for (const Mode& each : kModes) {
      if (of_server == "deny_all" && mode != each.id) continue;
      modes.push_back({{"id", each.id}, {"name", each.name}, {"description", each.description}});
      choices.push_back({{"value", each.id}, {"name", each.name}, {"description", each.description}});
    }
    Json options = Json::array({SelectOption("mode", "Approvals", "mode", mode, std::move(choices))});
    const Json& models = link_.Models();
    std::string model = TextMember(chat, "chosen_model");
    session.UseModel(model.empty() ? link_.model() : "");
    if (model.empty()) model = link_.model();
    if (model.empty()) model = TextMember(models, "default");
    Json names = Json::array();
    bool is_listed = false;
    for (const Json& each : MemberOf(models, "models")) {
      const std::string name = TextMember(each, "name");
      is_listed = is_listed || name == model;
      names.push_back({{"value", name}, {"name", name}});
    }
    if (!is_listed && !model.empty()) names.insert(names.begin(), Json{{"value", model}, {"name", model}});
    if (!model.empty()) options.push_back(SelectOption("model", "Model", "model", model, std::move(names)));
    return Json{{"modes", {{"currentModeId", mode}, {"availableModes", std::move(modes)}}},
                {"configOptions", std::move(options)}};
  }

  ServerLink& link_;
  LineChannel channel_;
  std::optional<ClientAbilities> abilities_;  // nullopt: not initialized
  std::map<std::string, std::unique_ptr<Session>> sessions_;
  std::map<int, Answered> asked_;
  int next_request_ = 1;
  std::string announce_;  // the session whose commands are announced after the answer
  std::string follow_;    // the session whose run is followed after the answer
};

}  // namespace

int RunAgent(ServerLink& link, int in, int out) { return Agent(link, in, out).Run(); }

}  // namespace reprise::acp
