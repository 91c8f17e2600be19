#include "store/rewrap.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/atomic_write.h"
#include "base/try.h"
#include "crypto/jwe.h"
#include "store/private_directory.h"
#include "store/record.h"
#include "store/unsaved.h"

namespace reprise {
namespace {

constexpr std::string_view kTenantMark = ".tenant";
constexpr int kMaxDepth = 8;  // .trash/CHAT/interactions is 3

class Rewrapping {
 public:
  Rewrapping(const KeySet& keys, FileSystem& file_system, WorkCounter* counter)
      : keys_(keys), file_system_(file_system), counter_(counter) {}

  Result<void> Folder(const std::string& path, int depth = 0) {
    const auto entries = TRY(file_system_.ListDirectory(path));
    if (depth > 0 && IsTenants(entries)) return {};
    bool has_sealed = false;
    for (const DirectoryEntry& entry : entries) {
      const std::string below = path + "/" + entry.name;
      Result<bool> sealed = false;
      if (entry.is_directory && depth == kMaxDepth) {
        Leave(below, MakeError(ErrorCode::kCorruption, "the folder is nested too deep"));
      } else if (entry.is_directory) {
        sealed = Folder(below, depth + 1).map([] { return false; });
      } else if (!IsTemporaryName(entry.name)) {
        sealed = File(below);
        TRY(CountStep(counter_));
      }
      if (!sealed) return Fail(std::move(sealed.error()));
      has_sealed = has_sealed || *sealed;
    }
    // Also where nothing was changed: the run that did it may have died before it synced the names.
    return has_sealed ? file_system_.SyncDirectory(path) : Result<void>();
  }

  Rewrapped result() && { return std::move(result_); }

 private:
  // A user's folder is a store of its own, with keys of its own.
  static bool IsTenants(const std::vector<DirectoryEntry>& entries) {
    return std::any_of(entries.begin(), entries.end(),
                       [](const DirectoryEntry& entry) { return entry.name == kTenantMark; });
  }

  void Leave(const std::string& path, Error error) {
    error.detail = path;
    result_.left.push_back(std::move(error));
  }

  // True if the file is under the current key now.
  Result<bool> File(const std::string& path) {
    auto text = file_system_.ReadFile(path, kMaxRecordBytes);
    if (!text) return Leave(path, std::move(text.error())), false;
    // A record is one JWE; a journal is a line that is one, and more lines, under a key that the first line holds.
    const std::string_view sealed = LooksLikeJwe(*text) ? *text : std::string_view(*text).substr(0, text->find('\n'));
    if (!LooksLikeJwe(sealed)) {
      // Cut off, perhaps: its content key may still be in it.
      if (text->find(R"("encrypted_key":")") != std::string::npos) {
        Leave(path, MakeError(ErrorCode::kCorruption, "the file is sealed and damaged"));
      }
      return false;
    }
    auto rewrapped = RewrapJwe(sealed, keys_);
    if (!rewrapped) return Leave(path, std::move(rewrapped.error())), false;
    if (*rewrapped == sealed) return ++result_.current, true;
    if (!IsSame(sealed, *rewrapped)) return Fail(ErrorCode::kInternal, "a file could not be wrapped anew", path);
    rewrapped->append(*text, sealed.size());
    return Replace(path, *rewrapped).map([&] { return ++result_.files, true; });
  }

  // Asked before the old one is replaced: the same record, and the current key opens it.
  bool IsSame(std::string_view sealed, std::string_view rewrapped) const {
    const auto opened = OpenJwe(rewrapped, KeysOfRecord(rewrapped, keys_));
    return opened && opened->kid == keys_.current().kid && *RecordDigest(sealed) == *RecordDigest(rewrapped);
  }

  Result<void> Replace(const std::string& path, const std::string& text) {
    TRY(ReplaceFile(file_system_, path, text));
    const auto stored = TRY(file_system_.ReadFile(path, kMaxRecordBytes));
    if (stored != text) return Fail(ErrorCode::kIo, "the disk does not hold what was written to it", path);
    return {};
  }

  const KeySet& keys_;
  FileSystem& file_system_;
  WorkCounter* const counter_;
  Rewrapped result_;
};

}  // namespace

Result<Rewrapped> RewrapStore(const std::string& data_folder, const KeySet& keys, FileSystem& file_system,
                              WorkCounter* counter) {
  Rewrapping rewrapping(keys, file_system, counter);
  file_system.Confine(data_folder);
  TRY(rewrapping.Folder(data_folder));
  for (const std::string& folder : UnsavedFolders(data_folder)) {
    if (const auto there = file_system.ListDirectory(folder); !there) {
      if (there.error().code == ErrorCode::kNotFound) continue;
      return Fail(there.error());
    }
    TRY(CheckPrivateDirectory(folder));
    file_system.Confine(folder);
    TRY(rewrapping.Folder(folder));
  }
  return std::move(rewrapping).result();
}

}  // namespace reprise
