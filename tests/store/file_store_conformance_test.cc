// The facts that hold for every FileStore.
#include <thread>

#include "base/posix_file_system.h"
#include "store/file_interaction_store.h"
#include "store/object_store.h"
#include "store/sample.h"
#include "store/sealed_file_store.h"
#include "support/memory_file_system.h"
#include "support/memory_object_store.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::file_store_conformance_test {
namespace {

const FileLimits kSmall{.file_bytes = 100, .chat_bytes = 250, .files = 4};

ChatId Chat2() { return *ChatId::Parse("chat2"); }

class FilesUnderTest {
 public:
  virtual ~FilesUnderTest() = default;
  virtual FileStore& store() = 0;
  virtual void Reopen(FileLimits limits) = 0;
};

template <typename Disk>
class SealedFilesUnderTest final : public FilesUnderTest {
 public:
  SealedFilesUnderTest(std::shared_ptr<const KeySet> keys, FileLimits limits) : keys_(std::move(keys)) {
    auto chats = FileInteractionStore::Open({.root = Root(), .keys = keys_, .file_system = disk_, .lock = kReal});
    REQUIRE(chats);
    REQUIRE((*chats)->CreateChat(Chat1(), {.title = ""}));
    REQUIRE((*chats)->CreateChat(Chat2(), {.title = ""}));
    Reopen(limits);
  }
  FileStore& store() override { return *store_; }
  void Reopen(FileLimits limits) override {
    store_ = std::make_unique<SealedFileStore>(
        SealedFileStore::Options{.root = Root(), .keys = keys_, .file_system = disk_, .limits = limits});
  }

 private:
  static constexpr bool kReal = std::is_same_v<Disk, PosixFileSystem>;
  std::string Root() const { return kReal ? folder_.File("data") : "/data"; }

  const TempDirectory folder_;
  Disk disk_;
  const std::shared_ptr<const KeySet> keys_;
  std::unique_ptr<FileStore> store_;
};

// The same with a bucket.
class BucketFilesUnderTest final : public FilesUnderTest {
 public:
  explicit BucketFilesUnderTest(FileLimits limits) {
    auto chats = FileInteractionStore::Open({.root = "/data", .keys = keys_, .file_system = disk_, .lock = false});
    REQUIRE((*chats)->CreateChat(Chat1(), {.title = ""}));
    REQUIRE((*chats)->CreateChat(Chat2(), {.title = ""}));
    bucket_.prefix = ObjectPrefixOf("/data", disk_, /*make=*/true).value();
    Reopen(limits);
  }
  FileStore& store() override { return *store_; }
  void Reopen(FileLimits limits) override {
    store_ = std::make_unique<SealedFileStore>(SealedFileStore::Options{
        .root = "/data", .keys = keys_, .file_system = disk_, .limits = limits, .bucket = &bucket_});
  }

 private:
  MemoryFileSystem disk_;
  MemoryObjectStore objects_;
  FileBucket bucket_{.objects = objects_};
  const std::shared_ptr<const KeySet> keys_ = std::make_shared<const KeySet>(KeySet::Generate());
  std::unique_ptr<FileStore> store_;
};

// Runs the same facts on each kind of store.
template <typename Facts>
void OnEachStore(FileLimits limits, Facts facts) {
  const auto keys = [] { return std::make_shared<const KeySet>(KeySet::Generate()); };
  for (const std::string_view kind : {"sealed", "plain", "sealed in memory", "bucket"}) {
    CAPTURE(kind);
    std::unique_ptr<FilesUnderTest> files;
    if (kind == "sealed") files = std::make_unique<SealedFilesUnderTest<PosixFileSystem>>(keys(), limits);
    if (kind == "plain") files = std::make_unique<SealedFilesUnderTest<PosixFileSystem>>(nullptr, limits);
    if (kind == "sealed in memory") files = std::make_unique<SealedFilesUnderTest<MemoryFileSystem>>(keys(), limits);
    if (kind == "bucket") files = std::make_unique<BucketFilesUnderTest>(limits);
    facts(*files);
  }
}

StoredFile File(std::string content, std::string_view name = "notes.txt", std::string_view type = "text/plain") {
  return MakeFile(name, type, std::move(content)).value();
}

template <typename T>
std::string ReasonOf(const Result<T>& result) {
  REQUIRE_FALSE(result);
  return result.error().reason;
}

}  // namespace

TEST_CASE("FileStore: a stored file can be read, byte for byte, also after a restart", "[files]") {
  std::string all_bytes;
  for (int c = 0; c < 256; ++c) all_bytes += static_cast<char>(c);
  OnEachStore({}, [&](FilesUnderTest& files) {
    const StoredFile kept[] = {File("hello\n"),
                               File(""),
                               File(all_bytes, "b", "image/png"),
                               File("na\xc3\xafve \xe2\x80\xae \"quoted\"\\", "\xe2\x82\xac.md", "text/markdown"),
                               File("cut \xc3"),
                               File(std::string(3000, '\x01'))};
    for (const StoredFile& file : kept) REQUIRE(files.store().Put(Chat1(), file));
    files.Reopen({});
    for (const StoredFile& file : kept) CHECK(files.store().Get(Chat1(), file.info.id).value() == file);
    const auto listing = files.store().List(Chat1()).value();
    CHECK(listing.files.size() == std::size(kept));
    CHECK(listing.damaged.empty());
    for (const StoredFile& file : kept) {
      CHECK(std::count(listing.files.begin(), listing.files.end(), file.info) == 1);
    }
  });
}

TEST_CASE("FileStore: a chat has its own files", "[files]") {
  OnEachStore({}, [](FilesUnderTest& files) {
    const StoredFile file = File("mine");
    REQUIRE(files.store().Put(Chat1(), file));
    CHECK(files.store().List(Chat2()).value().files.empty());
    CHECK(ReasonOf(files.store().Get(Chat2(), file.info.id)) == "not_found");
    CHECK(ReasonOf(files.store().Delete(Chat2(), file.info.id)) == "not_found");
    // A copy in another chat is another file.
    REQUIRE(files.store().Put(Chat2(), file));
    REQUIRE(files.store().Delete(Chat1(), file.info.id));
    CHECK(files.store().Get(Chat2(), file.info.id).value() == file);
    CHECK(files.store().List(*ChatId::Parse("nobody")).value().files.empty());
  });
}

TEST_CASE("FileStore: a deleted file is gone, and a file can be put only once", "[files]") {
  OnEachStore({}, [](FilesUnderTest& files) {
    const StoredFile file = File("x"), other = File("y");
    REQUIRE(files.store().Put(Chat1(), file));
    REQUIRE(files.store().Put(Chat1(), other));
    CHECK(ReasonOf(files.store().Put(Chat1(), file)) == "file_exists");
    REQUIRE(files.store().Delete(Chat1(), file.info.id));
    CHECK(ReasonOf(files.store().Delete(Chat1(), file.info.id)) == "not_found");
    CHECK(ReasonOf(files.store().Get(Chat1(), file.info.id)) == "not_found");
    files.Reopen({});
    CHECK(files.store().List(Chat1()).value().files == std::vector<FileInfo>{other.info});
  });
}

TEST_CASE("FileStore: files have limits, one by one and together", "[files]") {
  OnEachStore(kSmall, [](FilesUnderTest& files) {
    FileStore& store = files.store();
    CHECK(ReasonOf(store.Put(Chat1(), File(std::string(101, 'x')))) == "file_too_large");
    const StoredFile first = File(std::string(100, 'x'));
    REQUIRE(store.Put(Chat1(), first));
    REQUIRE(store.Put(Chat1(), File(std::string(100, 'x'))));
    CHECK(ReasonOf(store.Put(Chat1(), File(std::string(51, 'x')))) == "chat_files_full");
    CHECK(store.Put(Chat1(), File(std::string(100, 'x'))).error().code == ErrorCode::kStorageFull);
    REQUIRE(store.Put(Chat2(), File(std::string(100, 'x'))));  // has its own room
    REQUIRE(store.Put(Chat1(), File(std::string(50, 'x'))));
    REQUIRE(store.Put(Chat1(), File("")));
    CHECK(ReasonOf(store.Put(Chat1(), File(""))) == "chat_files_full");  // too many
    files.Reopen(kSmall);
    CHECK(ReasonOf(files.store().Put(Chat1(), File(""))) == "chat_files_full");
    REQUIRE(files.store().Delete(Chat1(), first.info.id));
    CHECK(files.store().Put(Chat1(), File(std::string(100, 'y'))));
  });
}

TEST_CASE("FileStore: concurrent calls of Put do not exceed the limits together", "[files]") {
  OnEachStore(kSmall, [](FilesUnderTest& files) {
    std::atomic<int> stored = 0;
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&] {
          if (files.store().Put(Chat1(), File(std::string(60, 'x')))) ++stored;
        });
      }
    }
    CHECK(stored == 4);
    CHECK(files.store().List(Chat1()).value().files.size() == 4);
  });
}

}  // namespace reprise::file_store_conformance_test
