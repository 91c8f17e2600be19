#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/system.h"
#include "support/temp_directory.h"
#include "tools/tool_catalog.h"

namespace reprise {

// Answers every request with the same response, or failure, and remembers the last request.
class FakeTransport final : public Transport {
 public:
  void Send(HttpRequest request, HttpResponseHandler& handler, std::stop_token, Done done) override {
    last_request = std::move(request);
    ++requests;
    if (failure) return done(Fail(*failure));
    handler.OnHead(status, headers);
    for (const std::string& chunk : chunks) {
      ++chunks_taken;
      if (!handler.OnData(chunk)) break;
    }
    handler.OnBatchEnd();
    done({});
  }

  int status = 200;
  HttpHeaders headers = {{"content-type", "text/plain"}};
  std::vector<std::string> chunks = {"hello"};
  std::optional<Error> failure;
  HttpRequest last_request;
  int requests = 0;
  std::size_t chunks_taken = 0;
};

// A workspace with tools, beside a directory that is outside it.
class ToolFixture {
 public:
  ToolFixture() {
    std::filesystem::create_directory(workspace());
    std::filesystem::create_directory(outside());
    WriteOutside("secret.txt", "top secret\n");
    Rebuild();
  }

  std::string workspace() const { return root_.File("ws"); }
  std::string outside() const { return root_.File("outside"); }
  std::string Inside(const std::string& name) const { return workspace() + "/" + name; }

  ToolOptions Options() { return {.workspace_directory = workspace(), .transport = transport}; }
  void Rebuild() { registry = ToolCatalog(Options()).Current(); }
  void Rebuild(ToolOptions options) { registry = ToolCatalog(std::move(options)).Current(); }

  void Write(const std::string& name, const std::string& content) const { WriteTo(Inside(name), content); }
  void WriteOutside(const std::string& name, const std::string& content) const {
    WriteTo(outside() + "/" + name, content);
  }
  std::string Read(const std::string& name) const { return ReadFrom(Inside(name)); }
  static std::string ReadFrom(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Link(const std::string& target, const std::string& name) const {
    std::filesystem::create_symlink(target, Inside(name));
  }

  ToolOutcome Run(const std::string& tool, const std::string& arguments, const ToolContext& context = {}) {
    Tool* found = registry->Find(tool);
    if (found == nullptr) return {.output = "no such tool", .is_error = true};
    if (auto valid = registry->Validate(*found, arguments); !valid) return {valid.error().message, true};
    return found->Run(arguments, context);
  }

  FakeTransport transport;
  std::shared_ptr<const ToolSet> registry;

 private:
  static void WriteTo(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  }

  TempDirectory root_;
};

inline ToolContext Within(std::chrono::milliseconds timeout) {
  ToolContext context;
  context.timeout = timeout;
  return context;
}
inline ToolContext StoppedBy(const std::stop_source& source) {
  ToolContext context;
  context.stop = source.get_token();
  return context;
}

inline std::string Quote(const std::string& text) {
  std::string quoted = "\"";
  AppendJsonEscaped(quoted, text);
  return quoted + "\"";
}

// {"a":"x","b":"y"}
inline std::string Args(std::initializer_list<std::pair<std::string, std::string>> members) {
  std::string text = "{";
  for (const auto& [name, value] : members) text += (text.size() > 1 ? "," : "") + Quote(name) + ":" + Quote(value);
  return text + "}";
}

// A named pipe in a workspace; a process is alive while it holds the writing end.
class LifePipe {
 public:
  explicit LifePipe(const std::string& path) {
    ::mkfifo(path.c_str(), 0600);
    read_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  }
  // Waits until the pipe has data.
  bool WaitForWriter() const {
    pollfd wait{read_.get(), POLLIN, 0};
    return ::poll(&wait, 1, 20'000) == 1 && (wait.revents & POLLIN) != 0;
  }
  // The data if all writers are gone, else "alive".
  std::string AfterTheEnd() const {
    std::string text;
    std::array<char, 256> buffer{};
    for (ssize_t got; (got = ::read(read_.get(), buffer.data(), buffer.size())) != 0;) {
      if (got < 0) return "alive";
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return text;
  }

 private:
  UniqueFd read_;
};

}  // namespace reprise
