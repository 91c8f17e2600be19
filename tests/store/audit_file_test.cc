#include "store/audit_file.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/posix_file_system.h"
#include "store/upkeep.h"
#include "support/forwarding_file_system.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::audit_file_test {
namespace {

AuditEntry Entry(const std::string& tool = "echo") {
  return {.chat_id = "c",
          .interaction_id = "int_001",
          .call_id = "call_1",
          .tool_name = tool,
          .arguments_digest = "sha256:00",
          .reason = "default"};
}

std::shared_ptr<const KeySet> NewKeys() { return std::make_shared<const KeySet>(KeySet::Generate()); }

struct Folder {
  explicit Folder(std::uint64_t max_bytes = 1024 * 1024, std::shared_ptr<const KeySet> with = NewKeys())
      : size(max_bytes), keys(std::move(with)) {
    Reopen();
  }
  // A clean stop and a start.
  void Reopen() {
    log.reset();
    log = std::make_unique<AuditFile>(directory.path(), keys, disk,
                                      AuditFile::Settings{.max_bytes = size, .seal_after = std::chrono::hours(1)});
  }
  // A crash of the process and a start.
  void Crash() {
    const std::string head = Text(".audit_head");
    log.reset();
    Write(head, ".audit_head");
    Reopen();
  }
  void Add(int count) {
    for (int i = 0; i < count; ++i) REQUIRE(log->Append(Entry()));
  }
  std::vector<std::uint64_t> Numbers(std::uint64_t after = 0, std::size_t limit = 1000) {
    std::vector<std::uint64_t> numbers;
    const auto page = log->Read(after, limit);
    for (const std::string& line : page->lines) numbers.push_back(ParseJson(line)->at("seq"));
    return numbers;
  }
  std::vector<Problem> Problems() {
    VerifyReport report;
    VerifyAudit(directory.path(), keys.get(), disk, report);
    return report.problems;
  }
  std::string Text(const std::string& name = "audit.jsonl") {
    std::ifstream file(directory.File(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Write(const std::string& text, const std::string& name = "audit.jsonl") {
    std::ofstream(directory.File(name), std::ios::trunc) << text;
  }
  TempDirectory directory;
  PosixFileSystem disk;
  const std::uint64_t size;
  std::shared_ptr<const KeySet> keys;
  std::unique_ptr<AuditFile> log;
};

using Numbers = std::vector<std::uint64_t>;

// Calls a function once, before or after a file is read.
class EventfulDisk final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  Result<std::string> ReadFile(const std::string& path, std::uint64_t max_bytes) override {
    if (!path.ends_with(file)) return base_.ReadFile(path, max_bytes);
    if (before) std::exchange(before, {})();
    auto text = base_.ReadFile(path, max_bytes);
    if (after) std::exchange(after, {})();
    return text;
  }
  std::string file;
  std::function<void()> before, after;
};

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    lines.push_back(text.substr(at, text.find('\n', at) + 1 - at));
  }
  return lines;
}

Numbers UpTo(std::uint64_t last) {
  Numbers numbers(last);
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

}  // namespace

TEST_CASE("AuditFile: entries are numbered and read in pages, over restarts", "[store]") {
  Folder f;
  CHECK(f.Numbers().empty());
  f.Add(3);
  f.Reopen();
  f.Add(2);
  CHECK(f.Numbers() == Numbers{1, 2, 3, 4, 5});
  CHECK(f.Numbers(2, 2) == Numbers{3, 4});
  CHECK(f.log->Read(2, 2)->next == 4);
  CHECK_FALSE(f.log->Read(3, 2)->next);
  CHECK(f.Numbers(5).empty());
  CHECK(f.Problems().empty());
  struct stat status {};
  REQUIRE(::stat(f.directory.File("audit.jsonl").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("AuditFile: a file that is too large is renamed to its number, and the chain continues", "[store]") {
  Folder f(1500);
  f.Add(20);
  f.Reopen();
  f.Add(20);
  const auto entries = *f.disk.ListDirectory(f.directory.path());
  CHECK(entries.size() > 3);
  CHECK(f.Numbers().size() == 40);
  CHECK(f.Numbers(17, 5) == Numbers{18, 19, 20, 21, 22});
  CHECK(f.Problems().empty());
}

TEST_CASE("AuditFile: no line is missed when files are renamed to their numbers meanwhile", "[store]") {
  Folder f(1500);
  f.Add(10);
  REQUIRE_FALSE(f.Text("audit.1.jsonl").empty());
  EventfulDisk disk(f.disk);
  const AuditFile reader(f.directory.path(), f.keys, disk, {.max_bytes = f.size});
  const auto numbers = [&](std::uint64_t after, std::size_t limit) {
    Numbers read;
    const auto page = reader.Read(after, limit);
    REQUIRE(page);
    for (const std::string& line : page->lines) read.push_back(ParseJson(line)->at("seq"));
    if (page->next) CHECK(*page->next == read.back());
    return read;
  };
  disk.file = "audit.1.jsonl";
  disk.after = [&] { f.Add(20); };
  CHECK(numbers(0, 1000) == UpTo(30));
  CHECK_FALSE(disk.after);
  disk.after = [&] { f.Add(20); };
  CHECK(numbers(0, 35) == UpTo(35));
  // Between the rename and the creation of the new file.
  disk.file = "audit.jsonl";
  const std::uint64_t first = ParseJson(Lines(f.Text()).front())->at("seq");
  disk.before = [&] {
    std::filesystem::rename(f.directory.File("audit.jsonl"),
                            f.directory.File("audit." + std::to_string(first) + ".jsonl"));
  };
  CHECK(numbers(0, 1000) == UpTo(50));
  CHECK_FALSE(disk.before);
}

TEST_CASE("AuditFile: pages begin where they should, even among damaged or missing lines", "[store]") {
  Folder f(30 * 1024);
  f.Add(150);
  f.Reopen();
  const auto check = [&](const Numbers& all) {
    for (std::uint64_t after = 0; after <= 152; ++after) {
      Numbers expected;
      for (const std::uint64_t number : all) {
        if (number > after && expected.size() < 3) expected.push_back(number);
      }
      INFO(after);
      CHECK(f.Numbers(after, 3) == expected);
    }
  };
  check(UpTo(150));
  std::vector<std::string> lines = Lines(f.Text("audit.1.jsonl"));
  REQUIRE(lines.size() > 60);
  REQUIRE(lines.size() < 150);
  Numbers left = UpTo(150);
  lines[40] = "damaged\n";  // number 41
  left.erase(left.begin() + 40);
  f.Write(std::accumulate(lines.begin(), lines.end(), std::string()), "audit.1.jsonl");
  check(left);
  lines.erase(lines.begin() + 50);
  left.erase(left.begin() + 49);
  f.Write(std::accumulate(lines.begin(), lines.end(), std::string()), "audit.1.jsonl");
  check(left);
  lines[0] = "damaged\n";
  left.erase(left.begin());
  f.Write(std::accumulate(lines.begin(), lines.end(), std::string()), "audit.1.jsonl");
  check(left);
}

TEST_CASE("AuditFile: each changed, removed or moved line is found", "[store]") {
  Folder f;
  f.Add(5);
  const std::string text = f.Text();
  for (const bool stopped : {false, true}) {  // after a crash, or after a clean stop: then also in the last line
    if (stopped) f.Reopen();
    for (std::size_t at = 0; at < text.size(); ++at) {
      std::string changed = text;
      changed[at] = changed[at] == '7' ? '8' : '7';
      if (text[at] == '\n' && at + 1 == text.size() && !stopped) continue;  // the line is incomplete
      f.Write(changed);
      INFO(at);
      CHECK_FALSE(f.Problems().empty());
    }
  }
  const std::vector<std::string> lines = Lines(text);
  f.Write(lines[0] + lines[2] + lines[3] + lines[4]);
  REQUIRE(f.Problems().size() == 1);
  CHECK(f.Problems().front().kind == "missing");
  f.Write(lines[1] + lines[2]);
  CHECK(f.Problems().front().kind == "missing");
  f.Write(lines[0] + lines[2] + lines[1] + lines[3]);
  CHECK_FALSE(f.Problems().empty());
  f.Write(lines[0] + lines[0]);
  CHECK(f.Problems().front().kind == "auth");
}

TEST_CASE("AuditFile: an incomplete last line is left out", "[store]") {
  Folder f;
  f.Add(3);
  const std::string text = f.Text();
  const std::size_t last = text.rfind('\n', text.size() - 2) + 1;
  for (std::size_t end = last; end < text.size(); end += 20) {
    f.Crash();
    f.Write(text.substr(0, end));
    f.Add(1);
    CHECK(f.Numbers() == Numbers{1, 2, 3});
    CHECK(f.Problems().empty());
  }
  f.Crash();
  f.Write(text + std::string(100, '\0'));
  f.Add(1);
  CHECK(f.Numbers() == Numbers{1, 2, 3, 4});
  CHECK(f.Problems().empty());
}

TEST_CASE("AuditFile: text that does not look like a name is not readable", "[store]") {
  Folder f;
  REQUIRE(f.log->Append(Entry("the user's diary\n")));
  CHECK(f.Text().find("diary") == std::string::npos);
  CHECK(f.Text().find("\"tool_name\":\"sha256:") != std::string::npos);
}

TEST_CASE("AuditFile: an entry that cannot be written is an error, and the next one is tried", "[store]") {
  Folder f;
  std::filesystem::create_directory(f.directory.File("audit.jsonl"));
  const auto failed = f.log->Append(Entry());
  REQUIRE_FALSE(failed);
  CHECK(failed.error().message == "the audit log could not be written");
  std::filesystem::remove(f.directory.File("audit.jsonl"));
  CHECK(f.log->Append(Entry()));
}

TEST_CASE("AuditFile: if the disk is full in the middle of a line, no part of the line stays", "[store]") {
  Folder f;
  f.Add(2);
  const std::string text = f.Text();
  struct rlimit before {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  for (const std::size_t room : {0, 1, 50}) {
    const struct rlimit small { .rlim_cur = text.size() + room, .rlim_max = before.rlim_max };
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    const auto added = f.log->Append(Entry());
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK_FALSE(added);
    CHECK(f.Text() == text);
  }
  std::signal(SIGXFSZ, ignored);
  f.Add(1);
  CHECK(f.Numbers() == Numbers{1, 2, 3});
  CHECK(f.Problems().empty());
}

TEST_CASE("AuditFile: many threads write whole lines", "[store]") {
  Folder f(5000);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 50; ++k) static_cast<void>(f.log->Append(Entry()));
      });
    }
  }
  CHECK(f.Numbers().size() == 200);
  CHECK(f.Problems().empty());
}

TEST_CASE("AuditFile: after a clean stop a missing end is found, even if lines are added later", "[store]") {
  const bool sealed = GENERATE(true, false);
  Folder f(1024 * 1024, sealed ? NewKeys() : nullptr);
  f.Add(5);
  f.Reopen();
  CHECK(f.log->CheckEnd());
  CHECK(f.Problems().empty());
  const std::vector<std::string> lines = Lines(f.Text());
  const std::string cut = GENERATE_COPY(lines[0] + lines[1] + lines[2], std::string());
  f.Write(cut);
  const bool removed = cut.empty() && GENERATE(true, false);
  if (removed) std::filesystem::remove(f.directory.File("audit.jsonl"));
  REQUIRE(f.Problems().size() == 1);
  CHECK(f.Problems().front().kind == "missing");
  CHECK(f.Problems().front().file == "audit.jsonl");
  CHECK(f.log->CheckEnd().error().reason == "integrity_missing");
  f.Add(2);
  f.Reopen();
  f.Add(1);
  CHECK(f.Numbers().back() == 8);
  REQUIRE(f.Problems().size() == 1);
  CHECK(f.Problems().front().kind == "missing");
}

TEST_CASE("AuditFile: a changed last line is found after a clean stop, even without a key", "[store]") {
  Folder f(1024 * 1024, nullptr);
  f.Add(3);
  f.Reopen();
  std::string text = f.Text();
  text.replace(text.rfind("echo"), 4, "evil");
  f.Write(text);
  CHECK(f.Problems().front().kind == "auth");
  CHECK(f.log->CheckEnd().error().reason == "integrity_auth");
  f.Add(1);
  f.Reopen();
  CHECK(f.Problems().front().kind == "auth");
}

TEST_CASE("AuditFile: a log that was made again without the key is found", "[store]") {
  Folder f, other(1024 * 1024, nullptr);
  f.Add(3);
  other.Add(4);
  f.Write(other.Text());
  CHECK_FALSE(f.Problems().empty());
  f.Reopen();
  CHECK_FALSE(f.Problems().empty());
  // It is found with a forged head, too.
  f.Write(other.Text(".audit_head"), ".audit_head");
  CHECK(f.Problems().front().file == ".audit_head");
}

TEST_CASE("AuditFile: a missing or damaged head is named, even if entries were added since", "[store]") {
  Folder f;
  f.Add(3);
  f.Reopen();
  if (GENERATE(true, false)) {
    std::filesystem::remove(f.directory.File(".audit_head"));
    CHECK(f.Problems().front().kind == "missing");
  } else {
    f.Write("{", ".audit_head");
    CHECK(f.Problems().front().kind == "auth");
  }
  CHECK(f.Problems().front().file == ".audit_head");
  CHECK_FALSE(f.log->CheckEnd());
  f.Add(2);
  f.Reopen();
  CHECK(f.Numbers() == UpTo(5));
  REQUIRE(f.Problems().size() == 1);
  CHECK(f.Problems().front().kind == "missing");
}

TEST_CASE("AuditFile: lines of an earlier version are valid, and protected from now on", "[store]") {
  Folder f;
  {
    Folder before(1024 * 1024, nullptr);
    before.Add(4);
    f.Write(before.Text());
  }
  f.Reopen();
  CHECK(f.Problems().empty());
  CHECK(f.log->CheckEnd());
  f.Add(2);
  f.Reopen();
  CHECK(f.Numbers() == UpTo(6));
  CHECK(f.Problems().empty());
  const std::string text = f.Text();
  for (std::size_t at = text.find("echo"); at != std::string::npos; at = text.find("echo", at + 1)) {
    std::string changed = text;
    changed[at] = 'E';
    f.Write(changed);
    INFO(at);
    CHECK_FALSE(f.Problems().empty());
  }
}

TEST_CASE("AuditFile: lines stay valid when the files are wrapped with another key", "[store]") {
  Folder f;
  f.Add(3);
  f.log.reset();
  const KeySet both = f.keys->WithNewKey();
  REQUIRE(RewrapStore(f.directory.path(), both, f.disk)->left.empty());
  f.keys = std::make_shared<const KeySet>(both.WithoutOldKeys());
  CHECK(f.Problems().empty());
  f.Reopen();
  f.Add(2);
  f.Reopen();
  CHECK(f.Numbers() == UpTo(5));
  CHECK(f.Problems().empty());
}

TEST_CASE("AuditFile: a log that was copied elsewhere can be adopted there as it is", "[store]") {
  Folder f;
  f.Add(3);
  f.log.reset();
  for (const auto& keys : {std::shared_ptr<const KeySet>(), NewKeys()}) {
    Folder to(1024 * 1024, keys);
    to.Write(f.Text());
    REQUIRE(to.log->Adopt());
    to.Reopen();
    to.Add(2);
    to.Reopen();
    CHECK(to.Problems().empty());
    std::string changed = to.Text();
    changed[changed.find("echo")] = 'E';
    to.Write(changed);
    CHECK_FALSE(to.Problems().empty());
  }
}

TEST_CASE("AuditFile: while the log is in use, its head is written after a while", "[store]") {
  TempDirectory directory;
  PosixFileSystem disk;
  const auto keys = NewKeys();
  AuditFile log(directory.path(), keys, disk, {.seal_after = std::chrono::milliseconds(1)});
  REQUIRE(log.Append(Entry()));
  const std::string first = *disk.ReadFile(directory.File(".audit_head"), 100'000);
  const auto cut = [&] {
    VerifyReport report;
    std::filesystem::rename(directory.File("audit.jsonl"), directory.File("away"));
    VerifyAudit(directory.path(), keys.get(), disk, report);
    std::filesystem::rename(directory.File("away"), directory.File("audit.jsonl"));
    return !report.problems.empty();
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!cut() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  CHECK(cut());
}

}  // namespace reprise::audit_file_test
