#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/chat_bucket.h"
#include "app/folders.h"
#include "app/keys.h"
#include "base/json.h"
#include "base/posix_file_system.h"
#include "base/terminal_text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "client/archive/chat_reader.h"
#include "crypto/key_set.h"
#include "store/data_folder.h"
#include "store/file_names.h"
#include "store/unsaved.h"
#include "store/upkeep.h"
#include "terminal/console.h"
#include "terminal/progress.h"

namespace reprise {
namespace {

Result<KeyFile> OpenKeyFile(const Options& options) {
  auto file = KeyFile::Open(KeyFileOf(options), Disk(), PassphraseFrom(options));
  if (!file && file.error().code == ErrorCode::kNotFound) {
    return Fail(ErrorCode::kNotFound, "there is no key file " + KeyFileOf(options) + " yet (reprise keys init)");
  }
  return file;
}

Json Described(const std::string& path, const KeySet& keys, bool has_passphrase) {
  Json list = Json::array();
  for (const KeySet::Key& key : keys.keys()) {
    list.push_back({{"kid", key.kid}, {"alg", "A256KW"}, {"current", &key == &keys.current()}});
  }
  return {{"key_file", path}, {"passphrase", has_passphrase}, {"keys", std::move(list)}};
}

void PrintKeys(const std::string& path, const KeySet& keys, bool has_passphrase, bool json) {
  if (json) return PrintDocument(Described(path, keys, has_passphrase));
  Print("key file " + VisibleLine(path) + (has_passphrase ? "  (protected by a passphrase)\n" : "\n"));
  for (const KeySet::Key& key : keys.keys()) {
    Print(VisibleLine(key.kid) + "  A256KW" + (&key == &keys.current() ? "  (seals)\n" : "\n"));
  }
}

// With a database, the keys open more than the folder, so an old one might seem unused.
Result<void> CheckIsFolder(const Options& options) {
  if (options.store.type == StoreOptions::Type::kFiles) return {};
  return Fail(
      ErrorCode::kInvalidArgument,
      "what is in a database cannot be wrapped anew yet: keep the old keys in the key file (keys rotate, without "
      "--rewrap, adds one that seals from then on)");
}

// Locks the data folder, because a server would go on sealing with its keys, and rewrite chat.json.
Result<std::unique_ptr<DirectoryLock>> LockDataFolder(const Options& options) {
  TRY(CheckIsFolder(options));
  if (const auto there = Disk().ListDirectory(options.data_dir); !there) {
    return Fail(there.error().code == ErrorCode::kNotFound ? NoDataFolder(options.data_dir) : there.error());
  }
  auto lock = DirectoryLock::Acquire(LockFile(options.data_dir));
  if (!lock && lock.error().code == ErrorCode::kConflict) {
    lock.error().message = "files cannot be wrapped anew while a server runs; stop it first: " + lock.error().message;
  }
  return lock;
}

void PrintRewrapped(const KeyFile& file, const Options& options, const Rewrapped& done, bool removed, bool json) {
  if (!json) {
    Print(std::to_string(done.files) + " files wrapped to " + VisibleLine(file.keys().current().kid) + ", " +
          std::to_string(done.current) + " were already" + (removed ? "; the old keys are removed\n" : "\n"));
    return;
  }
  Json report = Described(KeyFileOf(options), file.keys(), file.has_passphrase());
  report["rewrapped"] = done.files;
  report["already_current"] = done.current;
  report["left"] = Json::array();
  for (const Error& error : done.left) report["left"].push_back({{"file", error.detail}, {"message", error.message}});
  report["old_keys_removed"] = removed;
  PrintDocument(report);
}

std::uint64_t FilesToWrap(const Options& options) {
  std::uint64_t files = CountFilesBelow(options.data_dir);
  for (const std::string& folder : UnsavedFolders(options.data_dir)) files += CountFilesBelow(folder);
  return files;
}

// Without a usable bucket, the old keys are kept for the files in it.
Result<void> RewrapInBucket(const Options& options, const std::string& folder, std::shared_ptr<const KeySet> keys,
                            WorkCounter& counter, Rewrapped& done) {
  const auto bucket = ChatBucket::OpenToRead(options, counter.stop_token());
  if (bucket) {
    return RewrapObjects(
        {.root = folder, .keys = keys, .file_system = Disk(), .bucket = bucket->files(), .counter = &counter}, done);
  }
  const auto count = TRY(CountReferences(folder, keys, Disk()));
  if (count == 0) return {};
  done.left.push_back(MakeError(ErrorCode::kUnavailable,
                                std::to_string(count) + (count == 1 ? " file is" : " files are") +
                                    " in a bucket, and the configuration names none that can be used (files)",
                                "the bucket"));
  return {};
}

// Rewraps a data folder with its objects.
Result<Rewrapped> RewrapFolder(const Options& options, const std::string& folder, const KeySet& operators,
                               WorkCounter& counter) {
  const auto keys = TRY(KeysOfFolder(operators.BoundTo(""), folder, Disk()));
  auto done = TRY(RewrapStore(folder, *keys, Disk(), &counter));
  TRY(RewrapInBucket(options, folder, keys, counter, done));
  return done;
}

// Rewraps the folder with its orgs' keys, the folders of its users, and the unsaved interactions of each.
Result<Rewrapped> RewrapAll(const Options& options, const KeySet& keys, WorkCounter& counter) {
  auto all = TRY(RewrapFolder(options, options.data_dir, keys, counter));
  for (const Principal& user : ListTenants(options.data_dir, Disk())) {
    auto more = TRY(RewrapFolder(options, TenantFolder(options.data_dir, user), keys, counter));
    all.files += more.files;
    all.current += more.current;
    for (Error& left : more.left) {
      const bool told = std::ranges::any_of(all.left, [&](const Error& other) { return other.detail == left.detail; });
      if (!told) all.left.push_back(std::move(left));
    }
  }
  return all;
}

// REQUIRES: the data folder's lock is held.
Exited Rewrap(KeyFile& file, const Options& options, const CommandLine& line, const Environment& environment) {
  WorkCounter counter;
  Progress progress(counter, environment);
  progress.Begin({.doing = "wrapping", .things = "files", .total = progress.is_shown() ? FilesToWrap(options) : 0});
  const auto done = RewrapAll(options, file.keys(), counter);
  if (progress.interrupted()) Warn("interrupted; nothing is lost, and `reprise keys rewrap` goes on from there");
  progress.End();
  if (!done) {
    Complain(done.error());
    return Complain(MakeError(ErrorCode::kIo,
                              "not every file was reached; nothing is lost, and `reprise keys rewrap` "
                              "goes on from there"));
  }
  for (const Error& error : done->left) Complain(error);
  const bool remove = line.keys.remove_old && done->left.empty();
  if (remove) TRY(file.RemoveOldKeys());
  PrintRewrapped(file, options, *done, remove, line.json);
  if (done->left.empty()) return kExitOk;
  return Complain(MakeError(ErrorCode::kCorruption, "these files were left as they are, and the old keys are kept"));
}

}  // namespace

Exited RunKeysInit(const CommandLine& line, const Environment& environment) {
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  const std::string path = KeyFileOf(options);
  auto file = KeyFile::Open(path, Disk(), PassphraseFrom(options));
  if (!file && file.error().code == ErrorCode::kNotFound) {
    TRY(LoadOrCreateKeyFile(path, Disk()));
    file = KeyFile::Open(path, Disk());
  }
  if (!file) return Complain(file.error());
  PrintKeys(path, file->keys(), file->has_passphrase(), line.json);
  return kExitOk;
}

Exited RunKeysList(const CommandLine& line, const Environment& environment) {
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  const auto file = TRY(OpenKeyFile(options));
  PrintKeys(KeyFileOf(options), file.keys(), file.has_passphrase(), line.json);
  return kExitOk;
}

Exited RunKeysRotate(const CommandLine& line, const Environment& environment) {
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  std::unique_ptr<DirectoryLock> lock;
  if (line.keys.rewrap) lock = TRY(LockDataFolder(options));
  auto file = TRY(OpenKeyFile(options));
  TRY(file.AddKey());
  if (line.keys.rewrap) return Rewrap(file, options, line, environment);
  PrintKeys(KeyFileOf(options), file.keys(), file.has_passphrase(), line.json);
  if (!line.json) Print("a server that runs now seals by the new key from its next start on\n");
  return kExitOk;
}

Exited RunKeysRewrap(const CommandLine& line, const Environment& environment) {
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  const auto lock = TRY(LockDataFolder(options));
  auto file = TRY(OpenKeyFile(options));
  return Rewrap(file, options, line, environment);
}

Exited RunKeysPassphrase(const CommandLine& line, const Environment& environment) {
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  auto file = TRY(OpenKeyFile(options));
  Result<void> changed;
  if (!line.keys.remove_passphrase) {
    changed = NewPassphrase(line.keys.new_passphrase_file).and_then([&](const SecretText& passphrase) {
      return file.SetPassphrase(passphrase);
    });
  } else if (file.has_passphrase()) {
    changed = file.RemovePassphrase();
  } else {
    return Complain(MakeError(ErrorCode::kNotFound, "the key file has no passphrase"));
  }
  if (!changed) return Complain(changed.error());
  PrintKeys(KeyFileOf(options), file.keys(), file.has_passphrase(), line.json);
  return kExitOk;
}

}  // namespace reprise
