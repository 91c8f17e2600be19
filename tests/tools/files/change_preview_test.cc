#include <sys/stat.h>

#include "support/test.h"
#include "tools/builtin_tools.h"
#include "tools/tool_fixture.h"

namespace reprise::change_preview_test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMebibyte = 1024 * 1024;

class PreviewFixture : public ToolFixture {
 public:
  Result<FileChange> Preview(const std::string& tool, const std::string& arguments) const {
    const Tool* found = registry->Find(tool);
    REQUIRE(found != nullptr);
    return found->PreviewChange(arguments);
  }
  // The words of the refusal; every refusal is of the same kind.
  static std::string RefusalOf(const Result<FileChange>& change) {
    REQUIRE_FALSE(change);
    CHECK(change.error().code == ErrorCode::kConflict);
    CHECK(change.error().reason == "no_change_to_show");
    CHECK(change.error().detail.empty());  // or it would be in the log
    return change.error().message;
  }
  std::string Refusal(const std::string& tool, const std::string& arguments) const {
    INFO(tool << " " << arguments);
    return RefusalOf(Preview(tool, arguments));
  }
  // Of each of the three.
  std::vector<std::string> Refusals(const std::string& path) const {
    return {Refusal("write_file", Args({{"path", path}, {"content", "x"}})),
            Refusal("edit_file", Args({{"path", path}, {"old_text", "e"}, {"new_text", "x"}})),
            Refusal("delete_file", Args({{"path", path}}))};
  }
};

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE_METHOD(PreviewFixture, "PreviewChange: shows what the call then does, and changes nothing", "[tools]") {
  Write("notes", "one\ntwo\n");
  const std::string write = R"({"path":"a/b/new","content":"text"})";
  const std::string replace = R"({"path":"./a/../notes","content":""})";
  const std::string edit = R"({"path":"notes","old_text":"two","new_text":"three"})";
  const std::string remove = Args({{"path", Inside("notes")}});

  const auto created = Preview("write_file", write);
  REQUIRE(created);
  CHECK(created->path == "a/b/new");
  CHECK(created->before == std::nullopt);
  CHECK(created->after == "text");
  CHECK_FALSE(fs::exists(Inside("a")));

  const auto replaced = Preview("write_file", replace);
  REQUIRE(replaced);
  CHECK(replaced->path == "notes");
  CHECK(replaced->before == "one\ntwo\n");
  CHECK(replaced->after == "");

  const auto edited = Preview("edit_file", edit);
  REQUIRE(edited);
  CHECK(edited->before == "one\ntwo\n");
  CHECK(edited->after == "one\nthree\n");

  const auto deleted = Preview("delete_file", remove);
  REQUIRE(deleted);
  CHECK(deleted->path == "notes");
  CHECK(deleted->before == "one\ntwo\n");
  CHECK(deleted->after == std::nullopt);
  CHECK(Read("notes") == "one\ntwo\n");

  CHECK_FALSE(Run("edit_file", edit).is_error);
  CHECK(Read("notes") == edited->after);
  CHECK(Preview("delete_file", remove)->before == edited->after);  // as it is now
}

TEST_CASE_METHOD(PreviewFixture, "PreviewChange: reports calls that would fail", "[tools]") {
  Write("f", "aXbXc");
  fs::create_directory(Inside("d"));
  CHECK(Has(Refusal("edit_file", R"({"path":"f","old_text":"Y","new_text":""})"), "old_text occurs 0 times"));
  CHECK(Has(Refusal("edit_file", R"({"path":"f","old_text":"X","new_text":""})"), "old_text occurs 2 times"));
  CHECK(Has(Refusal("edit_file", R"({"path":"none","old_text":"X","new_text":""})"), "there is no such file"));
  CHECK(Has(Refusal("delete_file", R"({"path":"d2/none"})"), "there is no such file"));
  for (const std::string& why : Refusals("d")) CHECK(Has(why, "directory"));
  for (const std::string& why : Refusals("f/x")) CHECK(Has(why, "not a directory"));
  ::mkfifo(Inside("pipe").c_str(), 0600);  // would block whoever opens it
  for (const std::string& why : Refusals("pipe")) CHECK(Has(why, "not a regular file"));
}

TEST_CASE_METHOD(PreviewFixture, "PreviewChange: never looks outside or behind a link", "[tools]") {
  fs::create_directory(Inside("sub"));
  Write("inside", "here\n");
  Link("../outside", "dirlink");
  Link(outside() + "/secret.txt", "filelink");
  Link("inside", "alias");
  Link("sub", "subalias");
  for (const std::string& path :
       {std::string("../outside/secret.txt"), std::string("sub/../../outside/secret.txt"), outside() + "/secret.txt",
        std::string("dirlink/secret.txt"), std::string("filelink"), std::string("alias"), std::string("subalias/x"),
        std::string("/etc/passwd"), std::string("/proc/self/environ")}) {
    for (const std::string& why : Refusals(path)) {
      INFO(path << ": " << why);
      CHECK((Has(why, "outside") || Has(why, "symbolic link")));
    }
  }
}

TEST_CASE_METHOD(PreviewFixture, "PreviewChange: a secret stays closed, and so do the server's own files", "[tools]") {
  fs::create_directory(Inside(".ssh"));
  fs::create_directory(Inside("chats"));
  Write(".ssh/id", "top secret\n");
  Write("chats/int_001.json", "sealed\n");
  Workspace workspace_with_secrets(workspace(), {Inside("chats")}, {Inside(".ssh"), Inside("later/keys")});
  std::vector<std::unique_ptr<BuiltinTool>> tools;
  tools.push_back(MakeWriteFileTool(workspace_with_secrets));
  tools.push_back(MakeEditFileTool(workspace_with_secrets, Quoting::kAllowed));
  tools.push_back(MakeDeleteFileTool(workspace_with_secrets));
  const auto each_refuses = [&](const std::string& path, std::string_view why) {
    const std::string arguments = Args({{"path", path}, {"content", "x"}, {"old_text", "e"}, {"new_text", "x"}});
    for (const auto& tool : tools) {
      INFO(path << " " << tool->spec().name);
      CHECK(Has(RefusalOf(tool->PreviewChange(arguments)), why));
    }
  };
  for (const char* path : {".ssh/id", ".ssh/new", ".SSH/id", "./x/../.ssh/id", "later/keys/id"}) {
    each_refuses(path, "where you keep secrets");
  }
  for (const char* path : {"chats/int_001.json", "chats/new"}) each_refuses(path, "out of reach");
}

TEST_CASE_METHOD(PreviewFixture, "PreviewChange: text of up to 1 MiB, before and after", "[tools]") {
  Write("fits", std::string(kMebibyte, 'a'));
  Write("large", std::string(kMebibyte + 1, 'a'));
  Write("nul", std::string("a\0e", 3));
  Write("latin1", "caf\xe9");
  CHECK(Preview("delete_file", R"({"path":"fits"})")->before->size() == kMebibyte);
  CHECK(Preview("write_file", Args({{"path", "new"}, {"content", std::string(kMebibyte, 'b')}})));
  for (const std::string& why : Refusals("large")) CHECK(Has(why, "larger than 1024 KiB"));
  CHECK(Has(Refusal("write_file", Args({{"path", "new"}, {"content", std::string(kMebibyte + 1, 'b')}})),
            "would be larger than 1024 KiB"));
  Write("fits", std::string(kMebibyte - 1, 'a') + "b");
  CHECK(Has(Refusal("edit_file", R"({"path":"fits","old_text":"b","new_text":"cc"})"), "would be larger"));
  for (const char* path : {"nul", "latin1"}) {
    for (const std::string& why : Refusals(path)) CHECK(Has(why, "not UTF-8 text"));
  }
}

TEST_CASE_METHOD(PreviewFixture, "PreviewChange: other tools have nothing to show", "[tools]") {
  Write("notes", "one\n");
  std::size_t asked = 0;
  for (const Tool* tool : registry->tools()) {
    const std::string& name = tool->traits().spec.name;
    if (name == "write_file" || name == "edit_file" || name == "delete_file") continue;
    Refusal(name, R"({"path":"notes","command":"true","content":"x"})");
    ++asked;
  }
  CHECK(asked > 5);
}

}  // namespace reprise::change_preview_test
