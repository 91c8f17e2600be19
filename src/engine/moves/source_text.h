#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/system.h"
#include "reprise/result.h"
#include "reprise/timestamp.h"

struct stat;

namespace reprise {

// The longest line of a source, or element of its lists, that is read: it is the unit that is held in memory.
inline constexpr std::size_t kMaxSourceRecord = 64 << 20;

// What tells that a file was written: its size, and when that was.
struct FileState {
  std::int64_t size = 0, seconds = 0, nanoseconds = 0;
  bool operator==(const FileState&) const = default;
};
FileState StateOf(const struct stat& facts);

// What another program wrote: a file, read in pieces so that its size does not matter, or text in memory. It may grow
// meanwhile; what came later is not seen.
class SourceText {
 public:
  // kNotFound, kInvalidArgument (no regular file), kIo.
  static Result<SourceText> Open(const std::string& path);
  // `name` is for messages.
  static SourceText Of(std::string text, std::string name);

  const std::string& name() const { return name_; }
  std::uint64_t size() const { return size_; }
  // When the file was last written; nullopt for a text.
  std::optional<Timestamp> changed_at() const { return changed_at_; }
  // The same, whose reading fails (kIo) once the file has changed: what is read of it belongs together.
  SourceText Unchanged() const;
  // A part of it as a source of its own.
  SourceText Part(std::uint64_t offset, std::uint64_t length, std::string name) const;
  // At most `length` bytes from there on; fewer only at the end. kIo.
  Result<std::string> Read(std::uint64_t offset, std::size_t length) const;

 private:
  std::string name_;
  std::uint64_t begin_ = 0, size_ = 0;
  std::optional<Timestamp> changed_at_;
  FileState state_;  // of the file, when it was opened
  bool is_unchanged_ = false;
  std::shared_ptr<const UniqueFd> file_;     // null: text_
  std::shared_ptr<const std::string> text_;  // null: file_
};

// That a record is too long: kInvalidArgument (reason "invalid_document"). `unit` is "line" or "element".
tl::unexpected<Error> TooLong(const SourceText& source, std::string_view unit, std::uint64_t number);

// The bytes of the byte order mark that the source begins with; 0: none.
Result<std::size_t> SizeOfMark(const SourceText& source);
// The text behind the byte order mark that some programs begin a file with.
std::string_view WithoutMark(std::string_view text);

// Where a record stands.
struct SourcePlace {
  std::uint64_t offset = 0;
  std::uint32_t length = 0, number = 0;  // `number` counts lines, or elements of a list, from 1
};

// Gets each record until it returns false or fails.
using VisitRecord = std::function<Result<bool>(const SourcePlace& place, std::string_view text)>;

// The lines that are not blank. One that is too long is kInvalidArgument (reason "invalid_document"); the message names
// source and line.
Result<void> ForEachLine(const SourceText& source, const VisitRecord& visit);
}  // namespace reprise
