#include "domain/kept_output.h"

#include <map>
#include <string>

#include "support/test.h"

namespace reprise::kept_output_test {
namespace {

class Files final : public FilesOfChat {
 public:
  Result<FileListing> List() override {
    FileListing listing;
    for (const StoredFile& file : files) listing.files.push_back(file.info);
    return listing;
  }
  Result<StoredFile> Get(const FileId& id) override {
    for (const StoredFile& file : files) {
      if (file.info.id == id) return file;
    }
    return Fail(ErrorCode::kNotFound, "no such file");
  }
  Result<FileInfo> Add(std::string_view filename, std::string_view mime_type, std::string content) override {
    if (is_full) return Fail(Reason::kChatFilesFull, "full");
    files.push_back(MakeFile(filename, mime_type, std::move(content)).value());
    return files.back().info;
  }
  Result<void> Delete(const FileId& id) override {
    std::erase_if(files, [&](const StoredFile& file) { return file.info.id == id; });
    return {};
  }

  std::vector<StoredFile> files;
  bool is_full = false;
};

std::string Whole(Files& files, const FileId& id) {
  std::string whole;
  const auto read = ReadChatText(files, id, [&](std::string_view piece) {
    whole += piece;
    return true;
  });
  return read ? whole : read.error().message;
}

constexpr std::size_t kMegabyte = 1 << 20;

TEST_CASE("KeepOutput: a short output is not kept", "[domain]") {
  Files files;
  const auto keeper = KeepOutput(files, {}, {10, kMegabyte});
  keeper->Add("0123456789");
  CHECK(keeper->Finish().empty());
  CHECK(files.files.empty());
}

TEST_CASE("KeepOutput: a long output is kept in parts that are read as one", "[domain]") {
  Files files;
  const auto keeper = KeepOutput(files, {}, {10, 10 * kMegabyte});
  std::string all;
  for (int i = 0; i < 400'000; ++i) {
    const std::string line = std::to_string(i) + "\n";
    keeper->Add(line);
    all += line;
  }
  const std::string told = keeper->Finish();
  REQUIRE(files.files.size() == 3);
  CHECK(told.find(files.files.front().info.id.str()) != std::string::npos);
  CHECK(told.starts_with("(the whole output, "));
  CHECK(Whole(files, files.files.front().info.id) == all);
}

TEST_CASE("KeepOutput: the oldest outputs make room, and of too long a one both ends are kept", "[domain]") {
  Files files;
  for (const char c : {'a', 'b'}) {
    const auto keeper = KeepOutput(files, {}, {10, 2 * kMegabyte});
    keeper->Add(std::string(kMegabyte + kMegabyte / 2, c));
    keeper->Finish();
  }
  CHECK(Whole(files, files.files.front().info.id) == std::string(kMegabyte + kMegabyte / 2, 'b'));
  const auto keeper = KeepOutput(files, {}, {10, 2 * kMegabyte});
  for (int i = 0; i < 8; ++i) keeper->Add(std::string(kMegabyte, 'c'));
  keeper->Add("end");
  CHECK(keeper->Finish().find("from its beginning and its end") != std::string::npos);
  const std::string kept = Whole(files, files.files.front().info.id);
  CHECK(kept.size() == 2 * kMegabyte + (64 << 10));
  CHECK(kept.ends_with("cend"));
}

TEST_CASE("KeepOutput: secrets are removed, and the end that might begin one is kept", "[domain]") {
  Files files;
  const auto filter = [held = std::string()](std::string_view piece) mutable {
    std::string text = held.append(piece);
    held.clear();
    if (text.ends_with("se")) held = "se", text.resize(text.size() - 2);
    return text;
  };
  const auto keeper = KeepOutput(files, filter, {1, kMegabyte});
  keeper->Add("these");
  keeper->Finish();
  REQUIRE(files.files.size() == 1);
  CHECK(files.files.front().content == "these");
}

TEST_CASE("KeepOutput: a store without room is said", "[domain]") {
  Files files;
  files.is_full = true;
  const auto keeper = KeepOutput(files, {}, {1, kMegabyte});
  keeper->Add("abc");
  CHECK(keeper->Finish() == "(of the output, 3 bytes, no more is kept: full)");
}

}  // namespace
}  // namespace reprise::kept_output_test
