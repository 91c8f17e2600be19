// The real binary, as its users run it.
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "base/json.h"
#include "cli/reprise_process.h"
#include "support/fixtures.h"
#include "support/schema_validator.h"
#include "support/source_directory.h"
#include "support/test.h"

namespace reprise::test {
namespace {

struct Child {
  pid_t pid;
  int out, err;
};

Child Spawn(const std::vector<std::string>& arguments, const Variables& variables, const std::string& directory) {
  std::vector<std::string> words = {REPRISE_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> settings;
  for (const auto& [name, value] : variables) settings.push_back(name + "=" + value);
  std::vector<char*> argv, envp;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& setting : settings) envp.push_back(setting.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);

  std::array<int, 2> out{}, err{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  pid_t pid = -1;
  const int failed = posix_spawn(&pid, REPRISE_BINARY, &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(out[1]);
  ::close(err[1]);
  if (failed != 0) throw std::runtime_error("cannot start " REPRISE_BINARY);
  return {pid, out[0], err[0]};
}

// Reads both until they end.
void Drain(int out, int err, Finished& finished) {
  std::array<pollfd, 2> ends{{{out, POLLIN, 0}, {err, POLLIN, 0}}};
  std::array<std::string*, 2> texts{&finished.out, &finished.err};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    ::poll(ends.data(), ends.size(), -1);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t got = ::read(ends[i].fd, buffer, sizeof buffer);
      if (got > 0) texts[i]->append(buffer, static_cast<std::size_t>(got));
      if (got > 0) continue;
      ::close(ends[i].fd);
      ends[i].fd = -1;
    }
  }
}

int StatusOf(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Finished RunReprise(const std::vector<std::string>& arguments, const Variables& variables,
                    const std::string& directory) {
  const Child child = Spawn(arguments, variables, directory);
  Finished finished;
  Drain(child.out, child.err, finished);
  finished.status = StatusOf(child.pid);
  return finished;
}

ServerProcess::ServerProcess(std::vector<std::string> arguments, const Variables& variables,
                             const std::string& directory) {
  arguments.insert(arguments.begin(), "serve");
  const Child child = Spawn(arguments, variables, directory);
  pid_ = child.pid;
  out_ = child.out;
  err_ = child.err;
  char c = 0;
  while (::read(out_, &c, 1) == 1 && c != '\n') first_line_ += c;
  const std::size_t colon = first_line_.rfind(':');
  if (c != '\n' || colon == std::string::npos) {
    const Finished finished = Wait();
    throw std::runtime_error("the server did not start: " + finished.err);
  }
  port_ = std::stoi(first_line_.substr(colon + 1));
}

ServerProcess::~ServerProcess() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  Wait();
}

void ServerProcess::Signal(int number) const { ::kill(pid_, number); }

Finished ServerProcess::Wait() {
  Finished finished;
  Drain(out_, err_, finished);
  finished.status = StatusOf(pid_);
  pid_ = -1;
  return finished;
}

int ServerProcess::Connect() const {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port_));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) throw std::runtime_error("connect");
  return fd;
}

std::string ServerProcess::ReadToEnd(int socket) {
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = ::read(socket, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  ::close(socket);
  return text;
}

namespace {

void SendRequest(int fd, int port, const std::string& method, const std::string& path, const std::string& body,
                 bool close) {
  const std::string text = method + " " + path + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
                           (close ? "\r\nConnection: close" : "") +
                           (body.empty() ? "" : "\r\nContent-Type: application/json") +
                           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  if (::write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) throw std::runtime_error("write");
}

std::string BodyOf(const std::string& response) { return response.substr(response.find("\r\n\r\n") + 4); }

}  // namespace

std::string ServerProcess::Http(const std::string& method, const std::string& path, const std::string& body) const {
  const int fd = Connect();
  SendRequest(fd, port_, method, path, body, /*close=*/true);
  return ReadToEnd(fd);
}

int ServerProcess::OpenStream(const std::string& path, const std::string& body, const std::string& text) const {
  const int fd = Connect();
  SendRequest(fd, port_, "POST", path, body, /*close=*/false);
  std::string seen;
  char c = 0;
  while (seen.find(text) == std::string::npos) {
    if (::read(fd, &c, 1) != 1) throw std::runtime_error("the stream ended: " + seen);
    seen += c;
  }
  return fd;
}

namespace {

// A home, a data folder and a workspace of its own.
struct World {
  TempDirectory dir;
  Variables variables{{"HOME", dir.path()},
                      {"XDG_CONFIG_HOME", dir.File("config")},
                      {"XDG_STATE_HOME", dir.File("state")},
                      {"PATH", "/usr/bin:/bin"},
                      {"TMPDIR", dir.File("tmp")}};

  World() {
    ::mkdir(dir.File("work").c_str(), 0700);
    ::mkdir(dir.File("tmp").c_str(), 0700);
  }
  std::vector<std::string> Serve() const {
    return {"--port", "0", "--data-dir", dir.File("chats"), "--workspace", dir.File("work")};
  }
  Finished Run(const std::vector<std::string>& arguments) const { return RunReprise(arguments, variables, dir.path()); }
};

const std::string kSample = SourceDirectory() + "/chats/sample";

bool IsOneLine(const std::string& text) { return !text.empty() && text.find('\n') == text.size() - 1; }

}  // namespace

TEST_CASE("reprise: wrong usage is status 2 with one line on stderr", "[commands]") {
  const World world;
  for (const auto& arguments : std::vector<std::vector<std::string>>{{}, {"fly"}, {"cat"}, {"serve", "--port", "x"}}) {
    const Finished finished = world.Run(arguments);
    INFO(finished.err);
    CHECK(finished.status == 2);
    CHECK(finished.out.empty());
    CHECK(IsOneLine(finished.err));
  }
  CHECK(world.Run({"--version"}).out == "reprise 0.1.0\n");
  CHECK(world.Run({"serve", "--help"}).status == 0);
}

TEST_CASE("reprise keys: init creates a private file, list shows ids only", "[commands]") {
  const World world;
  const Finished none = world.Run({"keys", "list"});
  CHECK(none.status == 1);
  CHECK(IsOneLine(none.err));

  REQUIRE(world.Run({"keys", "init"}).status == 0);
  const std::string file = world.dir.File("config/reprise/keys.jwks");
  struct stat status {};
  REQUIRE(::stat(file.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  const std::string text = ReadText(file);
  CHECK(SchemaValidator("keys").Complaint(text).empty());
  REQUIRE(world.Run({"keys", "init"}).status == 0);  // again: nothing changes
  CHECK(ReadText(file) == text);

  const Json key = ParseJson(text)->at("keys").at(0);
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"keys", "list"}, {"keys", "list", "--json"}, {"keys", "init"}}) {
    const Finished listed = world.Run(arguments);
    CHECK(listed.status == 0);
    CHECK(listed.out.find(key.at("kid").get<std::string>()) != std::string::npos);
    CHECK((listed.out + listed.err).find(key.at("k").get<std::string>()) == std::string::npos);
  }
  ::chmod(file.c_str(), 0644);
  CHECK(world.Run({"keys", "list"}).status == 1);
}

TEST_CASE("reprise ls, cat, show: read the sample", "[commands]") {
  const World world;
  const std::vector<std::string> sample = {"--plain", "--data-dir", kSample};
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), sample.begin(), sample.end());
    Finished finished = world.Run(arguments);
    INFO(finished.err);
    REQUIRE(finished.status == 0);
    return finished.out;
  };
  CHECK(run({"ls"}).find("trip  2025-01-15 10:01:12  int_002  Hotel 3 nights") == 0);
  CHECK(SchemaValidator("interaction").Complaint(run({"cat", "trip/int_002"})).empty());
  CHECK(*ParseJson(run({"cat", "trip/int_002"})) == *ParseJson(ReadText(kSample + "/trip/interactions/int_002.json")));
  CHECK(SchemaValidator("chat_history").Complaint(run({"cat", "trip"})).empty());
  CHECK(run({"cat", kSample + "/trip/chat.json"}) == ReadText(kSample + "/trip/chat.json"));
  CHECK(run({"show", "trip"}).find("  agent     Done: budget.txt says 375.90.\n") != std::string::npos);
  CHECK(run({"show", "trip/int_001"}).find("  tool      calculator") != std::string::npos);
  const Json listed = *ParseJson(run({"ls", "trip", "--json"}));
  CHECK(listed.at("interactions").size() == 2);
  CHECK(listed.at("interactions").at(1).at("superseded") == false);
}

TEST_CASE("reprise cat and show: what is not there is status 1 and one line", "[commands]") {
  const World world;
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"cat", "trip/int_009"}, {"cat", "nobody"}, {"cat", "/no/such/file"}, {"show", "nobody"}, {"show", "a b"}}) {
    auto all = arguments;
    all.insert(all.end(), {"--plain", "--data-dir", kSample});
    const Finished finished = world.Run(all);
    INFO(finished.err);
    CHECK(finished.status == 1);
    CHECK(IsOneLine(finished.err));
    CHECK(finished.out.empty());
  }
  CHECK(world.Run({"ls", "--data-dir", "none", "--plain"}).status == 1);
}

TEST_CASE("reprise serve: says that it listens, answers, stores sealed, and stops on SIGTERM", "[commands][serve]") {
  const World world;
  ServerProcess server(world.Serve(), world.variables, world.dir.path());
  CHECK(server.first_line() == "reprise listening on http://127.0.0.1:" + std::to_string(server.port()));

  const std::string stream = server.Http("POST", "/chats/c1/interactions", R"({"user_message": "echo marzipan"})");
  INFO(stream);
  CHECK(stream.find("event: interaction_complete") != std::string::npos);

  // While it runs: the commands that read need no lock, another server gets none.
  const Finished shown = world.Run({"show", "c1", "--data-dir", world.dir.File("chats")});
  CHECK(shown.status == 0);
  CHECK(shown.out.find("marzipan") != std::string::npos);
  auto again = world.Serve();
  again.insert(again.begin(), "serve");
  const Finished second = world.Run(again);
  CHECK(second.status == 1);
  CHECK(IsOneLine(second.err));
  const Finished doctor = world.Run({"doctor", "--json", "--data-dir", world.dir.File("chats"), "--port", "0"});
  INFO(doctor.out);
  CHECK(doctor.status == 0);
  CHECK(ParseJson(doctor.out)->at("ok") == true);
  CHECK(doctor.out.find("a server is using this folder") != std::string::npos);

  const std::string sealed = ReadText(world.dir.File("chats/c1/interactions/int_001.json"));
  CHECK(sealed.find("marzipan") == std::string::npos);
  CHECK(SchemaValidator("jwe").Complaint(sealed).empty());

  server.Signal(SIGTERM);
  const Finished finished = server.Wait();
  CHECK(finished.status == 0);
  CHECK(finished.err.find("marzipan") == std::string::npos);
  CHECK(world.Run({"cat", world.dir.File("chats/c1/interactions/int_001.json")}).out.find("marzipan") !=
        std::string::npos);
}

TEST_CASE("reprise serve: an open stream gets its last event before the server exits", "[commands][serve]") {
  const World world;
  auto arguments = world.Serve();
  arguments.insert(arguments.end(), {"--approval-mode", "approve_all"});
  ServerProcess server(arguments, world.variables, world.dir.path());
  const int stream =
      server.OpenStream("/chats/c1/interactions", R"({"user_message": "run: sleep 100"})", "event: tool_call");
  const auto begin = std::chrono::steady_clock::now();
  server.Signal(SIGINT);
  const std::string rest = ServerProcess::ReadToEnd(stream);
  CHECK(server.Wait().status == 0);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  INFO(rest);
  CHECK(rest.find("event: cancelled") != std::string::npos);
  CHECK(rest.find("event: interaction_complete") != std::string::npos);
  const Finished stored = world.Run({"cat", "c1/int_001", "--data-dir", world.dir.File("chats")});
  REQUIRE(stored.status == 0);
  CHECK(ParseJson(stored.out)->at("status") == "CANCELLED");
  CHECK(SchemaValidator("interaction").Complaint(stored.out).empty());
}

TEST_CASE("reprise serve: what it sends satisfies the schemas", "[commands][serve][schemas]") {
  const World world;
  ServerProcess server(world.Serve(), world.variables, world.dir.path());
  const auto check = [&](const char* schema, const std::string& method, const std::string& path,
                         const std::string& body = {}) {
    const std::string response = server.Http(method, path, body);
    INFO(method << " " << path << "\n" << response);
    CHECK(SchemaValidator(schema).Complaint(BodyOf(response)).empty());
  };
  check("interaction", "POST", "/chats/c1/interactions", R"({"user_message": "echo one", "stream": false})");
  check("interaction", "POST", "/chats/c1/interactions/int_001/edit",
        R"({"new_user_message": "echo two", "stream": false})");
  check("edit_preview", "POST", "/chats/c1/interactions/int_001/edit", R"({"new_user_message": "x", "dry_run": true})");
  check("interaction", "POST", "/chats/c1/interactions/int_002/regenerate", R"({"stream": false})");
  check("replay_report", "POST", "/chats/c1/interactions/int_002/replay", R"({"mode": "recorded"})");
  check("interaction", "GET", "/chats/c1/interactions/int_001");
  check("events_page", "GET", "/chats/c1/interactions/int_001/events");
  check("cancel_response", "POST", "/chats/c1/interactions/int_001/cancel");
  check("chat_history", "GET", "/chats/c1");
  check("chat_history", "GET", "/chats/c1?branches=all");
  check("chat_summary", "POST", "/chats/c1/head", R"({"interaction_id": "int_001"})");
  check("chat_summary", "PATCH", "/chats/c1", R"({"title": "T"})");
  check("chat_summary", "POST", "/chats", R"({"id": "c2"})");
  check("chat_list", "GET", "/chats");
  check("chat_deleted", "DELETE", "/chats/c2");
  check("approvals", "GET", "/approvals");
  check("tools", "GET", "/tools");
  check("models", "GET", "/models");
  check("health", "GET", "/healthz");
  check("health", "GET", "/readyz");
  check("error", "GET", "/nowhere");
  check("error", "POST", "/chats/c1/interactions", "{");
  check("error", "GET", "/chats/c9");
  CHECK(BodyOf(server.Http("GET", "/openapi.json")) == ReadText(SourceDirectory() + "/schemas/openapi.json"));

  const int stream =
      server.OpenStream("/chats/c3/interactions", R"({"user_message": "run: true"})", "event: approval_required");
  check("approvals", "GET", "/approvals");
  const std::string pending = BodyOf(server.Http("GET", "/approvals"));
  const std::string id = ParseJson(pending)->at("approvals").at(0).at("approval_id").get<std::string>();
  check("approve_response", "POST", "/approvals/" + id, R"({"approved": false, "feedback": "no"})");
  check("error", "POST", "/approvals/" + id, R"({"approved": true})");
  ::close(stream);
  const int writing = server.OpenStream("/chats/c4/interactions", R"({"user_message": "write notes.txt: new"})",
                                        "event: approval_required");
  const std::string write = BodyOf(server.Http("GET", "/approvals"));
  const std::string write_id = ParseJson(write)->at("approvals").at(0).at("approval_id").get<std::string>();
  check("file_change", "GET", "/approvals/" + write_id + "/change");
  check("error", "GET", "/approvals/" + id + "/change");
  ::close(writing);
}

TEST_CASE("reprise serve --plain: the files on disk satisfy the schemas", "[commands][serve][schemas]") {
  const World world;
  {
    auto arguments = world.Serve();
    arguments.push_back("--plain");
    ServerProcess server(arguments, world.variables, world.dir.path());
    server.Http("POST", "/chats/c1/interactions", R"({"user_message": "echo one", "stream": false})");
    server.Signal(SIGTERM);
    REQUIRE(server.Wait().status == 0);
  }
  CHECK(
      SchemaValidator("interaction").Complaint(ReadText(world.dir.File("chats/c1/interactions/int_001.json"))).empty());
  const std::string index = ReadText(world.dir.File("chats/c1/chat.json"));
  INFO(index << SchemaValidator("chat").Complaint(index));
  CHECK(SchemaValidator("chat").Complaint(index).empty());
}

TEST_CASE("reprise serve: a configuration error is one line that names the key", "[commands][serve]") {
  const World world;
  world.dir.Write("reprise.json", R"({"prot": 1})");
  const Finished finished = world.Run({"serve", "--port", "0"});
  CHECK(finished.status == 2);
  CHECK(finished.err == "reprise: reprise.json: unknown key \"prot\", did you mean port?\n");
}

TEST_CASE("reprise serve: refuses a key file in the data folder", "[commands][serve]") {
  const World world;
  auto arguments = world.Serve();
  arguments.insert(arguments.begin(), "serve");
  arguments.insert(arguments.end(), {"--key-file", world.dir.File("chats/keys.jwks")});
  const Finished finished = world.Run(arguments);
  CHECK(finished.status == 1);
  CHECK(finished.err == "reprise: the key file must not lie in the data folder\n");
}

}  // namespace reprise::test
