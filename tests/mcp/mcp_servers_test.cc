#include "mcp/mcp_servers.h"

#include <condition_variable>
#include <map>
#include <mutex>

#include "base/atomic_write.h"
#include "base/posix_file_system.h"
#include "stdio_fixture.h"

namespace reprise::mcp_servers_test {
namespace {

using State = ToolServer::State;

// Configured servers, and what they have told of themselves.
class Servers {
 public:
  explicit Servers(const std::vector<McpServerOptions>& options, const std::string& approvals = "",
                   const std::string& workspace = "/nowhere", const std::string& eras = "") {
    McpServers::Parts parts{.transport = transport_,
                            .file_system = disk_,
                            .approvals_file = approvals.empty() ? directory_.File("approved") : approvals,
                            .logins_file = directory_.File("logins"),
                            .eras_file = eras.empty() ? directory_.File("eras") : eras,
                            .keys = nullptr,
                            .workspace = workspace,
                            .folders = folders_.path(),
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

  McpServers* operator->() { return servers_.get(); }
  const std::string& folders() const { return folders_.path(); }

  // The first state from index `from` on that satisfies the condition.
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
  // The stand-ins for tools that were not known yet.
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
  TempDirectory directory_, folders_;
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
  CHECK_FALSE(echo->traits().read_only);  // the server claims it, but is not trusted
  CHECK(echo->traits().requires_approval);
  CHECK(echo->traits().spec.description == "The tool echo.");
  CHECK(servers.Call("scripted__echo", R"({"text":"x"})").output == "x");
  const ToolOutcome refused = servers.Call("scripted__refuse");
  CHECK(refused.is_error);
  CHECK(refused.output == "The call of the MCP server scripted failed: the server reports: not today (-32050)");
}

TEST_CASE("McpServers: a changed list of tools is adopted", "[mcp]") {
  Servers servers({ScriptedStdioServer("plain")});
  servers.AwaitState("scripted", State::kReady);
  CHECK(servers.Find("scripted", "scripted__grown") == nullptr);
  const std::size_t before = servers.Changes("scripted");
  CHECK(servers.Call("scripted__grow").output == "grown");
  servers.AwaitState("scripted", State::kReady, before);
  CHECK(servers.Find("scripted", "scripted__grown") != nullptr);
}

TEST_CASE("McpServers: after a crash the server is restarted, but the call is not repeated", "[mcp]") {
  Servers servers({ScriptedStdioServer("plain")});
  servers.AwaitState("scripted", State::kReady);
  const std::size_t before = servers.Changes("scripted");
  const ToolOutcome crashed = servers.Call("scripted__crash");
  CHECK(crashed.is_error);
  CHECK(crashed.output ==
        "The call of the MCP server scripted failed: the server ended with exit status 7: last words");
  CHECK(servers.AwaitState("scripted", State::kFailed, before).message ==
        "the server ended with exit status 7: last words");
  // A call meanwhile waits for the restarting server; if the crashing call were repeated, it would crash again.
  CHECK(servers.Call("scripted__echo", R"({"text":"back"})").output == "back");
}

TEST_CASE("McpServers: a command that does not work is given up after a few attempts", "[mcp]") {
  Servers servers({ScriptedStdioServer("exit")});
  const ToolServer failed = servers.AwaitState("scripted", State::kFailed);
  CHECK(failed.message == "the server ended with exit status 3: no configuration");
  CHECK(failed.tools == 0);
}

TEST_CASE("McpServers: a command that was given up is started again by the next call", "[mcp]") {
  TempDirectory directory;
  const std::string file = directory.File("configured");
  McpServerOptions options = ScriptedStdioServer("plain");
  std::string line = "test -e " + file + " || exit 3; exec " + options.command;
  for (const std::string& argument : options.arguments) line += " '" + argument + "'";
  options.command = "/bin/sh";
  options.arguments = {"-c", line};
  Servers servers({options});
  const std::string why = "the server ended with exit status 3";
  const ToolServer given_up =
      servers.Await("scripted", [&](const ToolServer& server) { return server.message.size() > why.size(); });
  CHECK(given_up.message == why + "; after several attempts it is only started again when one of its tools is called");
  const auto unlisted = servers.Unlisted("scripted__echo");
  REQUIRE(unlisted != nullptr);
  unlisted->AwaitOffer({});
  CHECK(unlisted->Run("{}", {}).output == "The MCP server scripted is not there: " + given_up.message);
  PosixFileSystem disk;
  REQUIRE(ReplaceFile(disk, file, ""));
  unlisted->AwaitOffer({});
  CHECK(servers.Call("scripted__echo", R"({"text":"back"})").output == "back");
}

TEST_CASE("McpServers: crashes between calls that are answered are no reason to give up", "[mcp]") {
  Servers servers({ScriptedStdioServer("plain")});
  servers.AwaitState("scripted", State::kReady);
  for (int i = 0; i < 6; ++i) {
    CHECK(servers.Call("scripted__crash").output.ends_with("exit status 7: last words"));
    CHECK(servers.Call("scripted__echo", R"({"text":"back"})").output == "back");
  }
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
    // Both the command line and the description change: the command is named.
    Servers servers({ScriptedStdioServer("described", "second")}, approvals);
    servers.AwaitState("scripted", State::kReady);
    const auto echo = servers.Find("scripted", "scripted__echo");
    CHECK(echo->traits().needs_consent);
    CHECK(echo->traits().approval_reason.find("COMMAND OR ADDRESS HAS CHANGED") != std::string::npos);
  }
}

TEST_CASE("McpServers: the stand-in for an unknown tool waits for it, and does nothing itself", "[mcp]") {
  Servers servers({ScriptedStdioServer("plain")});
  CHECK(servers.Unlisted("other__echo") == nullptr);
  const auto unknown = servers.Unlisted("scripted__echo");
  REQUIRE(unknown != nullptr);
  CHECK(unknown->traits().requires_approval);
  CHECK_FALSE(unknown->traits().terms);
  unknown->AwaitOffer({});
  const auto echo = servers.Find("scripted", "scripted__echo");
  REQUIRE(echo != nullptr);
  CHECK(echo->traits().terms);
  ToolContext context;
  context.approved = true;
  CHECK(unknown->Run(R"({"text":"x"})", context).is_error);
  CHECK(echo->Run(R"({"text":"x"})", context).output == "x");
}

TEST_CASE("McpServers: an unchanged tool can be called after others have changed", "[mcp]") {
  Servers servers({ScriptedStdioServer("plain")});
  servers.AwaitState("scripted", State::kReady);
  const auto echo = servers.Find("scripted", "scripted__echo");
  CHECK(servers.Call("scripted__grow").output == "grown");
  echo->AwaitOffer({});
  CHECK(servers.Find("scripted", "scripted__grown") != nullptr);
  CHECK(echo->Run(R"({"text":"x"})", {}).output == "x");
}

TEST_CASE("McpServers: another workspace changes a server's launch", "[mcp]") {
  TempDirectory one, other;
  const std::string approvals = one.File("approved");
  {
    Servers servers({ScriptedStdioServer("plain")}, approvals, one.path());
    servers.AwaitState("scripted", State::kReady);
    servers.Call("scripted__echo", R"({"text":"x"})", /*approved=*/true);
    CHECK_FALSE(servers.Find("scripted", "scripted__echo")->traits().needs_consent);
  }
  Servers servers({ScriptedStdioServer("plain")}, approvals, other.path());
  servers.AwaitState("scripted", State::kReady);
  CHECK(servers.Find("scripted", "scripted__echo")->traits().needs_consent);
}

TEST_CASE("McpServers: annotations count only if they are trusted", "[mcp]") {
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

TEST_CASE("McpServers: a server that never answers does not block others", "[mcp]") {
  McpServerOptions deaf = ScriptedStdioServer("deaf");
  deaf.name = "deaf";
  deaf.startup_timeout = std::chrono::milliseconds(200);
  Servers servers({deaf, ScriptedStdioServer("plain")});
  servers.AwaitState("scripted", State::kReady);
  CHECK(servers.AwaitState("deaf", State::kFailed).message == "the server did not answer within 200 ms");
}

TEST_CASE("Consents: approvals, and changes since", "[mcp]") {
  TempDirectory directory;
  PosixFileSystem disk;
  const std::string path = directory.File("approved");
  const ToolFingerprint shown{.launch = "a", .description = "b", .schema = "c"};
  Consents consents(disk, path, nullptr);
  CHECK(consents.Look("s", "t", shown) == Consents::State::kNew);
  REQUIRE(consents.Give("s", "t", shown).has_value());
  Consents again(disk, path, nullptr);
  CHECK(again.Look("s", "t", shown) == Consents::State::kGiven);
  CHECK(again.Look("s", "u", shown) == Consents::State::kNew);
  CHECK(again.Look("s", "t", {.launch = "x", .description = "b", .schema = "c"}) == Consents::State::kLaunchChanged);
  CHECK(again.Look("s", "t", {.launch = "a", .description = "x", .schema = "c"}) ==
        Consents::State::kDescriptionChanged);
  CHECK(again.Look("s", "t", {.launch = "a", .description = "b", .schema = "x"}) == Consents::State::kSchemaChanged);
}

TEST_CASE("Consents: a file that no known key has sealed approves nothing", "[mcp]") {
  TempDirectory directory;
  PosixFileSystem disk;
  const std::string path = directory.File("approved");
  const auto keys = std::make_shared<const KeySet>(KeySet::Generate());
  const auto rotated = std::make_shared<const KeySet>(keys->WithNewKey());
  const auto others = std::make_shared<const KeySet>(KeySet::Generate());
  const ToolFingerprint shown{.launch = "a", .description = "b", .schema = "c"};
  const auto look = [&](const std::shared_ptr<const KeySet>& given) {
    return Consents(disk, path, given).Look("s", "t", shown);
  };
  REQUIRE(Consents(disk, path, keys).Give("s", "t", shown));
  CHECK(look(keys) == Consents::State::kGiven);
  CHECK(look(rotated) == Consents::State::kGiven);
  CHECK(look(others) == Consents::State::kNew);
  CHECK(look(std::make_shared<const KeySet>(rotated->WithoutOldKeys())) == Consents::State::kNew);

  auto text = *disk.ReadFile(path, 1 << 20);
  REQUIRE(text.find("\"a\"") != std::string::npos);
  text.replace(text.find("\"a\""), 3, "\"x\"");
  REQUIRE(ReplaceFile(disk, path, text));
  CHECK(Consents(disk, path, keys).Look("s", "t", {.launch = "x", .description = "b", .schema = "c"}) ==
        Consents::State::kNew);

  REQUIRE(Consents(disk, path, nullptr).Give("s", "t", shown));  // written by a server with a plain folder, or by hand
  CHECK(look(keys) == Consents::State::kNew);
}

TEST_CASE("Consents: a damaged file approves nothing and is set aside", "[mcp]") {
  TempDirectory directory;
  PosixFileSystem disk;
  const std::string path = directory.File("approved");
  {
    auto file = disk.CreateFile(path);
    REQUIRE(file.has_value());
    REQUIRE((*file)->Append("{\"servers\": 7").has_value());
  }
  const ToolFingerprint shown{.launch = "a", .description = "b", .schema = "c"};
  Consents consents(disk, path, nullptr);
  CHECK(consents.Look("s", "t", shown) == Consents::State::kNew);
  REQUIRE(consents.Give("s", "t", shown).has_value());
  CHECK(Consents(disk, path, nullptr).Look("s", "t", shown) == Consents::State::kGiven);
  CHECK(disk.ListDirectory(directory.path())->size() == 2);
}

TEST_CASE("McpServers: one is added and removed while others go on, and what was approved is forgotten", "[mcp]") {
  Servers servers({});
  REQUIRE(servers->Add(ScriptedStdioServer("plain"), servers.folders()));
  servers.AwaitState("scripted", State::kReady);
  REQUIRE(servers.Find("scripted", "scripted__echo")->traits().needs_consent);
  CHECK_FALSE(servers.Call("scripted__echo", R"({"text":"x"})", /*approved=*/true).is_error);
  servers.Await(
      "scripted", [&](const ToolServer&) { return true; }, servers.Changes("scripted") - 1);
  const auto removed = servers.Find("scripted", "scripted__echo");
  servers->Remove("scripted");
  const std::size_t changes = servers.Changes("scripted");
  CHECK_FALSE(servers->LogOut("scripted"));
  ToolContext context;
  context.timeout = std::chrono::seconds(30);
  CHECK(removed->Run("{}", context).is_error);  // at once
  CHECK(servers.Changes("scripted") == changes);
  servers->Remove("scripted");
  REQUIRE(servers->Add(ScriptedStdioServer("plain"), servers.folders()));
  servers.AwaitState("scripted", State::kReady, changes);
  CHECK(servers.Find("scripted", "scripted__echo")->traits().needs_consent);
  servers->StopLogins();
  CHECK_FALSE(servers->Add(ScriptedStdioServer("plain"), servers.folders()));
}

}  // namespace reprise::mcp_servers_test
