#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "support/test.h"
#include "tools/files/workspace.h"
#include "tools/tool_fixture.h"

namespace reprise::file_tools_test {
namespace {

namespace fs = std::filesystem;

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE_METHOD(ToolFixture, "File tools: no path leads out of the workspace", "[tools]") {
  fs::create_directory(Inside("sub"));
  Link("../outside", "dirlink");
  Link(outside() + "/secret.txt", "filelink");
  Link("/proc/self/root", "rootlink");
  Link("nowhere/at/all", "dangling");
  const std::vector<std::string> paths = {"../outside/secret.txt",
                                          "sub/../../outside/secret.txt",
                                          outside() + "/secret.txt",
                                          "dirlink/secret.txt",
                                          "filelink",
                                          "/etc/passwd",
                                          "rootlink/etc/passwd",
                                          "/proc/self/root/etc/passwd",
                                          "/proc/self/environ",
                                          workspace() + "/../outside/secret.txt",
                                          "dangling",
                                          workspace() + "x/y"};
  for (const std::string& path : paths) {
    INFO(path);
    for (const char* tool : {"read_file", "delete_file"}) {
      if (std::string(tool) == "delete_file" && (path == "filelink" || path == "dangling"))
        continue;  // removes the link
      const auto outcome = Run(tool, Args({{"path", path}}));
      CHECK(outcome.is_error);
      CHECK_FALSE(Has(outcome.output, "top secret"));
    }
    CHECK(Run("write_file", Args({{"path", path}, {"content", "changed"}})).is_error);
    CHECK(Run("edit_file", Args({{"path", path}, {"old_text", "top"}, {"new_text", "changed"}})).is_error);
    CHECK(Run("list_files", Args({{"path", path}})).is_error);
    const auto found = Run("search_files", Args({{"pattern", "secret"}, {"path", path}}));
    CHECK(found.is_error);
    CHECK_FALSE(Has(found.output, "top secret"));
  }
  CHECK(ReadFrom(outside() + "/secret.txt") == "top secret\n");
  CHECK(std::distance(fs::directory_iterator(outside()), fs::directory_iterator()) == 1);
  CHECK_FALSE(fs::exists(workspace() + "x"));
}

TEST_CASE_METHOD(ToolFixture, "File tools: a directory behind a link that leads out cannot be listed or searched",
                 "[tools]") {
  Link("../outside", "dirlink");
  CHECK(Run("list_files", R"({"path":"dirlink"})").is_error);
  CHECK(Run("list_files", R"({"path":".."})").is_error);
  CHECK(Run("search_files", R"({"pattern":"secret","path":"dirlink"})").is_error);
  CHECK(Run("search_files", R"({"pattern":"secret"})").output == "(no line matches)");
}

TEST_CASE_METHOD(ToolFixture, "File tools: swapping a directory for a link never lets a call out", "[tools]") {
  fs::create_directory(Inside("real"));
  Write("real/secret.txt", "harmless\n");
  fs::create_directory_symlink(outside(), Inside("trap"));
  std::atomic<bool> done = false;
  // "victim" is now a directory, now a link that leads out.
  std::thread swapper([&] {
    while (!done) {
      ::rename(Inside("real").c_str(), Inside("victim").c_str());
      ::rename(Inside("victim").c_str(), Inside("real").c_str());
      ::rename(Inside("trap").c_str(), Inside("victim").c_str());
      ::rename(Inside("victim").c_str(), Inside("trap").c_str());
    }
  });
  int reads = 0;
  bool leaked = false;
  for (int i = 0; i < 3000; ++i) {
    const auto read = Run("read_file", R"({"path":"victim/secret.txt"})");
    if (!read.is_error) ++reads;
    leaked = leaked || Has(read.output, "top secret");
    Run("write_file", R"({"path":"victim/new.txt","content":"x"})");
    Run("delete_file", R"({"path":"victim/secret.txt.gone"})");
  }
  done = true;
  swapper.join();
  INFO("reads that met the directory: " << reads);
  CHECK_FALSE(leaked);
  CHECK(ReadFrom(outside() + "/secret.txt") == "top secret\n");
  CHECK_FALSE(fs::exists(outside() + "/new.txt"));
}

TEST_CASE_METHOD(ToolFixture, "OpenBeneathByWalk: refuses links, '..' and absolute paths, opens the rest", "[tools]") {
  fs::create_directories(Inside("a/b"));
  Write("a/b/file", "x");
  Link("../outside", "out");
  Link("a", "in");
  const UniqueFd root(::open(workspace().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  CHECK(OpenBeneathByWalk(root.get(), "a/b/file", O_RDONLY));
  CHECK(OpenBeneathByWalk(root.get(), "a//b/", O_RDONLY | O_DIRECTORY));
  CHECK(OpenBeneathByWalk(root.get(), ".", O_RDONLY | O_DIRECTORY));
  const auto refused = [&](const char* path, int expected) {
    const UniqueFd fd = OpenBeneathByWalk(root.get(), path, O_RDONLY);
    const int error = errno;
    INFO(path);
    CHECK_FALSE(fd);
    CHECK(error == expected);
  };
  refused("out/secret.txt", ELOOP);
  refused("in/b/file", ELOOP);
  refused("out", ELOOP);
  refused("..", EXDEV);
  refused("a/../a/b/file", EXDEV);
  refused("/etc/passwd", EXDEV);
  refused("a/none", ENOENT);
  refused("a/b/file/x", ENOTDIR);
  refused("", ENOENT);
}

TEST_CASE_METHOD(ToolFixture, "File tools: links and absolute paths inside the workspace can be read", "[tools]") {
  fs::create_directory(Inside("sub"));
  Write("sub/a.txt", "content");
  Link("sub/a.txt", "link");
  CHECK(Run("read_file", R"({"path":"link"})").output == "content");
  CHECK(Run("read_file", Args({{"path", Inside("sub/a.txt")}})).output == "content");
  CHECK(Run("list_files", Args({{"path", workspace()}})).output == "link\nsub/");
}

TEST_CASE_METHOD(ToolFixture, "File tools: nothing is written through a link, not even inside", "[tools]") {
  Write("target.txt", "before");
  fs::create_directory(Inside("sub"));
  Link("target.txt", "link");
  Link("sub", "sublink");
  CHECK(Has(Run("write_file", R"({"path":"link","content":"x"})").output, "symbolic link"));
  CHECK(Run("edit_file", R"({"path":"link","old_text":"before","new_text":"x"})").is_error);
  CHECK(Run("write_file", R"({"path":"sublink/new","content":"x"})").is_error);
  CHECK(Read("target.txt") == "before");
  CHECK_FALSE(Run("delete_file", R"({"path":"link"})").is_error);
  CHECK(Read("target.txt") == "before");
}

TEST_CASE_METHOD(ToolFixture, "File tools: impossible paths are clear errors", "[tools]") {
  CHECK(Has(Run("read_file", R"({"path":"a\u0000b"})").output, "NUL"));
  CHECK(Has(Run("read_file", Args({{"path", std::string(256, 'n')}})).output, "name in the path is too long"));
  std::string deep = "a";
  while (deep.size() < 4090) deep += "/a";
  CHECK(Has(Run("read_file", Args({{"path", deep + "/aaaaaaaaaaaa"}})).output, "4096"));
  CHECK(Has(Run("read_file", R"({"path":"none"})").output, "no such file"));
  CHECK(Has(Run("read_file", R"({"path":"."})").output, "it is a directory"));
  CHECK(Run("write_file", R"({"path":".","content":""})").is_error);
  CHECK(Run("write_file", R"({"path":"dir/","content":""})").is_error);
}

TEST_CASE_METHOD(ToolFixture, "File tools: a pipe is refused at once", "[tools]") {
  ::mkfifo(Inside("pipe").c_str(), 0600);
  CHECK(Has(Run("read_file", R"({"path":"pipe"})").output, "not a regular file"));
  CHECK(Run("write_file", R"({"path":"pipe","content":"x"})").is_error);
  CHECK(Run("delete_file", R"({"path":"pipe"})").is_error);
  CHECK(Run("search_files", R"({"pattern":"x"})").output == "(no line matches)");
}

TEST_CASE_METHOD(ToolFixture, "File tools: protected paths are out of reach, by any name", "[tools]") {
  fs::create_directory(Inside("chats"));
  Write("chats/int_001.json", "sealed secret");
  Write("keys.jwks", "key secret");
  Link("chats", "alias");
  auto options = Options();
  options.protected_paths = {Inside("chats"), Inside("keys.jwks"), Inside("reprise.json")};
  Rebuild(std::move(options));
  for (const char* path : {"chats/int_001.json", "alias/int_001.json", "keys.jwks", "./chats/../chats/int_001.json"}) {
    INFO(path);
    CHECK(Run("read_file", Args({{"path", path}})).is_error);
    CHECK(Run("write_file", Args({{"path", path}, {"content", "x"}})).is_error);
    CHECK(Run("delete_file", Args({{"path", path}})).is_error);
  }
  CHECK(Run("write_file", R"({"path":"reprise.json","content":"x"})").is_error);
  CHECK(Run("write_file", R"({"path":"chats/new/file","content":"x"})").is_error);
  CHECK(Run("list_files", R"({"path":"chats"})").is_error);
  CHECK(Run("list_files", "{}").output == "alias");
  CHECK(Run("search_files", R"({"pattern":"secret"})").output == "(no line matches)");
  CHECK_FALSE(fs::exists(Inside("reprise.json")));
  CHECK(Read("chats/int_001.json") == "sealed secret");
  CHECK_FALSE(Run("write_file", R"({"path":"chats2","content":"x"})").is_error);
}

TEST_CASE_METHOD(ToolFixture, "search_files: says what it has not searched", "[tools]") {
  const auto search = [&](const std::string& path) {
    return Run("search_files", Args({{"pattern", "needle"}, {"path", path}}));
  };
  Write("utf16", std::string("\xff\xfe"
                             "n\0e\0e\0d\0l\0e\0\n\0",
                             16));
  Write("binary", std::string("needle\0", 7));
  CHECK(search(".").output ==
        "(no line matches)\n(not searched, because they are not UTF-8: \"utf16\"; give a file as path to search it)");
  CHECK(search("binary").output == "cannot search \"binary\": it is a binary file, not text");
  fs::create_directory(Inside("many"));
  for (int i = 0; i <= 100'000; ++i) {
    const int fd = ::open(Inside("many/" + std::to_string(i)).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0);
    ::close(fd);
  }
  const std::string told = "(no line matches)\n(only the first 100000 entries were searched in \"many\")";
  CHECK(search("many").output == told);
}

TEST_CASE_METHOD(ToolFixture, "read_file: says that bytes which are not UTF-8 are shown as U+FFFD", "[tools]") {
  Write("latin", "caf\xe9\nx\n");
  CHECK(Run("read_file", R"({"path":"latin"})").output ==
        "caf\xef\xbf\xbd\nx\n(not UTF-8: other bytes are shown as U+FFFD in 1 place)");
  CHECK(Run("read_file", R"({"path":"latin","offset":2})").output == "x\n");
  Write("own", "a \xef\xbf\xbd of its own\n");
  CHECK(Run("read_file", R"({"path":"own"})").output == "a \xef\xbf\xbd of its own\n");
}

TEST_CASE_METHOD(ToolFixture, "write_file: creates directories, replaces content, keeps the mode", "[tools]") {
  CHECK(Run("write_file", R"({"path":"a/b/c.txt","content":"one"})").output == "created \"a/b/c.txt\" (3 bytes)");
  CHECK(Read("a/b/c.txt") == "one");
  fs::permissions(Inside("a/b/c.txt"), fs::perms(0751));
  CHECK(Run("write_file", R"({"path":"a/b/c.txt","content":""})").output == "replaced \"a/b/c.txt\" (0 bytes)");
  CHECK(Read("a/b/c.txt").empty());
  CHECK(fs::status(Inside("a/b/c.txt")).permissions() == fs::perms(0751));
  CHECK(std::distance(fs::directory_iterator(Inside("a/b")), fs::directory_iterator()) == 1);  // no litter
}

TEST_CASE_METHOD(ToolFixture, "edit_file: replaces exactly one occurrence", "[tools]") {
  Write("f", "one two two aaa");
  CHECK_FALSE(Run("edit_file", R"({"path":"f","old_text":"one","new_text":"1"})").is_error);
  CHECK(Read("f") == "1 two two aaa");
  CHECK(Has(Run("edit_file", R"({"path":"f","old_text":"two","new_text":"2"})").output, "occurs 2 times"));
  CHECK(Has(Run("edit_file", R"({"path":"f","old_text":"aa","new_text":"2"})").output, "occurs 2 times"));
  CHECK(Has(Run("edit_file", R"({"path":"f","old_text":"three","new_text":"2"})").output, "occurs 0 times"));
  CHECK(Run("edit_file", R"({"path":"f","old_text":"","new_text":"2"})").is_error);
  CHECK(Run("edit_file", R"({"path":"none","old_text":"a","new_text":"2"})").is_error);
  CHECK(Read("f") == "1 two two aaa");
}

TEST_CASE_METHOD(ToolFixture, "edit_file: concurrent edits all count", "[tools]") {
  Write("f", "<0><1><2><3><4><5><6><7>");
  std::vector<std::thread> editors;
  for (int i = 0; i < 8; ++i) {
    editors.emplace_back([this, i] {
      Run("edit_file", Args({{"path", "f"}, {"old_text", "<" + std::to_string(i) + ">"}, {"new_text", "."}}));
    });
  }
  for (std::thread& editor : editors) editor.join();
  CHECK(Read("f") == "........");
}

TEST_CASE_METHOD(ToolFixture, "delete_file: deletes files, not directories", "[tools]") {
  Write("f", "x");
  fs::create_directory(Inside("d"));
  CHECK(Run("delete_file", R"({"path":"f"})").output == "deleted \"f\"");
  CHECK_FALSE(fs::exists(Inside("f")));
  CHECK(Has(Run("delete_file", R"({"path":"d"})").output, "directory"));
  CHECK(fs::exists(Inside("d")));
  CHECK(Run("delete_file", R"({"path":"f"})").is_error);
}

TEST_CASE_METHOD(ToolFixture, "read_file: offset and limit count lines from 1", "[tools]") {
  Write("f", "1\n2\n3\n4");
  CHECK(Run("read_file", R"({"path":"f"})").output == "1\n2\n3\n4");
  CHECK(Run("read_file", R"({"path":"f","offset":3})").output == "3\n4");
  CHECK(Run("read_file", R"({"path":"f","offset":2,"limit":2})").output ==
        "2\n3\n(cut: lines 2 to 3; go on with offset 4)");
  CHECK(Run("read_file", R"({"path":"f","limit":4})").output == "1\n2\n3\n4");
  CHECK(Has(Run("read_file", R"({"path":"f","offset":5})").output, "only 4 lines"));
  Write("empty", "");
  CHECK(Run("read_file", R"({"path":"empty"})").output == "(the file is empty)");
}

TEST_CASE_METHOD(ToolFixture, "read_file: following the offsets it gives shows the whole file", "[tools]") {
  std::string content;
  for (int i = 0; content.size() < 600'000; ++i) content += "line " + std::to_string(i) + "\n";
  Write("big", content);
  std::string seen;
  std::string offset = "1";
  for (int calls = 0; calls < 10 && !offset.empty(); ++calls) {
    const auto outcome = Run("read_file", R"({"path":"big","offset":)" + offset + "}");
    CHECK(outcome.output.size() <= 256 * 1024 + 100);
    const std::size_t note = outcome.output.find("(cut: ");
    seen += outcome.output.substr(0, note);
    const std::size_t next = outcome.output.find("offset ");
    offset = next == std::string::npos ? "" : outcome.output.substr(next + 7);
    if (!offset.empty()) offset.pop_back();
  }
  CHECK(seen == content);
}

TEST_CASE_METHOD(ToolFixture, "read_file: long lines are cut, binary files refused, bad UTF-8 replaced", "[tools]") {
  Write("long", std::string(300'000, 'x'));
  const auto cut = Run("read_file", R"({"path":"long"})");
  CHECK(cut.output.size() < 263'000);
  CHECK(Has(cut.output, "(cut: line 1 is longer than can be shown)"));
  Write("binary", std::string("a\0b", 3));
  CHECK(Has(Run("read_file", R"({"path":"binary"})").output, "binary file"));
  Write("latin", "caf\xe9\n");
  CHECK(Run("read_file", R"({"path":"latin"})").output ==
        "caf\xef\xbf\xbd\n(not UTF-8: other bytes are shown as U+FFFD in 1 place)");
}

TEST_CASE_METHOD(ToolFixture, "list_files: sorted, directories with a slash, capped", "[tools]") {
  CHECK(Run("list_files", "").output == "(the directory is empty)");
  fs::create_directory(Inside("b"));
  Write("c\nd", "");
  Write("a", "");
  CHECK(Run("list_files", "{}").output == "a\nb/\nc?d");
  for (int i = 0; i < 1001; ++i) Write("b/" + std::to_string(i), "");
  CHECK(Has(Run("list_files", R"({"path":"b"})").output, "(cut: the first 1000 of 1001 entries)"));
}

TEST_CASE_METHOD(ToolFixture, "search_files: finds lines in files below a path", "[tools]") {
  fs::create_directories(Inside("src/.git"));
  Write("src/a.txt", "nothing\nneedle 1\r\n");
  Write("src/.git/a", "needle in git\n");
  Write("b.txt", "Needle 2\n");
  Write("binary", std::string("needle\0", 7));
  CHECK(Run("search_files", R"({"pattern":"needle"})").output == "src/a.txt:2: needle 1");
  CHECK(Run("search_files", R"({"pattern":"(?i)needle \\d$"})").output == "b.txt:1: Needle 2\nsrc/a.txt:2: needle 1");
  CHECK(Run("search_files", R"({"pattern":"needle","path":"src/"})").output == "src/a.txt:2: needle 1");
  CHECK(Run("search_files", R"({"pattern":"Needle","path":"b.txt"})").output == "b.txt:1: Needle 2");
  CHECK(Has(Run("search_files", R"({"pattern":"("})").output, "not a regular expression"));
}

TEST_CASE_METHOD(ToolFixture, "search_files: patterns that ruin other engines take linear time", "[tools]") {
  Write("f", std::string(1'000'000, 'a') + "!\n");
  CHECK(Run("search_files", R"({"pattern":"(a|a)*(a+)+$"})").output == "(no line matches)");
}

TEST_CASE_METHOD(ToolFixture, "search_files: capped, cancellable, bounded in time", "[tools]") {
  std::string content;
  for (int i = 0; i < 300; ++i) content += "hit\n";
  Write("f", content + std::string(1000, 'x') + "\n");
  CHECK(Has(Run("search_files", R"({"pattern":"hit"})").output, "(cut: the first 200 matching lines)"));
  CHECK(Run("search_files", R"({"pattern":"xx"})").output == "f:301: " + std::string(400, 'x') + "...");
  std::stop_source stopped;
  stopped.request_stop();
  const auto cancelled = Run("search_files", R"({"pattern":"hit"})", StoppedBy(stopped));
  CHECK(cancelled.is_error);
  CHECK(Has(cancelled.output, "cancelled"));
  CHECK(Has(Run("search_files", R"({"pattern":"hit"})", Within(std::chrono::milliseconds(-1))).output,
            "longer than allowed"));
}

TEST_CASE_METHOD(ToolFixture, "File tools: a missing workspace is a clear error", "[tools]") {
  fs::remove_all(workspace());
  CHECK(Has(Run("list_files", "{}").output, "cannot be reached any more"));
  CHECK(Has(Run("run_shell", R"({"command":"true"})").output, "cannot be reached any more"));
}

}  // namespace reprise::file_tools_test
