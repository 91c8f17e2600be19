// The files of a data folder: checkpoints, the index, journals, queues, files, grants, the audit log and the list of
// running interactions, each with any content. Both in a plain folder, which reaches the code behind the seal, and in a
// sealed one. Opening and reading must report the damage and leave everything else readable.

#include <map>

#include "fuzz/driver.h"
#include "store/audit_file.h"
#include "store/file_interaction_store.h"
#include "store/file_journal.h"
#include "store/sample.h"
#include "store/sealed_file_store.h"
#include "store/tenant_files.h"
#include "store/verify.h"
#include "support/memory_file_system.h"

namespace reprise::fuzz {
namespace {

const std::string kRoot = "/data";

using Files = std::map<std::string, std::string>;  // contents by path

void Collect(MemoryFileSystem& disk, const std::string& path, Files& files) {
  const auto entries = disk.ListDirectory(path);
  if (!entries) return;
  for (const DirectoryEntry& entry : *entries) {
    const std::string below = path + "/" + entry.name;
    if (entry.is_directory) {
      Collect(disk, below, files);
    } else if (auto content = disk.ReadFile(below, kMaxRecordBytes)) {
      files.emplace(below, *std::move(content));
    }
  }
}

void MakeDirectories(MemoryFileSystem& disk, const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    (void)disk.CreateDirectory(path.substr(0, slash));
  }
}

// One data folder, made by the program.
struct World {
  std::shared_ptr<const KeySet> keys;
  Files files;

  // With `long_chat`, states are so long that files hold only additions to the one before, which is slower to read.
  World(bool sealed, bool long_chat) {
    if (sealed) keys = std::make_shared<const KeySet>(KeySet::Generate());
    MemoryFileSystem disk;
    {
      auto store = *FileInteractionStore::Open({.root = kRoot, .keys = keys, .file_system = disk, .lock = false});
      Interaction parent = Sample(1, std::nullopt, "first");
      (void)store->SaveInteraction(parent);
      Interaction second = Sample(2, 1, "second");
      const Messages& before = parent.final_agent_state->messages;
      second.final_agent_state->messages.Insert(0, std::vector<Message>(before.begin(), before.end()));
      for (int i = 0; i < (long_chat ? 40 : 1); ++i) {
        second.final_agent_state->messages.push_back({.role = Role::kUser,
                                                      .content = std::string(2000, 'x'),
                                                      .tool_calls = {},
                                                      .tool_call_id = {},
                                                      .name = {},
                                                      .extras = {}});
      }
      (void)store->SaveInteraction(second);
      Interaction third = second;
      third.id = Id(3);
      third.parent_id = Id(2);
      third.final_agent_state->messages.push_back({.role = Role::kAssistant,
                                                   .content = "third",
                                                   .tool_calls = {{"c1", "echo", "{}"}},
                                                   .tool_call_id = {},
                                                   .name = {},
                                                   .extras = {}});
      (void)store->SaveInteraction(third);
      (void)store->SaveInteraction(Sample(4, 1, "branch"));
      auto journal = store->BeginJournal(Chat1(), Id(5), {});
      for (const char* record : {R"({"begin":{"user_message":"m"}})", R"({"frames":"id: 1\n"})"}) {
        if (journal) (void)(*journal)->Append(record, Journal::Reach::kPowerLoss);
      }
      kept_journal = journal ? std::move(*journal) : nullptr;
    }
    StandingGrant grant;
    grant.grant = {.tool_name = "echo", .arguments_digest = "sha256:" + std::string(64, 'a')};
    (void)WriteGrantFile(disk, kRoot, keys.get(), {grant});
    Collect(disk, kRoot, files);
    files.emplace(
        kRoot + "/audit.jsonl",
        R"({"seq":1,"at":"2026-01-01T00:00:00.000Z","chat_id":"chat1","interaction_id":"int_001","call_id":"c","tool_name":"echo","arguments_digest":"sha256:00","action":"start","previous":null})"
        "\n");
    files.emplace(kRoot + "/chat1/queue.json", R"({"schema":1,"chat_id":"chat1","messages":[]})");
  }
  std::unique_ptr<Journal> kept_journal;
};

const World& WorldOf(unsigned kind) {
  static const World worlds[] = {World(false, false), World(true, false), World(false, true), World(true, true)};
  return worlds[kind % 4];
}

// The first byte of an input chooses the folder (two bits) and the file to replace.
void Run(std::string_view input) {
  if (input.empty()) return;
  const auto choice = static_cast<unsigned char>(input.front());
  const World& world = WorldOf(choice);
  const auto chosen = std::next(world.files.begin(), (choice >> 2) % static_cast<int>(world.files.size()));
  MemoryFileSystem disk;
  for (const auto& [path, content] : world.files) {
    MakeDirectories(disk, path);
    (void)disk.CreateFile(path);
    disk.Overwrite(path, path == chosen->first ? std::string(input.substr(1)) : content);
  }
  if (const auto report = VerifyStore(kRoot, world.keys, disk)) {
    Expect(report->checked < 100, "more files than there are");
  }
  auto opened = FileInteractionStore::Open({.root = kRoot, .keys = world.keys, .file_system = disk, .lock = false});
  if (opened) {
    FileInteractionStore& store = **opened;
    (void)store.ListChats();
    (void)store.ListUnfinished();
    (void)store.queues().ListQueues();
    (void)store.LoadChat(Chat1());
    (void)store.queues().LoadQueue(Chat1());
    for (std::uint32_t number = 1; number <= 4; ++number) {
      (void)store.LoadInteraction(Chat1(), Id(number));
      (void)store.LoadFinalState(Chat1(), Id(number));
      (void)store.LoadPreviousState(Chat1(), Id(number));
    }
    (void)store.ReadJournal(Chat1(), Id(5));
    // The chat can continue, or fails with a reason; new records are sound.
    if (const auto id = store.ReserveInteraction(Chat1())) {
      const auto summary = store.LoadSummary(Chat1());
      Interaction next = Sample(Chat1(), *id, summary ? summary->head : std::nullopt, "next");
      if (store.SaveInteraction(next)) {
        const auto again = store.LoadInteraction(Chat1(), *id);
        Expect(again.has_value() && again->user_message == "next", "what was saved beside a damaged file is not there");
      }
    }
  }
  (void)ReadGrantFile(disk, kRoot, world.keys.get());
  const AuditFile audit(kRoot, world.keys, disk);
  (void)audit.Read(0, 100);
  // Also reads the content as a journal, whatever the file is.
  const std::string_view content = input.substr(1);
  const RecordPlace place{.chat = Chat1(), .interaction = Id(5)};
  (void)ReadJournalText(content, place, world.keys.get());
}

Target MakeTarget() {
  Target target{.name = "store", .seeds = {}, .words = {}, .run = Run};
  for (const unsigned kind : {0U, 1U, 0U, 1U, 0U, 1U, 2U, 3U}) {  // the quick ones come more often
    unsigned number = 0;
    for (const auto& [path, content] : WorldOf(kind).files) {
      target.seeds.push_back(static_cast<char>(number++ * 4 + kind) + content);
    }
  }
  target.words = {"{",
                  "}",
                  "[",
                  "]",
                  "\"",
                  ",",
                  ":",
                  "\n",
                  "null",
                  "true",
                  "\"linked\":",
                  "\"kept\":",
                  "\"messages\":",
                  "\"digest\":",
                  "\"parent_id\":",
                  "\"int_001\"",
                  "\"int_005\"",
                  "\"schema\":2",
                  "\"protected\":",
                  "\"header\":",
                  "\"encrypted_key\":",
                  "\"iv\":",
                  "\"tag\":",
                  "\"ciphertext\":",
                  "\"head\":",
                  "\"leaves\":",
                  "\"last\":",
                  "+chat1 int_001\n",
                  "-chat1 int_001\n",
                  "\xff",
                  "\xc3",
                  "\\ud800",
                  "\\u0000",
                  std::string(1, '\0'),
                  std::string("\xff\xff\xff\xff", 4),
                  std::string("\0\0\0\x10", 4),
                  "A",
                  "_-",
                  "{\"a\":",
                  "[["};
  return target;
}

}  // namespace
}  // namespace reprise::fuzz

int main(int argc, char** argv) { return reprise::fuzz::Main(argc, argv, reprise::fuzz::MakeTarget()); }
