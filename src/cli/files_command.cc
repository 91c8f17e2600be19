#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "app/chat_bucket.h"
#include "app/keys.h"
#include "base/json.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "client/archive/chat_reader.h"
#include "store/data_folder.h"
#include "store/file_names.h"
#include "store/object_store.h"
#include "store/upkeep.h"
#include "terminal/console.h"
#include "terminal/progress.h"

namespace reprise {
namespace {

// A data folder and its bucket. Commands that move files lock the folder.
struct Opened {
  Options options;
  std::shared_ptr<const KeySet> keys;
  std::unique_ptr<ChatBucket> bucket;
  std::unique_ptr<DirectoryLock> lock;
};

Result<Opened> Open(const CommandLine& line, const Environment& environment, std::stop_token stop) {
  Opened opened{.options = TRY(LoadOptions(line.flags, environment)), .keys = {}, .bucket = {}, .lock = {}};
  if (!IsDirectory(opened.options.data_dir)) return Fail(NoDataFolder(opened.options.data_dir));
  opened.bucket = TRY(ChatBucket::Open(opened.options, std::move(stop)));
  if (!opened.bucket) {
    return Fail(ErrorCode::kInvalidArgument, "the configuration names no bucket (\"files\": {\"type\": \"s3\", ...})");
  }
  opened.keys = TRY(KeysFor(opened.options));
  return opened;
}

Result<Opened> OpenLocked(const CommandLine& line, const Environment& environment, std::stop_token stop) {
  auto opened = TRY(Open(line, environment, std::move(stop)));
  auto lock = DirectoryLock::Acquire(LockFile(opened.options.data_dir));
  if (!lock && lock.error().code == ErrorCode::kConflict) {
    lock.error().message = "files cannot be moved while a server runs; stop it first: " + lock.error().message;
  }
  opened.lock = TRY(std::move(lock));
  TRY(opened.bucket->TakeNewFiles(opened.options.data_dir, Disk()));
  return opened;
}

void PrintSwept(const Swept& swept, const CommandLine& line) {
  if (line.json) {
    Json taken = Json::array();
    for (const StoredObject& object : swept.taken) {
      taken.push_back(
          {{"key", object.key}, {"bytes", object.bytes}, {"changed_at", FormatTimestamp(object.changed_at)}});
    }
    return PrintDocument(
        {{"objects", swept.objects}, {"young", swept.young}, {"taken", std::move(taken)}, {"dry_run", line.dry_run}});
  }
  for (const StoredObject& object : swept.taken) {
    Print(VisibleLine(object.key) + "  " + CountOf(object.bytes, "byte") + "\n");
  }
  Print(CountOf(swept.objects, "object") + " in the bucket, " + std::to_string(swept.taken.size()) +
        (line.dry_run ? " would be deleted" : " deleted") +
        (swept.young == 0 ? "\n" : ", " + std::to_string(swept.young) + " too young to tell\n"));
}

int Finish(const Result<Moved>& moved, const CommandLine& line, const std::string& where) {
  if (!moved) {
    Complain(moved.error());
    return Complain(MakeError(ErrorCode::kIo,
                              "not every file was moved; nothing is lost, and the same command goes on "
                              "from there"));
  }
  for (const Error& error : moved->left) Complain(error);
  if (line.json) {
    Json left = Json::array();
    for (const Error& error : moved->left) left.push_back({{"file", error.detail}, {"message", error.message}});
    PrintDocument(
        {{"moved", moved->files}, {"bytes", moved->bytes}, {"already_there", moved->there}, {"left", std::move(left)}});
  } else {
    Print(CountOf(moved->files, "file") + " moved to " + where + ", " + std::to_string(moved->there) +
          (moved->there == 1 ? " was there already\n" : " were there already\n"));
  }
  return moved->left.empty() ? kExitOk : kExitFailure;
}

}  // namespace

Exited RunFilesSweep(const CommandLine& line, const Environment& environment) {
  WorkCounter counter;
  const auto opened = TRY(OfUse(Open(line, environment, counter.stop_token())));
  const auto prefix = TRY(ObjectPrefixOf(opened.options.data_dir, Disk(), /*make=*/false));
  const FileBucket bucket{.objects = opened.bucket->files().objects, .prefix = prefix};
  Progress progress(counter, environment);
  progress.Begin({.doing = "looking at", .things = "objects"});
  const auto swept = SweepBucket({.root = opened.options.data_dir,
                                  .keys = opened.keys,
                                  .file_system = Disk(),
                                  .bucket = bucket,
                                  .counter = &counter},
                                 Now(), line.dry_run);
  progress.End();
  if (!swept) return Complain(swept.error());
  PrintSwept(*swept, line);
  return kExitOk;
}

Exited RunFilesMove(const CommandLine& line, const Environment& environment) {
  WorkCounter counter;
  const auto opened = TRY(OfUse(OpenLocked(line, environment, counter.stop_token())));
  Progress progress(counter, environment);
  progress.Begin({.doing = "moving", .things = "files"});
  const BucketUpkeep upkeep{.root = opened.options.data_dir,
                            .keys = opened.keys,
                            .file_system = Disk(),
                            .bucket = opened.bucket->files(),
                            .counter = &counter};
  const bool is_push = line.command == "files push";
  const auto moved = is_push ? PushFiles(upkeep) : PullFiles(upkeep);
  progress.End();
  return Finish(moved, line, is_push ? "the bucket" : "the data folder");
}

}  // namespace reprise
