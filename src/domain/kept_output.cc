#include "domain/kept_output.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/logging.h"
#include "base/system.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"

namespace reprise {
namespace {

constexpr std::size_t kKeptPartBytes = 1 << 20;
constexpr std::size_t kKeptTailBytes = 64 << 10;  // of an output that is too long to be kept
constexpr std::size_t kStemBytes = 8;
constexpr std::string_view kOutputPrefix = "output-", kOutputSuffix = ".txt";

// "output-0123456789abcdef-2.txt": the second part of an output.
struct PartName {
  std::string stem;
  std::size_t number;  // from 1

  std::string Text() const {
    return std::string(kOutputPrefix) + stem + "-" + std::to_string(number) + std::string(kOutputSuffix);
  }
  static std::optional<PartName> Parse(std::string_view name) {
    if (!name.starts_with(kOutputPrefix) || !name.ends_with(kOutputSuffix)) return std::nullopt;
    name.remove_prefix(kOutputPrefix.size());
    name.remove_suffix(std::min(kOutputSuffix.size(), name.size()));
    const std::size_t dash = name.find('-');
    if (dash == name.npos || !IsRandomHex(name.substr(0, dash), kStemBytes)) return std::nullopt;
    PartName part{std::string(name.substr(0, dash)), 0};
    const std::string_view number = name.substr(dash + 1);
    const auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), part.number);
    if (failed != std::errc() || end != number.data() + number.size() || part.number == 0) return std::nullopt;
    return part;
  }
};

class KeeperInFiles final : public OutputKeeper {
 public:
  KeeperInFiles(FilesOfChat& files, std::function<std::string(std::string_view)> filter, KeptLimits limits)
      : files_(files), filter_(std::move(filter)), limits_(limits) {}

  void Add(std::string_view bytes) override {
    std::string filtered;
    if (filter_) bytes = filtered = filter_(bytes);
    total_ += bytes.size();
    while (!bytes.empty()) {
      const std::string_view piece = bytes.substr(0, kKeptPartBytes - buffer_.size());
      buffer_ += piece;
      bytes.remove_prefix(piece.size());
      if (is_full_ && buffer_.size() > 2 * kKeptTailBytes) buffer_.erase(0, buffer_.size() - kKeptTailBytes);
      if (buffer_.size() == kKeptPartBytes) KeepPart(WholeLines());
    }
  }

  std::string Finish() override {
    if (filter_) {
      // The filter holds back what may begin a secret; a line end shows that it does not.
      std::string held = filter_("\n");
      if (held.ends_with('\n')) held.pop_back();
      total_ += held.size();
      buffer_ += held;
    }
    if (total_ <= limits_.from_bytes) return {};
    while (!buffer_.empty() && problem_.empty()) {
      if (is_full_) buffer_.erase(0, buffer_.size() - std::min(buffer_.size(), kKeptTailBytes));
      if (!KeepPart(std::min(buffer_.size(), kKeptPartBytes)) && std::exchange(was_full_, is_full_)) break;
    }
    const std::string size = Counted(total_, "byte");
    if (!first_) return "(of the output, " + size + ", no more is kept: " + problem_ + ")";
    const std::string kept =
        total_ == kept_ ? "the whole output, " + size + ", is kept"
        : problem_.empty()
            ? "of the output, " + size + ", " + std::to_string(kept_) + " from its beginning and its end are kept"
            : "of the output, " + size + ", the first " + std::to_string(kept_) + " are kept (" + problem_ + ")";
    return "(" + kept + " in this chat: read_file and search_files take the path \"" + first_->str() + "\")";
  }

 private:
  // The length of the buffer's whole lines, or of whole characters if it is one line.
  std::size_t WholeLines() const {
    const std::size_t end = buffer_.rfind('\n');
    return end == buffer_.npos ? buffer_.size() - IncompleteUtf8Tail(buffer_) : end + 1;
  }

  // False if it has no room, now that `is_full_` is set, or fails.
  bool KeepPart(std::size_t bytes) {
    if (!problem_.empty()) return DropPart();
    if (!MakeRoom(bytes)) {
      is_full_ = true;
      return DropPart();
    }
    const PartName name{stem_, number_};
    auto added = files_.Add(name.Text(), "text/plain", ToValidUtf8(std::string_view(buffer_).substr(0, bytes)));
    if (!added) {
      problem_ = added.error().message;
      LogWarning("an output could not be kept", {{"code", added.error().reason}, {"error", problem_}});
      return DropPart();
    }
    if (!first_) first_ = added->id;
    ++number_;
    kept_ += bytes;
    own_ += bytes;
    buffer_.erase(0, bytes);
    return true;
  }
  bool DropPart() {
    if (buffer_.size() > kKeptTailBytes) buffer_.erase(0, buffer_.size() - kKeptTailBytes);
    return false;
  }

  // Deletes the oldest other outputs until there is room. The tail of a full output is kept in any case.
  bool MakeRoom(std::size_t bytes) {
    if (is_full_) return true;
    if (own_ + bytes > limits_.chat_bytes) return false;
    const auto listing = files_.List();
    if (!listing) return true;  // Add will say why
    std::uint64_t others = 0;
    std::vector<std::pair<std::string, const FileInfo*>> parts;
    for (const FileInfo& file : listing->files) {
      const auto name = PartName::Parse(file.filename);
      if (!name || name->stem == stem_) continue;
      parts.emplace_back(name->stem, &file);
      others += file.size_bytes;
    }
    while (!parts.empty() && own_ + bytes + others > limits_.chat_bytes) {
      const std::string oldest = parts.front().first;
      std::erase_if(parts, [&](const auto& part) {
        if (part.first != oldest) return false;
        others -= part.second->size_bytes;
        static_cast<void>(files_.Delete(part.second->id));  // if it stays, the store's own limits hold
        return true;
      });
    }
    return true;
  }

  FilesOfChat& files_;
  const std::function<std::string(std::string_view)> filter_;
  const KeptLimits limits_;
  const std::string stem_ = RandomHex(kStemBytes);
  std::string buffer_;
  std::uint64_t total_ = 0, kept_ = 0, own_ = 0;
  std::size_t number_ = 1;
  std::optional<FileId> first_;
  bool is_full_ = false, was_full_ = false;
  std::string problem_;
};

}  // namespace

std::unique_ptr<OutputKeeper> KeepOutput(FilesOfChat& files, std::function<std::string(std::string_view)> filter,
                                         KeptLimits limits) {
  return std::make_unique<KeeperInFiles>(files, std::move(filter), limits);
}

Result<void> ReadChatText(FilesOfChat& files, const FileId& id, const std::function<bool(std::string_view)>& take) {
  const auto take_file = [&](const FileId& which) -> Result<std::pair<std::string, bool>> {
    const auto file = TRY(files.Get(which));
    if (!IsText(file.content)) return Fail(ErrorCode::kInvalidArgument, "it is a binary file, not text");
    return std::pair(file.info.filename, take(file.content));
  };
  const auto [filename, goes_on] = TRY(take_file(id));
  const auto name = PartName::Parse(filename);
  if (!goes_on || !name || name->number != 1) return {};
  std::map<std::size_t, FileId> parts;
  for (const FileInfo& file : TRY(files.List()).files) {
    const auto part = PartName::Parse(file.filename);
    if (part && part->stem == name->stem && part->number > 1) parts.emplace(part->number, file.id);
  }
  for (const auto& [number, part] : parts) {
    if (!TRY(take_file(part)).second) return {};
  }
  return {};
}

}  // namespace reprise
