#include "mcp/server_connection.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "base/logging.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "mcp/mcp_tool.h"

namespace reprise {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kMaxFailures = 5;       // in a row
constexpr seconds kHealthy{60};       // a run of this length ends a series of failures
constexpr seconds kLongestPause{60};  // between two attempts
constexpr seconds kBetweenLooks{2};   // between two checks for a log-in
constexpr seconds kBetweenLists{1};   // at least, however often a server announces changes of its tools
constexpr seconds kUntilCalled = std::chrono::hours(24 * 365);
constexpr std::size_t kMaxDescription = 4000;

constexpr const char* kGivenUp = "; after several attempts it is only started again when one of its tools is called";

McpOffer Own(McpOffer::Kind kind, std::string name, std::string description, std::string schema) {
  return {.kind = kind,
          .definition = {.name = std::move(name),
                         .description = std::move(description),
                         .input_schema = std::move(schema),
                         .other = "{}",
                         .read_only_hint = true,
                         .idempotent_hint = true,
                         .destructive_hint = false}};
}

std::vector<McpOffer> OwnOffers(const ServerFacts& facts, const std::string& server) {
  using Kind = McpOffer::Kind;
  static constexpr const char* kNothing = R"({"type":"object","properties":{}})";
  std::vector<McpOffer> offers;
  if (facts.resources) {
    offers.push_back(Own(Kind::kListResources, "list_resources",
                         "Lists the resources of the MCP server " + server + " by their URIs.", kNothing));
    offers.push_back(Own(
        Kind::kReadResource, "read_resource", "Reads a resource of the MCP server " + server + ".",
        R"({"type":"object","required":["uri"],"properties":{"uri":{"type":"string","minLength":1,"maxLength":4096}}})"));
  }
  if (facts.prompts) {
    offers.push_back(Own(Kind::kListPrompts, "list_prompts",
                         "Lists the prompts (prepared instructions) of the MCP server " + server + ".", kNothing));
    offers.push_back(Own(Kind::kGetPrompt, "get_prompt",
                         "Returns a prompt of the MCP server " + server + ", filled in.",
                         R"({"type":"object","required":["name"],"properties":{"name":{"type":"string","minLength":1},)"
                         R"("arguments":{"type":"object","description":"Texts by name."}}})"));
  }
  return offers;
}

}  // namespace

ServerConnection::ServerConnection(McpServerOptions options, Parts parts)
    : options_(std::move(options)), parts_(std::move(parts)) {}

void ServerConnection::Start() {
  SetState(ToolServer::State::kConnecting, "");
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { Main(stop); });
  } catch (const std::system_error& error) {
    SetState(ToolServer::State::kFailed, "there is no thread for it");
  }
}

void ServerConnection::RequestStop() { thread_.request_stop(); }

void ServerConnection::Stop() {
  RequestStop();
  if (thread_.joinable()) thread_.join();
  for (const auto& session : leaving_) session->Close();
  folder_.reset();
  {
    const MutexLock lock(mutex_);
    given_up_ = true;  // a call that still has one of its tools does not wait for it
    waits_for_call_ = false;
    message_ = "it was stopped";
    changed_.notify_all();
  }
  const MutexLock lock(publish_mutex_);
  stopped_ = true;
}

void ServerConnection::Main(const std::stop_token& stop) {
  for (int failures = 0; !stop.stop_requested();) {
    SetState(ToolServer::State::kConnecting, "");
    ready_since_ = Clock::time_point::max();
    has_worked_ = false;
    Error why;
    try {
      why = ConnectAndServe(stop);
    } catch (const std::system_error& error) {  // a thread cannot be started
      why = MakeError(ErrorCode::kUnavailable, "the system is out of threads", error.what());
    } catch (const std::exception& error) {
      why = MakeError(ErrorCode::kInternal, "an internal failure", error.what());
    } catch (...) {
      why = MakeError(ErrorCode::kInternal, "an internal failure");
    }
    if (stop.stop_requested()) break;
    if (std::exchange(greets_again_, false)) continue;  // at once
    if (IsToConnectAgain()) {
      failures = 0;
      continue;
    }
    const bool was_ready = ready_since_ != Clock::time_point::max();
    if (has_worked_ || (was_ready && Clock::now() - ready_since_ >= kHealthy)) failures = 0;
    ++failures;
    LogWarning("an MCP server is unavailable", {{"server", options_.name}, {"error", why.message}});
    MutexLock lock(mutex_);
    // A broken command does not repair itself, but an unreachable machine may be back tomorrow.
    const bool gives_up = options_.url.empty() && failures >= kMaxFailures;
    given_up_ = waits_for_call_ = gives_up;
    wants_login_ = why.Is(Reason::kMcpUnauthorized) ? why.message : "";
    message_ = why.message + (gives_up ? kGivenUp : "");
    const std::string message = message_;
    if (failures >= kMaxFailures && !was_ready) offers_.clear();
    lock.unlock();
    SetState(ToolServer::State::kFailed, message);
    const seconds pause =
        gives_up ? kUntilCalled : std::min(seconds(1) * (1 << std::min(failures - 1, 6)), kLongestPause);
    if (Pause(pause, why.Is(Reason::kMcpUnauthorized), stop) && !gives_up) failures = 0;
  }
}

Result<std::unique_ptr<Channel>> ServerConnection::OpenChannel() {
  if (!options_.command.empty() && options_.cwd.empty() && !folder_) {
    auto folder = TRY(ServerFolder::Make(parts_.folders, options_.name));
    folder_.emplace(std::move(folder));
  }
  const std::string directory = folder_ ? folder_->path() : options_.cwd;
  // At each start, because the program may have changed meanwhile.
  auto launch = TRY(LaunchDigest(options_, directory, parts_.workspace));
  {
    const MutexLock lock(mutex_);
    launch_ = std::move(launch);
  }
  return OpenServerChannel(options_, parts_.transport, directory, parts_.workspace,
                           AuthorizerFor(options_, parts_.transport, parts_.credentials, "", nullptr));
}

std::string ServerConnection::launch() {
  const MutexLock lock(mutex_);
  return launch_;
}

// Returns why the connection ended.
Error ServerConnection::ConnectAndServe(const std::stop_token& stop) {
  std::uint64_t begun = 0;
  {  // first, because the channel takes the log-in: a later one ends the session
    const MutexLock lock(mutex_);
    session_ended_ = false;
    begun = changes_;
  }
  auto channel = OpenChannel();
  if (!channel) return channel.error();
  SessionHooks hooks;
  hooks.roots = RootsFor(options_, parts_.workspace);
  hooks.on_tools_changed = [this] {
    const MutexLock lock(mutex_);
    ++changes_;
    changed_.notify_all();
  };
  hooks.on_log = [this](std::string_view level, std::string_view text) {
    Log(LogLevel::kDebug, "an MCP server says", {{"server", options_.name}, {"severity", level}, {"text", text}});
  };
  hooks.on_closed = [this] {
    const MutexLock lock(mutex_);
    session_ended_ = true;
    changed_.notify_all();
  };
  const auto session = std::make_shared<Session>(*std::move(channel), std::move(hooks));
  const auto facts = GreetServer(*session, stop);
  Error why;
  if (!facts) {
    why = facts.error();
  } else {
    WatchTools(*session, *facts);  // before the first list, so that no change is missed
    auto offers = ListOffers(*session, *facts, stop);
    if (!offers) {
      why = offers.error();
    } else {
      ready_since_ = Clock::now();
      {
        const MutexLock lock(mutex_);
        offers_ = *std::move(offers);
        instructions_ = facts->instructions;
        version_ = facts->name + " " + facts->version;
        revision_ = facts->protocol;
      }
      SetState(ToolServer::State::kReady, facts->name + " " + facts->version);
      {  // after the offers were published, so that callers waiting for this find them in the catalog
        const MutexLock lock(mutex_);
        session_ = session;
        wants_login_.clear();
        listed_ = begun;
        changed_.notify_all();
      }
      LogInfo("an MCP server is ready", {{"server", options_.name}, {"protocol", facts->protocol}});
      why = Serve(*session, *facts, stop);
      const MutexLock lock(mutex_);
      session_ = nullptr;
    }
  }
  // The connection's error says more than the error of the request that failed with it.
  has_worked_ = session->has_worked();
  const auto closed = session->closed();
  std::erase_if(leaving_, [](const auto& each) { return !each->is_waiting(); });
  if (closed && session->is_waiting()) {
    leaving_.push_back(session);
  } else {
    session->Close();
  }
  return closed.value_or(why);
}

// Uses the stored era of the server if its launch is still the same.
void ServerConnection::Recall() {
  std::string now = launch();
  if (now == era_launch_) return;
  const auto known = parts_.eras.Look(options_.name, now);
  era_ = known ? known->era : McpEra::kUnknown;
  remembered_ = known ? std::optional(known->version) : std::nullopt;
  era_launch_ = std::move(now);
}

void ServerConnection::Remember(const ServerFacts& facts) {
  const std::string version = facts.name + " " + facts.version;
  era_ = facts.era;
  // A new version may also support the newer era, so the next start detects it again.
  const bool asks_again = remembered_ && *remembered_ != version && facts.era == McpEra::kHandshake;
  remembered_.reset();
  if (asks_again) return parts_.eras.Forget(options_.name);
  parts_.eras.Keep(options_.name, {.launch = era_launch_, .era = facts.era, .version = version});
}

Result<ServerFacts> ServerConnection::GreetServer(Session& session, const std::stop_token& stop) {
  Recall();
  auto facts = Greet(session, parts_.client_version, era_, {.timeout = options_.startup_timeout, .stop = stop});
  if (facts) {
    Remember(*facts);
  } else if (facts.error().Is(Reason::kMcpProbeRefused) && !options_.command.empty()) {
    era_ = McpEra::kHandshake;  // some servers end at a request before the handshake
    remembered_.reset();
    greets_again_ = true;
  } else if (remembered_ && !facts.error().Is(Reason::kMcpUnauthorized)) {
    era_ = McpEra::kUnknown;  // the server may have changed, so try again without the stored era
    remembered_.reset();
    greets_again_ = true;
  } else if (!remembered_ && !session.closed()) {
    era_ = McpEra::kUnknown;
  }
  return facts;
}

Result<std::vector<McpOffer>> ServerConnection::ListOffers(Session& session, const ServerFacts& facts,
                                                           const std::stop_token& stop) {
  std::vector<McpOffer> offers;
  if (facts.tools) {
    McpFreshness freshness;
    auto tools = TRY(ListTools(session, {.timeout = options_.startup_timeout, .stop = stop}, &freshness));
    {
      const MutexLock lock(mutex_);
      fresh_until_.reset();
      if (freshness.for_at_least > milliseconds(0)) fresh_until_ = Clock::now() + freshness.for_at_least;
    }
    for (McpToolDefinition& tool : tools)
      offers.push_back({.kind = McpOffer::Kind::kTool, .definition = std::move(tool)});
  }
  for (McpOffer& own : OwnOffers(facts, options_.name)) {
    const bool taken = std::ranges::any_of(
        offers, [&](const McpOffer& other) { return other.definition.name == own.definition.name; });
    if (!taken) offers.push_back(std::move(own));
  }
  return offers;
}

Error ServerConnection::Serve(Session& session, const ServerFacts& facts, const std::stop_token& stop) {
  seconds pause = kBetweenLists;
  for (auto listed = Clock::now();;) {
    MutexLock lock(mutex_);
    changed_.wait(lock, stop, [this]() REQUIRES(mutex_) { return session_ended_ || changes_ != listed_; });
    if (stop.stop_requested()) return MakeError(ErrorCode::kCancelled, "stopping");
    if (!session_ended_)
      changed_.wait_until(lock, stop, listed + pause, [this]() REQUIRES(mutex_) { return session_ended_; });
    if (session_ended_) return MakeError(ErrorCode::kUnavailable, "the connection ended");
    if (stop.stop_requested()) return MakeError(ErrorCode::kCancelled, "stopping");
    const std::uint64_t begun = changes_;
    lock.unlock();
    listed = Clock::now();
    auto offers = ListOffers(session, facts, stop);
    if (!offers) {
      LogWarning("the tools of an MCP server cannot be listed",
                 {{"server", options_.name}, {"error", offers.error().message}});
      pause = std::min(2 * pause, kLongestPause);  // calls wait until the tools are known again
      continue;
    }
    pause = kBetweenLists;
    lock.lock();
    offers_ = *std::move(offers);
    lock.unlock();
    Publish();
    lock.lock();
    listed_ = begun;
    changed_.notify_all();
  }
}

Result<void> ServerConnection::WaitForOffers(MutexLock& lock, milliseconds timeout, const std::stop_token& stop) {
  if (fresh_until_ && Clock::now() >= *fresh_until_) {
    fresh_until_.reset();
    ++changes_;
    changed_.notify_all();
  }
  if (timeout.count() > 0 && std::exchange(waits_for_call_, false)) {
    given_up_ = false;
    connects_again_ = true;
    changed_.notify_all();
  }
  // Any list that begins from now on is new enough, even if the server announces further changes.
  const auto are_known = [this, wanted = changes_]()
                             REQUIRES(mutex_) { return session_ && !session_ended_ && listed_ >= wanted; };
  changed_.wait_for(lock, stop, timeout,
                    [&]() REQUIRES(mutex_) { return are_known() || given_up_ || !wants_login_.empty(); });
  if (are_known()) return {};
  if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "the call was cancelled");
  if (session_ && !session_ended_) return Fail(ErrorCode::kUnavailable, "its tools have changed and cannot be listed");
  if (!wants_login_.empty()) return Fail(ErrorCode::kUnavailable, wants_login_);
  return Fail(ErrorCode::kUnavailable, message_.empty() ? "it is being started" : message_);
}

Result<void> ServerConnection::AwaitOffers(milliseconds timeout, const std::stop_token& stop) {
  MutexLock lock(mutex_);
  return WaitForOffers(lock, timeout, stop);
}

Result<std::shared_ptr<Session>> ServerConnection::SessionFor(const McpOffer& offer, milliseconds timeout,
                                                              const std::stop_token& stop) {
  MutexLock lock(mutex_);
  TRY(WaitForOffers(lock, timeout, stop));
  if (std::ranges::find(offers_, offer) != offers_.end()) return session_;
  return Fail(ErrorCode::kConflict, "the tool is not there any more, or not as it was");
}

void ServerConnection::ListAgain() {
  const MutexLock lock(mutex_);
  ++changes_;
  changed_.notify_all();
}

// Pauses for `length`. Ends early and returns true if ConnectAgain was called or a log-in has changed the token, here
// or in another process.
bool ServerConnection::Pause(seconds length, bool wants_login, const std::stop_token& stop) {
  const std::string token = wants_login ? TokenNow() : "";
  for (const auto end = Clock::now() + length; Clock::now() < end && !stop.stop_requested();) {
    {
      MutexLock lock(mutex_);
      const auto until = wants_login ? std::min(end, Clock::now() + kBetweenLooks) : end;
      changed_.wait_until(lock, stop, until, [this]() REQUIRES(mutex_) { return connects_again_; });
    }
    if (IsToConnectAgain()) return true;
    if (!wants_login || TokenNow() == token) continue;
    const MutexLock lock(mutex_);
    wants_login_.clear();
    return true;
  }
  return false;
}

std::string ServerConnection::TokenNow() {
  const auto login = parts_.credentials.Look(options_.name, options_.url);
  return login ? login->tokens.access_token : "";
}

bool ServerConnection::IsToConnectAgain() {
  const MutexLock lock(mutex_);
  return std::exchange(connects_again_, false);
}

void ServerConnection::ConnectAgain() {
  const MutexLock lock(mutex_);
  connects_again_ = session_ended_ = true;
  wants_login_.clear();
  changed_.notify_all();
}

void ServerConnection::Approved(const McpOffer& offer) {
  {
    const MutexLock publishing(publish_mutex_);
    if (stopped_) return;
    Keep(offer);
  }
  Publish();
}

void ServerConnection::Keep(const McpOffer& offer) {
  if (auto given = parts_.consents.Give(options_.name, offer.definition.name, Fingerprint(offer)); !given) {
    LogWarning("an approval could not be stored; the tool will ask again",
               {{"server", options_.name}, {"error", given.error().message}});
  }
}

void ServerConnection::SetState(ToolServer::State state, std::string message) {
  {
    const MutexLock lock(mutex_);
    state_ = state;
    message_ = std::move(message);
    changed_.notify_all();
  }
  Publish();
}

ToolServer::Login ServerConnection::LoginNow() {
  if (!options_.auth) return ToolServer::Login::kNotNeeded;
  return TokenNow().empty() ? ToolServer::Login::kLoggedOut : ToolServer::Login::kLoggedIn;
}

void ServerConnection::Publish() {
  const MutexLock publishing(publish_mutex_);
  if (stopped_) return;
  ToolServer server{.name = options_.name, .login = LoginNow()};
  ToolOrigin origin{.kind = ToolOrigin::Kind::kServer, .name = options_.name};
  std::vector<McpOffer> offers;
  {
    const MutexLock lock(mutex_);
    origin.version = version_;
    origin.revision = revision_;
    server.state = state_;
    server.message = message_;
    server.instructions = instructions_;
    offers = offers_;
  }
  std::vector<std::shared_ptr<Tool>> tools;
  for (McpOffer& offer : offers) {
    ToolTraits traits = Traits(offer, origin);
    tools.push_back(MakeMcpTool(shared_from_this(), std::move(offer), std::move(traits)));
  }
  UnlistedTool unlisted;
  if (server.state == ToolServer::State::kConnecting && tools.empty()) {
    unlisted = [self = shared_from_this()](std::string_view name) { return MakeUnlistedMcpTool(self, name); };
  }
  parts_.on_change(std::move(server), std::move(tools), std::move(unlisted));
}

ToolFingerprint ServerConnection::Fingerprint(const McpOffer& offer) {
  const McpToolDefinition& tool = offer.definition;
  return {.launch = launch(),
          .description = Sha256Digest({tool.description}),
          .schema = Sha256Digest({tool.input_schema, "\n", tool.other})};
}

ToolTraits ServerConnection::Traits(const McpOffer& offer, ToolOrigin origin) {
  const McpToolDefinition& tool = offer.definition;
  const bool trusted = options_.trust_annotations;
  ToolTraits traits;
  traits.spec = {.name = McpToolName(options_.name, tool.name),
                 .description = std::string(Utf8Prefix(tool.description, kMaxDescription)),
                 .parameters = tool.input_schema};
  traits.read_only = trusted && tool.read_only_hint;
  traits.idempotent = trusted && (tool.read_only_hint || tool.idempotent_hint);
  traits.requires_approval = !traits.read_only;
  traits.risk = traits.read_only ? Risk::kLow : tool.destructive_hint ? Risk::kHigh : Risk::kMedium;
  traits.approval_reason = "calls the MCP server " + options_.name;
  const ToolFingerprint fingerprint = Fingerprint(offer);
  traits.origin = std::move(origin);
  traits.origin.digest = Sha256Digest({fingerprint.description, "\n", fingerprint.schema});
  traits.terms = DumpJson(
      {fingerprint.launch, fingerprint.description, fingerprint.schema, static_cast<int>(offer.kind), tool.as_task});
  switch (parts_.consents.Look(options_.name, tool.name, fingerprint)) {
    case Consents::State::kGiven:
      return traits;
    case Consents::State::kNew:
      traits.approval_reason += "; this tool has not been approved before";
      break;
    case Consents::State::kLaunchChanged:
      traits.approval_reason +=
          ", whose COMMAND OR ADDRESS HAS CHANGED, or the program it runs, since this tool was approved";
      break;
    case Consents::State::kDescriptionChanged:
      traits.approval_reason += "; the tool's DESCRIPTION HAS CHANGED since it was approved";
      break;
    case Consents::State::kSchemaChanged:
      traits.approval_reason += "; the tool's SCHEMA HAS CHANGED since it was approved";
      break;
  }
  traits.needs_consent = true;
  return traits;
}

}  // namespace reprise
