// A chat that is deleted, and perhaps made again under its name, while it is read.
#include <functional>
#include <map>

#include "base/posix_file_system.h"
#include "store/file_interaction_store.h"
#include "store/file_names.h"
#include "store/sample.h"
#include "support/faulty_file_system.h"
#include "support/forwarding_file_system.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::deletion_test {
namespace {

const ChatId kCopy = *ChatId::Parse("copy");

// Calls a function just before the n-th read.
class Interrupting final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  void At(std::size_t call, std::function<void()> then) {
    calls_ = 0;
    call_ = call;
    then_ = std::move(then);
  }
  bool fired() const { return !then_; }
  Result<std::string> ReadFile(const std::string& path, std::uint64_t max_bytes) override {
    if (then_ && ++calls_ == call_) std::exchange(then_, nullptr)();
    return base_.ReadFile(path, max_bytes);
  }

 private:
  std::function<void()> then_;
  std::size_t calls_ = 0, call_ = 0;
};

void Fill(FileInteractionStore& store, const std::string& text) {
  REQUIRE(store.SaveInteraction(Sample(1, std::nullopt, text)));
  REQUIRE(store.SaveInteraction(Sample(2, 1, text)));
  REQUIRE(store.SaveInteraction(Sample(3, 2, text)));
}

std::optional<Error> ErrorOf(const auto& result) {
  return result ? std::nullopt : std::optional<Error>(result.error());
}

}  // namespace

TEST_CASE("Deletion: a reader meanwhile finds the chat, the next one of its name, or none", "[store]") {
  const bool made_again = GENERATE(false, true);
  using Call = std::function<std::optional<Error>(FileInteractionStore&)>;
  const std::map<std::string, Call> calls = {
      {"interaction", [](auto& store) { return ErrorOf(store.LoadInteraction(Chat1(), Id(2))); }},
      {"newest", [](auto& store) { return ErrorOf(store.LoadInteraction(Chat1(), Id(3))); }},
      {"state", [](auto& store) { return ErrorOf(store.LoadFinalState(Chat1(), Id(3))); }},
      {"previous state", [](auto& store) { return ErrorOf(store.LoadPreviousState(Chat1(), Id(3))); }},
      {"fork", [](auto& store) { return ErrorOf(store.ForkChat(Chat1(), Id(3), kCopy, std::nullopt)); }},
      {"chat", [](auto& store) {
         const auto chat = store.LoadChat(Chat1());
         if (chat) CHECK(chat->damaged.empty());
         return ErrorOf(chat);
       }}};
  for (const auto& [name, call] : calls) {
    for (std::size_t n = 1;; ++n) {
      CAPTURE(name, n, made_again);
      TempDirectory directory;
      PosixFileSystem disk;
      Interrupting interrupting(disk);
      const auto open = [&](FileSystem& file_system) {
        return *FileInteractionStore::Open(
            {.root = directory.File("data"), .keys = nullptr, .file_system = file_system, .lock = false});
      };
      Fill(*open(disk), "first");
      auto store = open(interrupting);
      REQUIRE(store->LoadSummary(Chat1()));  // else it would be read with its lock held, and the deletion would wait
      interrupting.At(n, [&] {
        REQUIRE(store->DeleteChat(Chat1()));
        if (made_again) Fill(*store, "second");
      });
      const auto error = call(*store);
      if (error) {
        CAPTURE(error->reason, error->message);
        CHECK(error->code == ErrorCode::kNotFound);
        CHECK_FALSE(made_again);
      }
      if (!interrupting.fired()) break;
    }
  }
}

TEST_CASE("Deletion: what of a branch could not be removed is whole, here and after a restart", "[store]") {
  bool fired = true;
  for (std::size_t call = 1; fired; ++call) {
    CAPTURE(call);
    TempDirectory directory;
    PosixFileSystem disk;
    {
      const auto store = FileInteractionStore::Open({.root = directory.path(), .keys = nullptr, .file_system = disk});
      REQUIRE(store);
      Fill(**store, "first");
      REQUIRE((*store)->SaveInteraction(Sample(4, std::nullopt, "another")));
    }
    FaultyFileSystem failing(disk, {.at = call});
    const auto store = FileInteractionStore::Open({.root = directory.path(), .keys = nullptr, .file_system = failing});
    if (!store) continue;
    static_cast<void>((*store)->RemoveBranch(Chat1(), Id(1)));
    fired = failing.fired();
    const auto here = (*store)->LoadChat(Chat1());
    const auto later = FileInteractionStore::Open({.root = directory.path(),
                                                   .keys = nullptr,
                                                   .file_system = disk,
                                                   .access = FileInteractionStore::Access::kReadOnly});
    const auto there = (*later)->LoadChat(Chat1());
    REQUIRE((here && there));
    CHECK(here->damaged.empty());
    CHECK(there->damaged.empty());
    CHECK(here->interactions.size() == there->interactions.size());
  }
}

}  // namespace reprise::deletion_test
