#include "engine/moves/source_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/text.h"
#include "base/try.h"

namespace reprise {
namespace {

constexpr std::size_t kPiece = 1 << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

tl::unexpected<Error> TooLong(const SourceText& source, std::string_view unit, std::uint64_t number) {
  return Fail(Reason::kInvalidDocument, source.name() + ", " + std::string(unit) + " " + std::to_string(number) +
                                            ": it is larger than " + std::to_string(kMaxSourceRecord >> 20) + " MiB");
}

FileState StateOf(const struct stat& facts) {
  return {.size = facts.st_size, .seconds = facts.st_mtim.tv_sec, .nanoseconds = facts.st_mtim.tv_nsec};
}

Result<SourceText> SourceText::Open(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file && errno == ENOENT) return Fail(ErrorCode::kNotFound, "there is no file " + path);
  if (!file) return Fail(ErrorCode::kIo, path + " cannot be read", std::generic_category().message(errno));
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return Fail(ErrorCode::kInvalidArgument, path + " is not a regular file");
  }
  SourceText source;
  source.name_ = path;
  source.size_ = static_cast<std::uint64_t>(facts.st_size);
  source.changed_at_ = Timestamp(std::chrono::seconds(facts.st_mtim.tv_sec));
  source.state_ = StateOf(facts);
  source.file_ = std::make_shared<const UniqueFd>(std::move(file));
  return source;
}

SourceText SourceText::Of(std::string text, std::string name) {
  SourceText source;
  source.name_ = std::move(name);
  source.size_ = text.size();
  source.text_ = std::make_shared<const std::string>(std::move(text));
  return source;
}

SourceText SourceText::Unchanged() const {
  SourceText same = *this;
  same.is_unchanged_ = file_ != nullptr;
  return same;
}

SourceText SourceText::Part(std::uint64_t offset, std::uint64_t length, std::string name) const {
  SourceText part = *this;
  part.name_ = std::move(name);
  part.begin_ = begin_ + std::min(offset, size_);
  part.size_ = std::min(length, size_ - std::min(offset, size_));
  return part;
}

Result<std::string> SourceText::Read(std::uint64_t offset, std::size_t length) const {
  if (offset >= size_) return std::string();
  length = static_cast<std::size_t>(std::min<std::uint64_t>(length, size_ - offset));
  offset += begin_;
  if (text_) return text_->substr(static_cast<std::size_t>(offset), length);
  std::string text(length, '\0');
  for (std::size_t done = 0; done < length;) {
    const ssize_t read = ::pread(file_->get(), text.data() + done, length - done, static_cast<off_t>(offset + done));
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return Fail(ErrorCode::kIo, name_ + " cannot be read", std::generic_category().message(errno));
    if (read == 0) return Fail(ErrorCode::kIo, name_ + " became shorter while it was read");
    done += static_cast<std::size_t>(read);
  }
  struct stat now {};
  if (is_unchanged_ && (::fstat(file_->get(), &now) != 0 || StateOf(now) != state_)) {
    return Fail(ErrorCode::kIo, name_ + " changed while it was read: run it again");
  }
  return text;
}

Result<std::size_t> SizeOfMark(const SourceText& source) {
  const bool is_marked = TRY(source.Read(0, kByteOrderMark.size())) == kByteOrderMark;
  return is_marked ? kByteOrderMark.size() : 0;
}

std::string_view WithoutMark(std::string_view text) {
  return text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
}

Result<void> ForEachLine(const SourceText& source, const VisitRecord& visit) {
  std::string rest;  // of a line whose end is not read yet
  std::uint64_t begin = 0, number = 0;
  for (std::uint64_t offset = 0; offset < source.size();) {
    const std::string piece = TRY(source.Read(offset, kPiece));
    offset += piece.size();
    rest += piece;
    std::size_t used = 0;
    for (;;) {
      std::size_t end = rest.find('\n', used);
      if (end == std::string::npos && offset < source.size()) break;
      if (end == std::string::npos) end = rest.size();
      const std::string_view line = std::string_view(rest).substr(used, end - used);
      if (line.size() > kMaxSourceRecord) return TooLong(source, "line", number + 1);
      const SourcePlace place{.offset = begin + used,
                              .length = static_cast<std::uint32_t>(line.size()),
                              .number = static_cast<std::uint32_t>(++number)};
      if (!IsBlank(line) && !TRY(visit(place, line))) return {};
      used = std::min(end + 1, rest.size());
      if (end >= rest.size() || used == rest.size()) break;
    }
    if (rest.size() - used > kMaxSourceRecord) return TooLong(source, "line", number + 1);
    rest.erase(0, used);
    begin += used;
  }
  return {};
}

}  // namespace reprise
