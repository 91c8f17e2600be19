#include "support/test.h"
#include "tools/tool_fixture.h"

namespace reprise::chat_file_tools_test {
namespace {

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Files without a store.
class FakeFiles final : public FilesOfChat {
 public:
  Result<FileListing> List() override {
    FileListing listing;
    for (const StoredFile& file : files) listing.files.push_back(file.info);
    if (damaged) listing.damaged.push_back({*damaged, MakeError(ErrorCode::kCorruption, "broken")});
    return listing;
  }
  Result<StoredFile> Get(const FileId& id) override {
    for (const StoredFile& file : files) {
      if (file.info.id == id) return file;
    }
    return Fail(ErrorCode::kNotFound, "no such file in this chat");
  }
  Result<FileInfo> Add(std::string_view filename, std::string_view mime_type, std::string content) override {
    if (content.size() > 10) return Fail(ErrorCode::kTooLarge, "too large");
    return files.emplace_back(File(std::string(filename), std::string(mime_type), std::move(content))).info;
  }
  Result<void> Delete(const FileId& id) override {
    if (std::erase_if(files, [&](const StoredFile& file) { return file.info.id == id; }) == 1) return {};
    return Fail(ErrorCode::kNotFound, "no such file in this chat");
  }
  static StoredFile File(std::string filename, std::string mime_type, std::string content) {
    return {.info = {.id = FileId::Random(),
                     .filename = std::move(filename),
                     .mime_type = std::move(mime_type),
                     .size_bytes = content.size()},
            .content = content};
  }

  std::vector<StoredFile> files;
  std::optional<FileId> damaged;
};

class ChatFileFixture : public ToolFixture {
 public:
  ChatFileFixture() { context.files = &files; }
  ToolOutcome Use(const std::string& tool, const std::string& arguments) { return Run(tool, arguments, context); }
  std::string Id(std::size_t index) const { return files.files.at(index).info.id.str(); }

  FakeFiles files;
  ToolContext context;
};

}  // namespace

TEST_CASE_METHOD(ChatFileFixture, "chat files: are listed, even damaged ones, with names that cannot mislead",
                 "[tools]") {
  CHECK(Use("list_chat_files", "{}").output == "(the chat has no files)");
  files.files = {FakeFiles::File("a.txt", "text/plain", "hello"), FakeFiles::File("b\nfile_0 fake", "image/png", "")};
  files.damaged = FileId::Random();
  CHECK(Use("list_chat_files", "").output == Id(0) + " \"a.txt\" text/plain 5 bytes\n" + Id(1) +
                                                 " \"b?file_0 fake\" image/png 0 bytes\n" + files.damaged->str() +
                                                 " (damaged, cannot be read)");
}

TEST_CASE_METHOD(ChatFileFixture, "chat files: are read by lines", "[tools]") {
  files.files = {FakeFiles::File("a.txt", "text/plain", "one\ntwo\nthree\n"),
                 FakeFiles::File("b", "application/x", std::string("\x89PNG\0", 5)),
                 FakeFiles::File("c", "text/plain", "")};
  CHECK(Use("read_chat_file", Args({{"file_id", Id(0)}})).output == "one\ntwo\nthree\n");
  const auto part = Use("read_chat_file", "{\"file_id\":\"" + Id(0) + "\",\"offset\":2,\"limit\":1}");
  CHECK(part.output == "two\n(cut: lines 2 to 2; go on with offset 3)");
  CHECK(Use("read_chat_file", "{\"file_id\":\"" + Id(0) + "\",\"offset\":9}").is_error);
  const auto binary = Use("read_chat_file", Args({{"file_id", Id(1)}}));
  CHECK(binary.is_error);
  CHECK(Has(binary.output, "binary"));
  CHECK(Use("read_chat_file", Args({{"file_id", Id(2)}})).output == "(the file is empty)");
}

TEST_CASE_METHOD(ChatFileFixture, "chat files: invalid ids are refused with a message", "[tools]") {
  for (const char* tool : {"read_chat_file", "delete_chat_file"}) {
    for (const std::string& id :
         {std::string(), std::string("../../x"), std::string("a.txt"), FileId::Random().str()}) {
      const auto outcome = Use(tool, Args({{"file_id", id}}));
      CHECK(outcome.is_error);
      CHECK(Has(outcome.output, "cannot"));
    }
    CHECK(Use(tool, "{}").is_error);
  }
}

TEST_CASE_METHOD(ChatFileFixture, "chat files: are saved and deleted, after a question", "[tools]") {
  const auto saved = Use("save_chat_file", Args({{"filename", "out.md"}, {"content", "# hi"}}));
  CHECK_FALSE(saved.is_error);
  REQUIRE(files.files.size() == 1);
  CHECK(Has(saved.output, Id(0)));
  CHECK(files.files[0].content == "# hi");
  CHECK(files.files[0].info.mime_type == "text/plain");
  CHECK(Use("save_chat_file", Args({{"filename", "out"}, {"content", "more than ten"}})).is_error);
  CHECK_FALSE(Use("delete_chat_file", Args({{"file_id", Id(0)}})).is_error);
  CHECK(files.files.empty());
  for (const char* tool : {"save_chat_file", "delete_chat_file"})
    CHECK(registry->RequiresApproval(*registry->Find(tool)));
  for (const char* tool : {"list_chat_files", "read_chat_file"}) {
    CHECK_FALSE(registry->RequiresApproval(*registry->Find(tool)));
    CHECK(registry->Find(tool)->traits().read_only);
  }
}

TEST_CASE_METHOD(ToolFixture, "chat files: without any, the tools say so", "[tools]") {
  CHECK(Run("list_chat_files", "{}").is_error);
  CHECK(Run("save_chat_file", Args({{"filename", "a"}, {"content", "b"}})).is_error);
}

}  // namespace reprise::chat_file_tools_test
