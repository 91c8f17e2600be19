#include "mcp/mcp_servers.h"

#include <condition_variable>
#include <map>
#include <mutex>

#include "base/posix_file_system.h"
#include "stdio_fixture.h"

namespace reprise {
namespace {

using State = ToolServer::State;

// Configured servers, and what they have told of themselves.
class Servers {
 public:
  explicit Servers(const std::vector<McpServerOptions>& options, const std::string& approvals = "") {
    McpServers::Parts parts{.transport = transport_,
                            .file_system = disk_,
                            .approvals_file = approvals.empty() ? directory_.File("approved") : approvals,
                            .workspace = directory_.path(),
                            .client_version = "1",
                            .on_change = {}};
    parts.on_change = [this](ToolServer server, std::vector<std::shared_ptr<Tool>> tools, UnlistedTool unlisted) {
      const std::lock_guard lock(mutex_);
      if (unlisted) first_unlisted_ = std::move(unlisted);
      tools_[server.name] = std::move(tools);
      history_[server.name].push_back(std::move(server));
      changed_.notify_all();
    };
    servers_ = std::make_unique<McpServers>(options, std::move(parts));
    servers_->Start();
  }

  // The first state, from the `from`-th on, that satisfies the condition.
  template <typename Condition>
  ToolServer Await(const std::string& name, Condition condition, std::size_t from = 0) {
    std::unique_lock lock(mutex_);
    ToolServer found;
    const bool came = changed_.wait_for(lock, std::chrono::seconds(60), [&] {
      const auto& states = history_[name];
      for (std::size_t i = from; i < states.size(); ++i) {
        if (!condition(states[i])) continue;
        found = states[i];
        return true;
      }
      return false;
    });
    REQUIRE(came);
    return found;
  }
  ToolServer AwaitState(const std::string& name, State state, std::size_t from = 0) {
    return Await(
        name, [&](const ToolServer& server) { return server.state == state; }, from);
  }
  // What stood for tools that were not known yet.
  std::shared_ptr<Tool> Unlisted(const std::string& tool) {
    const std::lock_guard lock(mutex_);
    return first_unlisted_ ? first_unlisted_(tool) : nullptr;
  }
  std::size_t Changes(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return history_[name].size();
  }

  std::shared_ptr<Tool> Find(const std::string& server, const std::string& tool) {
    const std::lock_guard lock(mutex_);
    for (const auto& candidate : tools_[server]) {
      if (candidate->traits().spec.name == tool) return candidate;
    }
    return nullptr;
  }
  ToolOutcome Call(const std::string& tool, const std::string& arguments = "{}", bool approved = false) {
    const auto found = Find("scripted", tool);
    REQUIRE(found != nullptr);
    ToolContext context;
    context.approved = approved;
    context.timeout = std::chrono::seconds(30);
    return found->Run(arguments, context);
  }

 private:
  CurlTransport transport_;
  PosixFileSystem disk_;
  TempDirectory directory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::vector<ToolServer>> history_;
  std::map<std::string, std::vector<std::shared_ptr<Tool>>> tools_;
  UnlistedTool first_unlisted_;
  std::unique_ptr<McpServers> servers_;  // last: ends before what it calls is gone
};

}  // namespace

TEST_CASE("McpServers: tools appear under the server's name, and are called", "[mcp]") {
  Servers servers({ScriptedStdioServer("plain")});
  CHECK(servers.AwaitState("scripted", State::kReady).message == "scripted 1");
  const auto echo = servers.Find("scripted", "scripted__echo");
  REQUIRE(echo != nullptr);
  CHECK_FALSE(echo->traits().read_only);  // it says so, but who says that it is true
  CHECK(echo->traits().requires_approval);
  CHECK(echo->traits().spec.description == "The tool echo.");
  CHECK(servers.Call("scripted__echo", R"({"text":"x"})").output == "x");
  const ToolOutcome refused = servers.Call("scripted__refuse");
  CHECK(refused.is_error);
  CHECK(refused.output == "The call of the MCP server scripted failed: the server reports: not today (-32050)");
}

TEST_CASE("McpServers: a changed list of tools is taken over", "[mcp]") {
  Servers servers({ScriptedStdioServer("plain")});
  servers.AwaitState("scripted", State::kReady);
  CHECK(servers.Find("scripted", "scripted__grown") == nullptr);
  const std::size_t before = servers.Changes("scripted");
  CHECK(servers.Call("scripted__grow").output == "grown");
  servers.AwaitState("scripted", State::kReady, before);
  CHECK(servers.Find("scripted", "scripted__grown") != nullptr);
}

TEST_CASE("McpServers: after a crash the server is started again and the call is not", "[mcp]") {
  Servers servers({ScriptedStdioServer("plain")});
  servers.AwaitState("scripted", State::kReady);
  const std::size_t before = servers.Changes("scripted");
  const ToolOutcome crashed = servers.Call("scripted__crash");
  CHECK(crashed.is_error);
  CHECK(crashed.output ==
        "The call of the MCP server scripted failed: the server ended with exit status 7: last words");
  CHECK(servers.AwaitState("scripted", State::kFailed, before).message ==
        "the server ended with exit status 7: last words");
  // A call meanwhile waits for the server that is being started; had the crash been repeated, it would crash again.
  CHECK(servers.Call("scripted__echo", R"({"text":"back"})").output == "back");
}

TEST_CASE("McpServers: a command that does not work is given up after a few attempts", "[mcp]") {
  Servers servers({ScriptedStdioServer("exit")});
  const ToolServer failed = servers.AwaitState("scripted", State::kFailed);
  CHECK(failed.message == "the server ended with exit status 3: no configuration");
  CHECK(failed.tools == 0);
}

TEST_CASE("McpServers: the first approved call is the consent, which a restart remembers", "[mcp]") {
  TempDirectory directory;
  const std::string approvals = directory.File("approved");
  {
    Servers servers({ScriptedStdioServer("described", "first")}, approvals);
    servers.AwaitState("scripted", State::kReady);
    CHECK(servers.Find("scripted", "scripted__echo")->traits().needs_consent);
    servers.Call("scripted__echo", R"({"text":"x"})", /*approved=*/false);
    CHECK(servers.Find("scripted", "scripted__echo")->traits().needs_consent);
    servers.Call("scripted__echo", R"({"text":"x"})", /*approved=*/true);
    CHECK_FALSE(servers.Find("scripted", "scripted__echo")->traits().needs_consent);
    CHECK(servers.Find("scripted", "scripted__fail")->traits().needs_consent);
  }
  {
    Servers servers({ScriptedStdioServer("described", "first")}, approvals);
    servers.AwaitState("scripted", State::kReady);
    CHECK_FALSE(servers.Find("scripted", "scripted__echo")->traits().needs_consent);
  }
  {
    // Another description, by another command line: the command is what is named.
    Servers servers({ScriptedStdioServer("described", "second")}, approvals);
    servers.AwaitState("scripted", State::kReady);
    const auto echo = servers.Find("scripted", "scripted__echo");
    CHECK(echo->traits().needs_consent);
    CHECK(echo->traits().approval_reason.find("COMMAND OR ADDRESS HAS CHANGED") != std::string::npos);
  }
}

TEST_CASE("McpServers: a call that was shown before finds its tool once the server is there", "[mcp]") {
  TempDirectory directory;
  const std::string approvals = directory.File("approved");
  ToolContext context;
  context.approved = true;
  {
    Servers servers({ScriptedStdioServer("described", "first")}, approvals);
    CHECK(servers.Unlisted("other__echo") == nullptr);
    const auto echo = servers.Unlisted("scripted__echo");
    REQUIRE(echo != nullptr);
    CHECK(echo->traits().requires_approval);
    CHECK(echo->Run(R"({"text":"x"})", context).output == "x");
    CHECK(servers.Unlisted("scripted__none")->Run("{}", context).is_error);
  }
  Servers servers({ScriptedStdioServer("described", "second")}, approvals);
  const ToolOutcome refused = servers.Unlisted("scripted__echo")->Run(R"({"text":"x"})", context);
  CHECK(refused.is_error);
  CHECK(refused.output == "The tool is not there any more, or is not what was approved. It was not run.");
}

TEST_CASE("McpServers: annotations count only where they are trusted", "[mcp]") {
  McpServerOptions options = ScriptedStdioServer("plain");
  options.trust_annotations = true;
  Servers servers({options});
  servers.AwaitState("scripted", State::kReady);
  const ToolTraits& echo = servers.Find("scripted", "scripted__echo")->traits();
  CHECK(echo.read_only);
  CHECK_FALSE(echo.requires_approval);
  CHECK(echo.needs_consent);
  const ToolTraits& fail = servers.Find("scripted", "scripted__fail")->traits();
  CHECK_FALSE(fail.read_only);
  CHECK(fail.requires_approval);
}

TEST_CASE("McpServers: a server that never answers holds nobody up", "[mcp]") {
  McpServerOptions deaf = ScriptedStdioServer("deaf");
  deaf.name = "deaf";
  deaf.startup_timeout = std::chrono::milliseconds(200);
  Servers servers({deaf, ScriptedStdioServer("plain")});
  servers.AwaitState("scripted", State::kReady);
  CHECK(servers.AwaitState("deaf", State::kFailed).message == "the server did not answer within 200 ms");
}

TEST_CASE("Consents: what was approved, and what of it has changed", "[mcp]") {
  TempDirectory directory;
  PosixFileSystem disk;
  const std::string path = directory.File("approved");
  const ToolFingerprint shown{.launch = "a", .description = "b", .schema = "c"};
  Consents consents(disk, path);
  CHECK(consents.Look("s", "t", shown) == Consents::State::kNew);
  REQUIRE(consents.Give("s", "t", shown).has_value());
  Consents again(disk, path);
  CHECK(again.Look("s", "t", shown) == Consents::State::kGiven);
  CHECK(again.Look("s", "u", shown) == Consents::State::kNew);
  CHECK(again.Look("s", "t", {.launch = "x", .description = "b", .schema = "c"}) == Consents::State::kLaunchChanged);
  CHECK(again.Look("s", "t", {.launch = "a", .description = "x", .schema = "c"}) ==
        Consents::State::kDescriptionChanged);
  CHECK(again.Look("s", "t", {.launch = "a", .description = "b", .schema = "x"}) == Consents::State::kSchemaChanged);
}

TEST_CASE("Consents: a damaged file approves nothing and is kept aside", "[mcp]") {
  TempDirectory directory;
  PosixFileSystem disk;
  const std::string path = directory.File("approved");
  {
    auto file = disk.CreateFile(path);
    REQUIRE(file.has_value());
    REQUIRE((*file)->Append("{\"servers\": 7").has_value());
  }
  const ToolFingerprint shown{.launch = "a", .description = "b", .schema = "c"};
  Consents consents(disk, path);
  CHECK(consents.Look("s", "t", shown) == Consents::State::kNew);
  REQUIRE(consents.Give("s", "t", shown).has_value());
  CHECK(Consents(disk, path).Look("s", "t", shown) == Consents::State::kGiven);
  CHECK(disk.ListDirectory(directory.path())->size() == 2);
}

}  // namespace reprise
