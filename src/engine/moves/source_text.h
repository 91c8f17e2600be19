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

namespace reprise {

// The longest line or element of a source that is read: it is the unit that is held in memory.
inline constexpr std::size_t kMaxSourceRecord = 64 << 20;

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
  // At most `length` bytes from there on; fewer only at the end. kIo.
  Result<std::string> Read(std::uint64_t offset, std::size_t length) const;

 private:
  std::string name_;
  std::uint64_t size_ = 0;
  std::optional<Timestamp> changed_at_;
  std::shared_ptr<const UniqueFd> file_;     // null: text_
  std::shared_ptr<const std::string> text_;  // null: file_
};

// The text behind the byte order mark that some programs begin a file with.
std::string_view WithoutMark(std::string_view text);

// Where a record stands.
struct SourcePlace {
  std::uint64_t offset = 0;
  std::uint32_t length = 0, number = 0;  // `number` counts lines, or elements, from 1
};

// Gets each record until it returns false or fails.
using VisitRecord = std::function<Result<bool>(const SourcePlace& place, std::string_view text)>;

// The lines that are not blank. A record that is too long is kInvalidArgument (reason "invalid_document"); so for the
// others. The message names source and line.
Result<void> ForEachLine(const SourceText& source, const VisitRecord& visit);
// The elements of a JSON array, as written; anything else is itself one element. Only strings and brackets are looked
// at. kInvalidArgument if the text ends within an element or the array.
Result<void> ForEachElement(const SourceText& source, const VisitRecord& visit);

}  // namespace reprise
