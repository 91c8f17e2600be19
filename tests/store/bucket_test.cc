// Files of chats whose objects are in a bucket: their places, the order of writes, and sweeps.
#include <set>

#include "base/atomic_write.h"
#include "base/posix_file_system.h"
#include "crypto/jwe.h"
#include "store/file_interaction_store.h"
#include "store/file_names.h"
#include "store/object_store.h"
#include "store/sample.h"
#include "store/sealed_file_store.h"
#include "store/upkeep.h"
#include "store/verify.h"
#include "support/faulty_file_system.h"
#include "support/memory_file_system.h"
#include "support/memory_object_store.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::bucket_test {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

StoredFile File(std::string content) { return MakeFile("notes.txt", "text/plain", std::move(content)).value(); }

// A bucket and a data folder on the real disk, because added chats are assembled there.
struct World {
  TempDirectory folder;
  PosixFileSystem disk;
  MemoryObjectStore objects;
  FileBucket bucket{.objects = objects};
  std::shared_ptr<const KeySet> keys = std::make_shared<const KeySet>(KeySet::Generate());
  std::string root = folder.File("data");
  std::unique_ptr<FileInteractionStore> chats;
  std::unique_ptr<SealedFileStore> store;

  World() {
    chats = FileInteractionStore::Open(
                {.root = root, .keys = keys, .file_system = disk, .index_delay = hours(1), .bucket = &bucket})
                .value();
    REQUIRE(chats->SaveInteraction(Sample(1, {}, "one")));
    bucket.prefix = ObjectPrefixOf(root, disk, /*make=*/true).value();
    Reopen();
  }
  void Reopen() {
    store = std::make_unique<SealedFileStore>(
        SealedFileStore::Options{.root = root, .keys = keys, .file_system = disk, .bucket = &bucket});
  }
  StoredFile Put(std::string content, const ChatId& chat = Chat1()) {
    StoredFile file = File(std::move(content));
    REQUIRE(store->Put(chat, file));
    return file;
  }
  BucketUpkeep Upkeep() { return {.root = root, .keys = keys, .file_system = disk, .bucket = bucket}; }
  Swept Sweep(bool dry_run = false) { return SweepBucket(Upkeep(), Now(), dry_run).value(); }
  void Age(minutes by) {
    for (auto& [key, object] : objects.objects()) object.changed_at -= by;
  }
  // The key of a file's only object.
  std::string KeyOf(const StoredFile& file, const ChatId& chat = Chat1()) {
    for (const auto& [key, object] : objects.objects()) {
      const auto name = ParseObjectKey(bucket.prefix, key);
      if (name && name->file == file.info.id && name->chat == chat) return key;
    }
    return {};
  }
  std::string OnDisk(const StoredFile& file, const ChatId& chat = Chat1()) {
    return disk.ReadFile(FilePath(root, chat, file.info.id), kMaxRecordBytes).value();
  }
  std::vector<Problem> Problems() { return VerifyStore(root, keys, disk, nullptr, &bucket).value().problems; }
};

template <typename T>
std::string ReasonOf(const Result<T>& result) {
  REQUIRE_FALSE(result);
  return result.error().reason;
}

}  // namespace

TEST_CASE("Bucket: the object is the file's record, and a small record in the folder refers to it", "[bucket]") {
  World world;
  const std::string text(100'000, 'n');
  const StoredFile file = world.Put(text);
  const std::string key = world.KeyOf(file);
  const std::string object = world.objects.objects().at(key).content;
  const RecordPlace place{.chat = Chat1(), .file = file.info.id};
  const auto format = MakeRecordFormat(world.keys);
  CHECK(FileFromJson(place, format->Open(place, object)->plaintext).value() == file);
  const std::string small = world.OnDisk(file);
  CHECK(small.size() < 3000);
  const auto reference = std::get<FileReference>(OpenFileEntry(*format, place, small).value());
  CHECK(reference == FileReference{file.info, key, RecordDigest(object).value()});
  for (const char* spoken : {"notes.txt", "nnnnnn", "text/plain"}) {
    CHECK(object.find(spoken) == std::string::npos);
    CHECK(small.find(spoken) == std::string::npos);
  }
  // The same bytes, put into the folder, are the file there.
  REQUIRE(ReplaceFile(world.disk, FilePath(world.root, Chat1(), file.info.id), object));
  CHECK(SealedFileStore({.root = world.root, .keys = world.keys, .file_system = world.disk})
            .Get(Chat1(), file.info.id)
            .value() == file);
}

TEST_CASE("Bucket: names of objects", "[bucket]") {
  World world;
  const FileId file = FileId::Random();
  const std::string key = NewObjectKey(world.bucket.prefix, Chat1(), file);
  CHECK(key.starts_with("org/-/user/"));
  CHECK(key.find("/thread/" + Chat1().str() + "/" + file.str() + ".") != std::string::npos);
  CHECK(key.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_.-") ==
        std::string::npos);
  CHECK(ParseObjectKey(world.bucket.prefix, key) == ObjectName{Chat1(), file});
  CHECK(NewObjectKey(world.bucket.prefix, Chat1(), file) != key);
  CHECK(ObjectPrefixOf(world.root, world.disk, true).value() == world.bucket.prefix);
  for (const std::string& other : {key + "0", key.substr(0, key.size() - 1), world.bucket.prefix, std::string("x"),
                                   "x" + key, world.bucket.prefix + "a/b/c", world.bucket.prefix + file.str()}) {
    CHECK_FALSE(ParseObjectKey(world.bucket.prefix, other));
  }
  CHECK_FALSE(ParseObjectKey("org/-/user/0123456789abcdef/thread/", key));
  REQUIRE(ReplaceFile(world.disk, BucketFile(world.root), "nonsense"));
  CHECK_FALSE(ObjectPrefixOf(world.root, world.disk, true));
}

TEST_CASE("Bucket: a missing, swapped or older object is noticed, by the file's name", "[bucket]") {
  World world;
  const StoredFile file = world.Put("one"), other = world.Put("two");
  auto& objects = world.objects.objects();
  const std::string key = world.KeyOf(file), whole = objects[key].content;
  const std::string name = FileRecordName(Chat1(), file.info.id);
  const auto kind = [&] {
    const auto got = world.store->Get(Chat1(), file.info.id);
    REQUIRE_FALSE(got);
    CHECK(got.error().code == ErrorCode::kCorruption);
    CHECK(got.error().message.starts_with(name));
    const auto problems = world.Problems();
    REQUIRE(problems.size() == 1);
    CHECK(problems[0].file == name);
    CHECK("integrity_" + problems[0].kind == got.error().reason);
    return problems[0].kind;
  };
  objects[key].content[whole.size() / 2] ^= 1;
  CHECK(kind() == "auth");
  objects[key].content = objects[world.KeyOf(other)].content;
  CHECK(kind() == "swap");
  objects[key].content = world.OnDisk(file);
  CHECK(kind() == "rollback");
  objects[key].content =
      MakeRecordFormat(world.keys)->Seal({.chat = Chat1(), .file = file.info.id}, {}, FileToJson(Chat1(), file))->text;
  CHECK(kind() == "rollback");
  objects.erase(key);
  CHECK(kind() == "missing");
  CHECK(world.store->List(Chat1()).value().files.size() == 2);
  CHECK(world.store->Get(Chat1(), other.info.id).value() == other);
  CHECK(world.store->Delete(Chat1(), file.info.id));
  CHECK(world.Problems().empty());
}

TEST_CASE("Bucket: the object is stored first and deleted last", "[bucket]") {
  World world;
  const auto unreachable = [](std::string_view, const std::string&) { return true; };
  world.objects.FailIf(unreachable);
  const StoredFile file = File("x");
  const auto put = world.store->Put(Chat1(), file);
  CHECK(ReasonOf(put) == "bucket_unreachable");
  CHECK(put.error().retryable);
  CHECK(world.store->List(Chat1()).value().files.empty());
  CHECK(ReasonOf(world.store->Put(*ChatId::Parse("nobody"), file)) == "not_found");  // without asking the bucket

  world.objects.FailIf(nullptr);
  REQUIRE(world.store->Put(Chat1(), file));
  world.objects.FailIf(unreachable);
  CHECK(ReasonOf(world.store->Get(Chat1(), file.info.id)) == "bucket_unreachable");
  CHECK(world.store->List(Chat1()).value().files == std::vector{file.info});
  CHECK(ReasonOf(VerifyStore(world.root, world.keys, world.disk, nullptr, &world.bucket)) == "bucket_unreachable");
  CHECK(ReasonOf(VerifyStore(world.root, world.keys, world.disk)) == "no_bucket");
  REQUIRE(world.store->Delete(Chat1(), file.info.id));
  world.objects.FailIf(nullptr);
  CHECK(world.objects.objects().size() == 1);  // for the sweep
  CHECK(world.store->List(Chat1()).value().files.empty());

  // A lost reply: the file is not reported as stored, and is not there.
  world.objects.LoseReplyIf([](const std::string&) { return true; });
  CHECK_FALSE(world.store->Put(Chat1(), File("y")));
  world.objects.LoseReplyIf(nullptr);
  CHECK(world.store->List(Chat1()).value().files.empty());
  CHECK(world.objects.objects().size() == 2);
  world.Age(minutes(61));
  CHECK(world.Sweep().taken.size() == 2);
  CHECK(world.objects.objects().empty());
}

TEST_CASE("Bucket: whichever call of the disk fails, each listed file has its object", "[bucket]") {
  for (std::size_t at = 1;; ++at) {
    CAPTURE(at);
    World world;
    FaultyFileSystem faulty(world.disk, {.at = at, .code = ErrorCode::kStorageFull, .short_write = true});
    SealedFileStore store({.root = world.root, .keys = world.keys, .file_system = faulty, .bucket = &world.bucket});
    const StoredFile file = File("new");
    const auto put = store.Put(Chat1(), file);
    world.Reopen();
    const auto listing = world.store->List(Chat1()).value();
    CHECK(listing.damaged.empty());
    CHECK(listing.files.size() == (put ? 1 : 0));
    if (put) CHECK(world.store->Get(Chat1(), file.info.id).value() == file);
    if (!faulty.fired()) break;
  }
}

TEST_CASE("Bucket: a sweep deletes objects that no record names when they are an hour old", "[bucket]") {
  World world;
  const StoredFile kept = world.Put("kept"), damaged = world.Put("damaged"), gone = world.Put("gone"),
                   five = world.Put("5");
  auto& objects = world.objects.objects();
  const std::string orphan = NewObjectKey(world.bucket.prefix, Chat1(), FileId::Random());
  const std::string second =
      NewObjectKey(world.bucket.prefix, Chat1(), kept.info.id);  // of a file that has another object
  const std::string foreign = NewObjectKey("org/-/user/0123456789abcdef/thread/", Chat1(), FileId::Random());
  for (const std::string& key : {orphan, second, foreign, world.bucket.prefix + "notes/by-hand.txt"})
    objects[key] = {"x", Now()};
  const std::string was = world.KeyOf(gone);
  REQUIRE(world.disk.RemoveFile(FilePath(world.root, Chat1(), gone.info.id)));
  REQUIRE(ReplaceFile(world.disk, FilePath(world.root, Chat1(), damaged.info.id), "{}"));
  const auto keys_of = [](const Swept& swept) {
    std::set<std::string> keys;
    for (const StoredObject& object : swept.taken) keys.insert(object.key);
    return keys;
  };

  world.Age(minutes(59));
  const auto early = world.Sweep();
  CHECK(early.taken.empty());
  CHECK(early.young == 3);
  world.Age(minutes(2));
  const std::size_t before = objects.size();
  CHECK(keys_of(world.Sweep(/*dry_run=*/true)) == std::set{orphan, second, was});
  CHECK(objects.size() == before);
  CHECK(keys_of(world.Sweep()) == std::set{orphan, second, was});
  CHECK(objects.size() == before - 3);
  CHECK(world.Sweep().taken.empty());
  CHECK(world.store->Get(Chat1(), kept.info.id).value() == kept);
  CHECK(world.store->Get(Chat1(), five.info.id).value() == five);
  CHECK_FALSE(world.KeyOf(damaged).empty());  // perhaps it is needed
  CHECK(objects.contains(foreign));
}

TEST_CASE("Bucket: a sweep that cannot see everything deletes nothing", "[bucket]") {
  World world;
  world.Put("x");
  world.objects.objects()[NewObjectKey(world.bucket.prefix, Chat1(), FileId::Random())] = {"x", Now() - hours(2)};
  world.objects.FailIf([](std::string_view method, const std::string&) { return method == "LIST"; });
  CHECK_FALSE(SweepBucket(world.Upkeep(), Now(), false));
  world.objects.FailIf(nullptr);
  FaultyFileSystem faulty(world.disk, {.at = 2, .from_then_on = true, .reads = true});
  BucketUpkeep upkeep{.root = world.root, .keys = world.keys, .file_system = faulty, .bucket = world.bucket};
  CHECK_FALSE(SweepBucket(upkeep, Now(), false));
  CHECK(world.objects.objects().size() == 2);
}

TEST_CASE("Bucket: files go to the trash and come back with their chat", "[bucket]") {
  World world;
  const StoredFile file = world.Put("text");
  REQUIRE(world.chats->DeleteChat(Chat1()));
  world.store->ForgetChat(Chat1());
  world.Age(minutes(120));
  CHECK(world.Sweep().taken.empty());
  const std::string first = world.chats->ListTrash().value().front().id;
  // Another chat of that name with that file does not touch the one in the trash.
  REQUIRE(world.chats->CreateChat(Chat1(), {.title = ""}));
  REQUIRE(world.store->Put(Chat1(), file));
  REQUIRE(world.store->Delete(Chat1(), file.info.id));
  REQUIRE(world.chats->DeleteChat(Chat1()));
  REQUIRE(world.chats->ListTrash().value().size() == 2);
  REQUIRE(world.chats->RestoreChat(Chat1(), first));
  world.Reopen();
  CHECK(world.store->Get(Chat1(), file.info.id).value() == file);
  CHECK(world.Problems().empty());
}

TEST_CASE("Bucket: a fork has objects of its own, except for missing ones", "[bucket]") {
  World world;
  const StoredFile file = world.Put("text"), lost = world.Put("lost");
  world.objects.objects().erase(world.KeyOf(lost));
  const ChatId copy = *ChatId::Parse("copy");
  REQUIRE(world.chats->ForkChat(Chat1(), InteractionId::FromNumber(1), copy, std::nullopt));
  CHECK(world.store->Get(copy, file.info.id).value() == file);
  CHECK(world.store->List(copy).value().files == std::vector{file.info});
  CHECK(world.KeyOf(file, copy) != world.KeyOf(file));
  REQUIRE(world.store->Delete(Chat1(), file.info.id));
  CHECK(world.store->Get(copy, file.info.id).value() == file);
  // Without the bucket there is no fork, and no part of one.
  world.objects.FailIf([](std::string_view, const std::string&) { return true; });
  const ChatId third = *ChatId::Parse("third");
  CHECK(ReasonOf(world.chats->ForkChat(copy, InteractionId::FromNumber(1), third, std::nullopt)) ==
        "bucket_unreachable");
  CHECK_FALSE(world.chats->LoadSummary(third));
}

TEST_CASE("Bucket: files move there and back, byte for byte, including those in the trash", "[bucket]") {
  World world;
  const ChatId deleted = *ChatId::Parse("deleted");
  REQUIRE(world.chats->CreateChat(deleted, {.title = ""}));
  SealedFileStore in_folder({.root = world.root, .keys = world.keys, .file_system = world.disk});
  const StoredFile file = File("one"), trashed = File("two"), damaged = File("three");
  REQUIRE(in_folder.Put(Chat1(), file));
  REQUIRE(in_folder.Put(Chat1(), damaged));
  REQUIRE(in_folder.Put(deleted, trashed));
  REQUIRE(world.chats->DeleteChat(deleted));
  const std::string record = world.OnDisk(file);
  const std::string broken = FilePath(world.root, Chat1(), damaged.info.id);
  REQUIRE(ReplaceFile(world.disk, broken, "{}"));
  CHECK(world.store->Get(Chat1(), file.info.id).value() == file);  // it is read in the folder

  auto moved = PushFiles(world.Upkeep()).value();
  CHECK(moved.files == 2);
  REQUIRE(moved.left.size() == 1);
  CHECK(moved.left[0].detail == FileRecordName(Chat1(), damaged.info.id));
  CHECK(world.objects.objects().at(world.KeyOf(file)).content == record);
  CHECK(world.OnDisk(file) != record);
  world.Reopen();
  CHECK(world.store->Get(Chat1(), file.info.id).value() == file);
  moved = PushFiles(world.Upkeep()).value();
  CHECK(moved.files == 0);
  CHECK(moved.there == 2);

  // An interrupted move can be continued later.
  world.objects.FailIf([calls = 0](std::string_view, const std::string&) mutable { return ++calls > 2; });
  CHECK_FALSE(PullFiles(world.Upkeep()));
  world.objects.FailIf(nullptr);
  moved = PullFiles(world.Upkeep()).value();
  CHECK(moved.files + moved.there == 2);
  CHECK(world.objects.objects().empty());
  CHECK(world.OnDisk(file) == record);
  const auto trash = world.chats->ListTrash().value();
  REQUIRE(world.chats->RestoreChat(deleted, trash[0].id));
  CHECK(in_folder.Get(deleted, trashed.info.id).value() == trashed);
}

TEST_CASE("Bucket: objects are wrapped with a new key, and their content stays", "[bucket]") {
  World world;
  const StoredFile file = world.Put("text"), lost = world.Put("lost");
  const std::string key = world.KeyOf(file), before = world.objects.objects().at(key).content;
  world.objects.objects().erase(world.KeyOf(lost));
  const auto next = std::make_shared<const KeySet>(world.keys->WithNewKey());
  Rewrapped done = RewrapStore(world.root, *next, world.disk).value();
  CHECK(CountReferences(world.root, next, world.disk).value() == 2);
  REQUIRE(RewrapObjects({.root = world.root, .keys = next, .file_system = world.disk, .bucket = world.bucket}, done));
  REQUIRE(done.left.size() == 1);
  CHECK(done.left[0].reason == "integrity_missing");
  const std::string& after = world.objects.objects().at(key).content;
  CHECK(after != before);
  CHECK(KeyIdOf(after) == next->current().kid);
  CHECK(RecordDigest(after).value() == RecordDigest(before).value());
  world.keys = next;
  world.Reopen();
  CHECK(world.store->Get(Chat1(), file.info.id).value() == file);
}

}  // namespace reprise::bucket_test
