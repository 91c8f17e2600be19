#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>

#include "support/test.h"
#include "tools/builtin_tools.h"
#include "tools/files/patch.h"
#include "tools/tool_fixture.h"

namespace reprise::edit_tools_test {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

class EditFixture : public ToolFixture {
 public:
  ToolOutcome Patch(const std::string& patch) { return Run("apply_patch", Args({{"input", patch}})); }
  std::string Failure(const std::string& tool, const std::string& arguments) const {
    return registry->Find(tool)->FailureOf(arguments, {}).value_or("");
  }
};

std::string Envelope(const std::string& body) { return "*** Begin Patch\n" + body + "*** End Patch\n"; }

}  // namespace

TEST_CASE_METHOD(EditFixture, "edit_file: several edits, all or none, and what was taken differently", "[tools]") {
  Write("f", "one\ntwo\nthree\n");
  const auto edits = [](const std::string& list) { return R"({"path":"f","edits":)" + list + "}"; };
  CHECK(Has(Run("edit_file", edits(R"([{"old_text":"one","new_text":"1"},{"old_text":"four","new_text":"4"}])")).output,
            "edit 2 of 2"));
  CHECK(Read("f") == "one\ntwo\nthree\n");
  const std::string good = edits(R"([{"old_text":"one","new_text":"1"},{"old_text":"1\ntwo","new_text":"2"}])");
  CHECK(registry->Find("edit_file")->PreviewChange(good)->after == "2\nthree\n");
  CHECK(Run("edit_file", good).output == "edited \"f\"");
  CHECK(Read("f") == "2\nthree\n");
  CHECK_FALSE(Run("edit_file", R"({"path":"f","old_text":"e","new_text":"E","replace_all":true})").is_error);
  CHECK(Read("f") == "2\nthrEE\n");
  Write("crlf", "a\r\nb\r\n");
  const auto lenient = Run("edit_file", R"({"path":"crlf","old_text":"a\nb\n","new_text":"c\nd\n"})");
  CHECK(Has(lenient.output, "in spite of differences in line ends (CRLF)"));
  CHECK(Read("crlf") == "c\r\nd\r\n");
  CHECK(Run("edit_file", R"({"path":"f"})").is_error);
  CHECK(Run("edit_file", R"({"path":"f","old_text":"2","new_text":"3","edits":[{"old_text":"2","new_text":"3"}]})")
            .is_error);
}

TEST_CASE_METHOD(EditFixture, "Edits of a text that is not UTF-8 say why its lines cannot be named", "[tools]") {
  Write("latin", "caf\xe9\nx\n");
  const std::string shown = "caf\xef\xbf\xbd";
  const auto edited = Run("edit_file", Args({{"path", "latin"}, {"old_text", shown + "\nx"}, {"new_text", "y"}}));
  const auto patched = Patch(Envelope("*** Update File: latin\n@@\n " + shown + "\n-x\n+y\n"));
  for (const ToolOutcome& outcome : {edited, patched}) {
    CHECK(outcome.is_error);
    CHECK(Has(outcome.output, "The file is not UTF-8"));
  }
  CHECK_FALSE(Run("edit_file", R"({"path":"latin","old_text":"x","new_text":"y"})").is_error);
  CHECK(Read("latin") == "caf\xe9\ny\n");
}

TEST_CASE_METHOD(EditFixture, "apply_patch: keeps a byte order mark, which the patch need not have", "[tools]") {
  const std::string mark = "\xef\xbb\xbf";
  for (const std::string& written : {std::string(), mark}) {
    Write("f", mark + "a\nb\n");
    CHECK(Patch(Envelope("*** Update File: f\n@@\n-" + written + "a\n+" + written + "A\n b\n")).output ==
          "edited \"f\"");
    CHECK(Read("f") == mark + "A\nb\n");
  }
  Write("f", "the first line" + mark + "\nb\n");
  const std::string unseen = R"({"path":"f","old_text":"the first line\nc","new_text":""})";
  CHECK(Has(Failure("edit_file", unseen), "the first line<U+FEFF>"));
}

TEST_CASE_METHOD(EditFixture, "Edits of a file with other names say that those keep the old content", "[tools]") {
  for (const char* name : {"written", "edited", "patched"}) {
    Write(name, "a\n");
    fs::create_hard_link(Inside(name), Inside(std::string(name) + ".other"));
  }
  Write("single", "a\n");
  CHECK(Has(Run("write_file", R"({"path":"written","content":"b\n"})").output, "hard links"));
  CHECK(Has(Run("edit_file", R"({"path":"edited","old_text":"a","new_text":"b"})").output, "hard links"));
  CHECK(Has(Patch(Envelope("*** Update File: patched\n@@\n-a\n+b\n")).output, "hard links"));
  CHECK_FALSE(Has(Run("edit_file", R"({"path":"single","old_text":"a","new_text":"b"})").output, "hard links"));
  for (const char* name : {"written", "edited", "patched"}) {
    CHECK(Read(name) == "b\n");
    CHECK(Read(std::string(name) + ".other") == "a\n");
  }
}

TEST_CASE_METHOD(EditFixture, "edit_file: its failure quotes the file only if read_file asks nobody", "[tools]") {
  Write("f", "the magic word is xyzzy\n");
  const std::string call = R"({"path":"f","old_text":"the magic word is plugh","new_text":""})";
  CHECK(Has(Failure("edit_file", call), "xyzzy"));
  auto options = Options();
  options.require_approval = {"read_file"};
  Rebuild(std::move(options));
  CHECK(Has(Failure("edit_file", call), "The nearest place is line 1"));
  CHECK_FALSE(Has(Failure("edit_file", call), "xyzzy"));
  CHECK_FALSE(Has(Run("edit_file", call).output, "xyzzy"));
}

TEST_CASE_METHOD(EditFixture, "apply_patch: adds, updates, moves and deletes, all or nothing", "[tools]") {
  Write("a.txt", "one\ntwo\nthree\n");
  Write("old.txt", "bye\n");
  Write("move.txt", "x\ny\n");
  const std::string patch = Envelope(
      "*** Update File: a.txt\n@@\n one\n-two\n+2\n three\n*** Add File: new/b.txt\n+hello\n+\n+world\n"
      "*** Delete File: old.txt\n*** Update File: move.txt\n*** Move to: moved.txt\n@@\n x\n-y\n+z\n");
  const auto preview = registry->Find("apply_patch")->PreviewChange(Args({{"input", patch}}));
  REQUIRE(preview);
  CHECK(1 + preview->more.size() == 5);
  const auto done = Patch(patch);
  CHECK(done.output ==
        "edited \"a.txt\"\ncreated \"new/b.txt\"\ndeleted \"old.txt\"\nmoved \"move.txt\" to \"moved.txt\"");
  CHECK(Read("a.txt") == "one\n2\nthree\n");
  CHECK(Read("new/b.txt") == "hello\n\nworld\n");
  CHECK_FALSE(fs::exists(Inside("old.txt")));
  CHECK_FALSE(fs::exists(Inside("move.txt")));
  CHECK(Read("moved.txt") == "x\nz\n");
  // The second file does not fit, so the first stays.
  const auto failed =
      Patch(Envelope("*** Update File: a.txt\n@@\n-one\n+1\n*** Update File: moved.txt\n@@\n-none\n+1\n"));
  CHECK(failed.is_error);
  CHECK(Has(failed.output, "nothing was changed: \"moved.txt\": change 1 of 1 does not fit"));
  CHECK(Read("a.txt") == "one\n2\nthree\n");
  CHECK(Patch(Envelope("*** Add File: a.txt\n+x\n")).is_error);
  CHECK(Patch(Envelope("*** Delete File: none\n")).is_error);
  CHECK(Patch(Envelope("*** Update File: a.txt\n*** Move to: moved.txt\n")).is_error);
  CHECK(Patch(Envelope("*** Update File: ../outside\n@@\n-a\n+b\n")).is_error);
  CHECK(Patch(Envelope("*** Add File: /etc/x\n+b\n")).is_error);
}

TEST_CASE_METHOD(EditFixture, "edit_file, apply_patch: text in UTF-16 is not called binary", "[tools]") {
  const std::string words = "h\0e\0l\0l\0o\0\n\0"s;
  const std::string patch = "@@\n-hello\n+bye\n";
  for (const std::string& text : {"\xff\xfe" + words, words}) {
    Write("u16", text);
    CHECK(Has(Run("edit_file", R"({"path":"u16","old_text":"hello","new_text":"bye"})").output, "text in UTF-16"));
    CHECK(Has(Patch(Envelope("*** Update File: u16\n" + patch)).output, "text in UTF-16"));
    CHECK(Read("u16") == text);
  }
  Write("bin", "\1\0\2\0\3hello\n"s);
  CHECK(Has(Run("edit_file", R"({"path":"bin","old_text":"hello","new_text":"bye"})").output, "a binary file"));
  CHECK(Has(Patch(Envelope("*** Update File: bin\n" + patch)).output, "a binary file"));
}

TEST_CASE_METHOD(EditFixture, "apply_patch: a file that moves keeps its permissions", "[tools]") {
  const auto mode = [&](const std::string& name) { return fs::status(Inside(name)).permissions(); };
  for (const auto& [name, bits] :
       {std::pair{"run.sh", 0755}, {"open", 0666}, {"own", 0600}, {"a", 0700}, {"b", 0644}}) {
    Write(name, std::string(name) + "\n");
    fs::permissions(Inside(name), fs::perms(bits));
  }
  const auto done = Patch(
      Envelope("*** Update File: run.sh\n*** Move to: bin/run.sh\n@@\n-run.sh\n+moved\n"
               "*** Update File: open\n*** Move to: way\n@@\n-open\n+half\n"  // in two steps
               "*** Update File: way\n*** Move to: end\n@@\n-half\n+end\n"
               "*** Add File: way\n+new\n"
               "*** Delete File: own\n*** Update File: a\n*** Move to: own\n@@\n-a\n+A\n"  // onto a file of before
               "*** Update File: b\n*** Move to: a\n@@\n-b\n+B\n"));
  REQUIRE_FALSE(done.is_error);
  CHECK(Read("bin/run.sh") == "moved\n");
  CHECK(mode("bin/run.sh") == fs::perms(0755));
  CHECK(mode("end") == fs::perms(0666));
  CHECK(mode("own") == fs::perms(0700));
  CHECK(mode("a") == fs::perms(0644));
  Write("plain", "new\n");
  CHECK(mode("way") == mode("plain"));
  // Deleted and added again: the file stays, and so do its permissions.
  fs::permissions(Inside("plain"), fs::perms(0640));
  REQUIRE_FALSE(Patch(Envelope("*** Delete File: plain\n*** Add File: plain\n+other\n")).is_error);
  CHECK(mode("plain") == fs::perms(0640));
}

TEST_CASE_METHOD(EditFixture, "edited files keep their group", "[tools]") {
  if (::geteuid() != 0) return;  // others may not give a file any group
  Write("a", "one\n");
  const auto group = [&] {
    struct stat status {};
    REQUIRE(::stat(Inside("a").c_str(), &status) == 0);
    return status.st_gid;
  };
  REQUIRE(::chown(Inside("a").c_str(), static_cast<uid_t>(-1), 100) == 0);
  REQUIRE_FALSE(Run("edit_file", R"({"path":"a","old_text":"one","new_text":"two"})").is_error);
  CHECK(group() == 100);
  REQUIRE_FALSE(Run("write_file", R"({"path":"a","content":"three"})").is_error);
  CHECK(group() == 100);
}

TEST_CASE_METHOD(EditFixture, "edited files keep their attributes and get no access list of the folder", "[tools]") {
  Write("a", "one\n");
  if (::setxattr(Inside("a").c_str(), "user.note", "mine", 4, 0) != 0) return;  // not on this file system
  // user 12345 may do anything
  const std::string list{2, 0, 0,  0,  1,  0,  6,  0, -1, -1, -1, -1, 2,  0,  7,  0, 57, 48, 0,  0,  4,  0,
                         4, 0, -1, -1, -1, -1, 16, 0, 7,  0,  -1, -1, -1, -1, 32, 0, 0,  0,  -1, -1, -1, -1};
  REQUIRE(::setxattr(Inside(".").c_str(), "system.posix_acl_default", list.data(), list.size(), 0) == 0);
  const auto value = [&](const char* name) {
    std::array<char, 100> bytes{};
    const ssize_t size = ::getxattr(Inside("a").c_str(), name, bytes.data(), bytes.size());
    return std::string(bytes.data(), size < 0 ? 0 : static_cast<std::size_t>(size));
  };
  const auto edit = [&] {
    REQUIRE_FALSE(Run("edit_file", R"({"path":"a","old_text":"one","new_text":"two"})").is_error);
    CHECK(value("user.note") == "mine");
    REQUIRE_FALSE(Run("write_file", R"({"path":"a","content":"one"})").is_error);
    CHECK(value("user.note") == "mine");
  };
  edit();
  CHECK(value("system.posix_acl_access").empty());
  REQUIRE(::setxattr(Inside("a").c_str(), "system.posix_acl_access", list.data(), list.size(), 0) == 0);
  edit();
  CHECK(value("system.posix_acl_access") == list);
}

TEST_CASE_METHOD(EditFixture, "apply_patch: what is cut or not understood changes nothing", "[tools]") {
  Write("a.txt", "one\ntwo\n");
  for (const std::string bad :
       {"", "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n",
        "*** Update File: a.txt\n@@\n-one\n+1\n*** End Patch\n", "*** Begin Patch\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: a.txt\n@@\n?one\n*** End Patch\n",
        "*** Begin Patch\n*** Rename File: a.txt\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: a.txt\n*** End Patch\n",
        "*** Begin Patch\n*** Add File: b\nno plus\n*** End Patch\n"}) {
    INFO(bad);
    CHECK(Run("apply_patch", Args({{"input", bad}})).is_error);
    CHECK(PathsInPatch(Args({{"input", bad}})).empty());
  }
  CHECK(Read("a.txt") == "one\ntwo\n");
  // A fence or a here-document around it, and a header of a unified diff.
  CHECK_FALSE(
      Patch("```\napply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n"
            "*** End Patch\nEOF\n```")
          .is_error);
  CHECK(Read("a.txt") == "1\ntwo\n");
}

TEST_CASE_METHOD(EditFixture, "apply_patch: rules and patterns speak of every path", "[tools]") {
  const Tool* const tool = registry->Find("apply_patch");
  const std::string patch =
      Args({{"input", Envelope("*** Add File: src/a\n+x\n*** Update File: src/b\n*** Move to: doc/c\n")}});
  CHECK(PathsInPatch(patch) == std::vector<std::string>{"src/a", "src/b", "doc/c"});
  CHECK(tool->Touches("doc/c", patch) == Touch::kYes);
  CHECK(tool->Touches("src/**", patch) == Touch::kYes);
  CHECK(tool->Touches("etc/**", patch) == Touch::kNo);
  CHECK(tool->Touches("etc/**", Args({{"input", "nonsense"}})) == Touch::kMaybe);
  CHECK_FALSE(tool->CoveredBy({"src/**"}, patch));
  CHECK(tool->CoveredBy({"src/**", "doc/**"}, patch) == std::vector<std::size_t>{0, 1});
  CHECK(tool->traits().acts_as == std::vector<std::string>{"edit_file", "write_file", "delete_file"});
  CHECK(
      tool->ReasonToAsk(Args({{"input", Envelope("*** Add File: a\n+x\n*** Add File: .git/hooks/pre-commit\n+x\n")}})));
  auto options = Options();
  options.deny = {"delete_file"};
  Rebuild(std::move(options));
  CHECK(registry->Find("apply_patch") == nullptr);
}

TEST_CASE("ApplyHunks: places, anchors and the end of the file", "[tools]") {
  const auto apply = [](const std::string& text, const std::string& hunks) -> std::string {
    const auto files = ParsePatch("*** Begin Patch\n*** Update File: f\n" + hunks + "*** End Patch");
    REQUIRE(files);
    const auto edited = ApplyHunks(text, files->front().hunks, Quoting::kAllowed);
    return edited ? edited->text : "FAILED: " + edited.error().message;
  };
  const std::string twice = "def a():\n    x = 1\n    return x\n\ndef b():\n    x = 1\n    return x\n";
  CHECK(Has(apply(twice, "@@\n-    x = 1\n+    x = 2\n"),
            "its lines are there 2 times, in line 2 (below `def a():`) and 6"));
  CHECK(apply(twice, "@@ def b():\n-    x = 1\n+    x = 2\n") ==
        "def a():\n    x = 1\n    return x\n\ndef b():\n    x = 2\n    return x\n");
  CHECK(apply(twice, "@@\n def b():\n-    x = 1\n+    x = 2\n     return x\n*** End of File\n")
            .ends_with("x = 2\n    return x\n"));
  // One hunk after the other; the second is found below the first.
  CHECK(apply("a\nb\na\nc\n", "@@\n-a\n+A\n b\n@@\n-a\n+A\n") == "A\nb\nA\nc\n");
  // In another order, where that is clear.
  CHECK(apply("a\nb\nc\n", "@@\n-c\n+C\n@@\n-a\n+A\n") == "A\nb\nC\n");
  CHECK(apply("a\n", "@@ a\n+b\n") == "a\nb\n");
  CHECK(apply("a", "@@\n+b\n") == "a\nb\n");
  CHECK(apply("a\r\nb\r\n", "@@\n-a\n+x\n b\n") == "x\r\nb\r\n");
  CHECK(Has(apply("a\nb\n", "@@ nowhere\n-a\n+x\n"), "no line is \"nowhere\""));
  CHECK(Has(apply("alpha beta\n", "@@\n-alpha bet\n+x\n"), "The nearest place is line 1"));
}

TEST_CASE_METHOD(EditFixture, "find_files: globs, .gitignore, hidden names and their order", "[tools]") {
  for (const char* file :
       {"a.cc", "src/b.cc", "src/deep/c.h", "src/d.txt", "build/e.cc", ".hidden/f.cc", "src/.g.cc"}) {
    fs::create_directories(fs::path(Inside(file)).parent_path());
    Write(file, "x");
  }
  Write(".gitignore", "build/\n");
  const auto find = [&](const std::string& arguments) { return Run("find_files", arguments).output; };
  CHECK(find(R"({"pattern":"*.cc","sort":"name"})") == "a.cc\nsrc/b.cc");
  CHECK(find(R"({"pattern":"**/*.{cc,h}","sort":"name"})") == "a.cc\nsrc/b.cc\nsrc/deep/c.h");
  CHECK(find(R"({"pattern":"src/*","sort":"name"})") == "src/b.cc\nsrc/d.txt");
  CHECK(find(R"({"pattern":"*","path":"src","sort":"name"})") == "src/b.cc\nsrc/d.txt\nsrc/deep/c.h");
  CHECK(find(R"({"pattern":"deep/*","path":"src"})") == "src/deep/c.h");
  CHECK(find(R"({"pattern":"*.cc","hidden":true,"sort":"name"})") == ".hidden/f.cc\na.cc\nsrc/.g.cc\nsrc/b.cc");
  CHECK(find(R"({"pattern":".hidden/**"})") == ".hidden/f.cc");
  CHECK(find(R"({"pattern":"*.cc","ignored":true,"sort":"name"})") == "a.cc\nbuild/e.cc\nsrc/b.cc");
  CHECK(find(R"({"pattern":"*.py"})") == "(no file matches)");
  // The last modified first.
  const timespec times[2] = {{.tv_sec = 2'000'000'000, .tv_nsec = 0}, {.tv_sec = 2'000'000'000, .tv_nsec = 0}};
  REQUIRE(::utimensat(AT_FDCWD, Inside("src/d.txt").c_str(), times, 0) == 0);
  CHECK(find(R"({"pattern":"src/*"})").starts_with("src/d.txt\n"));
  CHECK(Run("find_files", R"({"pattern":"*","path":"../"})").is_error);
  CHECK(Run("find_files", R"({"pattern":"*","path":"none"})").is_error);
  CHECK(Run("find_files", R"({"pattern":"["})").is_error);
  fs::create_directory(Inside("many"));
  for (int i = 0; i < 250; ++i) Write("many/" + std::to_string(i), "");
  CHECK(Has(find(R"({"pattern":"many/*"})"), "(cut: the first 200 of 250 files"));
}

TEST_CASE_METHOD(EditFixture, "read_file: numbers lines on request", "[tools]") {
  Write("f", "a\nb\nc");
  CHECK(Run("read_file", R"({"path":"f","line_numbers":true})").output == "1\ta\n2\tb\n3\tc");
  CHECK(Run("read_file", R"({"path":"f","line_numbers":true,"offset":2,"limit":1})").output ==
        "2\tb\n(cut: lines 2 to 2; go on with offset 3)");
  CHECK(Run("read_file", R"({"path":"f"})").output == "a\nb\nc");
}

}  // namespace reprise::edit_tools_test
