#include "client/server_link.h"

#include <utility>

#include "app/settings.h"
#include "base/text.h"
#include "base/try.h"
#include "client/answers.h"

namespace reprise {
namespace {

// A complaint about the first flag that a named server ignores, because it has settings of its own.
std::optional<std::string> FlagOfOwnServer(const Flags& flags) {
  for (const auto& [name, value] : flags) {
    if (name == "token-file" || name == "model") continue;
    return "--" + name +
           " is for a server that is started, and the one that is named (--url or REPRISE_URL) has settings of its own";
  }
  return std::nullopt;
}

}  // namespace

Result<void> ServerLink::Check() {
  if (!named_) {
    options_ = TRY(Load());
    return {};
  }
  if (const auto unused = FlagOfOwnServer(flags_)) return Fail(ErrorCode::kInvalidArgument, *unused);
  const auto file = flags_.find("token-file");
  options_.token_file = file != flags_.end() ? file->second : environment_("REPRISE_TOKEN_FILE").value_or("");
  return {};
}

Result<void> ServerLink::Find(const std::string& cwd) {
  if (named_) {
    found_ = *named_;
    return {};
  }
  start_flags_ = flags_;
  start_flags_.erase("model");
  const bool is_chosen =
      flags_.contains("workspace") || environment_(EnvironmentName(*FindSetting("workspace"))).has_value();
  options_ = TRY(Load());
  // The folder open in the editor, unless the settings name another.
  if (!cwd.empty() && !is_chosen && options_.workspace == Options().workspace) start_flags_["workspace"] = cwd;
  auto found = FindOrStartServer(start_flags_, environment_, own_);
  is_refused_ = !found && found.error().Is(Reason::kOtherSettings);
  found_ = TRY(std::move(found));
  has_started_ = own_ != nullptr;
  return {};
}

Result<void> ServerLink::Reach(const std::string& cwd) {
  if (server_) return {};
  if (!found_) TRY(Find(cwd));
  auto connected = Connect();
  // The server that was found may have ended since, with the client that started it.
  if (!connected && !named_ && !own_ && HowLost(connected.error()) != Loss::kNone) {
    TRY(Find(cwd));
    connected = Connect();
  }
  return connected;
}

// A server that cannot be used as it was asked for is not kept, so that the next call does not find it reached.
Result<void> ServerLink::Connect() {
  auto connected = TakeServer();
  if (!connected) server_.reset();
  return connected;
}

Result<void> ServerLink::TakeServer() {
  server_ = TRY(ConnectTo(*std::exchange(found_, std::nullopt), options_));
  // One that this client has just started works where the client does. To list its tools it would first try its
  // sandbox, which takes longer than all else until the prompt.
  const bool is_known = own_ && start_flags_.contains("workspace") == flags_.contains("workspace");
  if (is_known && !options_.auth.has_people()) {
    workspace_ = TRY(WorkspaceOf(options_));
  } else {
    const auto said = server_->Call("GET", "/tools");
    if (!said) return Fail(NotAnswering(said.error(), *server_));
    workspace_ = TextMember(*said, "workspace");
    approval_mode_ = TextMember(*said, "approval_mode");
  }
  TRY(ResolveModel());
  SetModel();
  if (named_) return {};
  if (!workspace_.empty()) folder_ = TRY(WorkspaceOf(options_));
  approval_mode_ = ToString(options_.approval_mode);
  return {};
}

// Whether --model may be a part of a name. Asks nobody.
bool ServerLink::is_short_model() const {
  const auto flag = flags_.find("model");
  return flag != flags_.end() && flag->second != "offline" && flag->second.find('/') == std::string::npos;
}

Result<Options> ServerLink::Load() const {
  Flags flags = flags_;
  if (is_short_model()) flags.erase("model");  // the server knows what it means
  return LoadOptions(flags, environment_);
}

Result<void> ServerLink::ResolveModel() {
  const auto flag = flags_.find("model");
  flag_model_ = flag == flags_.end() ? "" : flag->second;
  if (!is_short_model() || Models().is_null()) return {};
  flag_model_ = TRY(FindModel(flag_model_, Models(), "`reprise models` lists them"));
  return {};
}

// The server's own model, which need not be said, may differ at each server.
void ServerLink::SetModel() {
  model_ = flag_model_;
  if (flag_model_.empty() && !named_ && options_.model != NotedSettings(options_)["model"]) model_ = options_.model;
}

bool ServerLink::WorksHere(const Json& chat) const {
  const std::string own = TextMember(chat, "workspace");
  return folder_.empty() || (own.empty() ? workspace_ : own) == folder_;
}

Json ServerLink::RunOptions(const std::string& model) const {
  Json options = Json::object();
  if (const std::string& said = model.empty() ? model_ : model; !said.empty()) options["model"] = said;
  if (!named_) options["approval_mode"] = approval_mode_;
  return options;
}

Result<std::string> ServerLink::WorkspaceAt(const std::string& folder) {
  if (workspace_.empty()) return std::string();
  const Json said = TRY(Call("GET", "/tools?workspace=" + PercentEncoded(folder)));
  return TextMember(said, "workspace");
}

Result<Json> ServerLink::Call(const std::string& method, const std::string& path, const Json& body) {
  auto answer = server_->Call(method, path, body);
  const Loss loss = answer ? Loss::kNone : HowLost(answer.error());
  const bool repeats = loss == Loss::kNeverReached || (loss == Loss::kBroken && (method == "GET" || method == "PUT"));
  if (!repeats) return answer;
  if (const auto found = FindAgain(); !found) {
    return Fail(Reason::kConnectionFailed, found.error().message);
  }
  return server_->Call(method, path, body);
}

const Json& ServerLink::Models() {
  constexpr std::chrono::seconds kFresh{60};
  const auto now = std::chrono::steady_clock::now();
  if (!models_.is_null() && now - models_asked_ < kFresh) return models_;
  models_asked_ = now;
  if (auto said = server_->Call("GET", "/models")) models_ = *std::move(said);
  return models_;
}

Result<void> ServerLink::CheckAnswers() {
  auto there = server_->Call("GET", "/healthz");
  if (!there) return Fail(NotAnswering(std::move(there.error()), *server_));
  return {};
}

Result<void> ServerLink::FindAgain(bool may_start) {
  if (named_) return CheckAnswers();
  if (has_started_ || may_start || restarts_) {
    own_.reset();
    auto found = TRY(FindOrStartServer(start_flags_, environment_, own_));
    has_started_ = has_started_ || own_;
    server_->SetPlace(std::move(found.url), std::move(found.settings));
    SetModel();
    return {};
  }
  const auto running = TRY(FindServer(options_));
  if (!running) return Fail(ErrorCode::kUnavailable, "the server of these chats has ended");
  server_->SetPlace(running->url, server_->settings());
  SetModel();
  return CheckAnswers();
}

}  // namespace reprise
