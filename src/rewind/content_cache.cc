#include "rewind/content_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/try.h"
#include "crypto/jwe.h"

namespace reprise {
namespace {

constexpr std::size_t kWrittenAtOnce = 1 << 20;

Error DiskError(int error_number) {
  const bool full = error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
  return MakeError(full ? ErrorCode::kStorageFull : ErrorCode::kIo, "the contents of files could not be stored",
                   std::strerror(error_number));
}

}  // namespace

Result<void> ContentCache::Open() {
  if (file_) return {};
  file_ = UniqueFd(::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file_) return {};
  // The file system has no O_TMPFILE.
  const std::string path = folder_ + "/.cache-" + RandomHex(8) + ".tmp";
  file_ = UniqueFd(::open(path.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0600));
  if (!file_) return Fail(DiskError(errno));
  ::unlink(path.c_str());
  return {};
}

Result<ContentCache::Place> ContentCache::Add(std::string_view content) {
  TRY(Open());
  const std::size_t size = kGcmIvBytes + content.size() + kGcmTagBytes;
  if (held_ + size > max_bytes_) {
    full_ = true;
    return Fail(ErrorCode::kTooLarge, "the cache of contents is full");
  }
  if (pending_.size() >= kWrittenAtOnce) TRY(Flush());
  const Place place{.offset = end_ + pending_.size(), .size = static_cast<std::uint32_t>(size)};
  std::string iv(kGcmIvBytes, '\0');
  const std::uint64_t number = next_iv_++;
  std::memcpy(iv.data(), &number, sizeof number);
  pending_ += iv;
  if (auto sealed = GcmSealTo(pending_, key_, iv, {}, content); !sealed) {
    pending_.resize(place.offset - end_);
    return Fail(sealed.error());
  }
  held_ += size;
  return place;
}

Result<void> ContentCache::Flush() {
  std::size_t done = 0;
  while (done < pending_.size()) {
    const ssize_t written =
        ::pwrite(file_.get(), pending_.data() + done, pending_.size() - done, static_cast<off_t>(end_ + done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      full_ = true;
      return Fail(DiskError(errno));
    }
    done += static_cast<std::size_t>(written);
  }
  end_ += done;
  pending_.clear();
  return {};
}

Result<std::string> ContentCache::Read(const Place& place) {
  std::string sealed(place.size, '\0');
  if (place.offset >= end_) {
    sealed = pending_.substr(place.offset - end_, place.size);
  } else {
    std::size_t done = 0;
    while (done < sealed.size()) {
      const ssize_t got =
          ::pread(file_.get(), sealed.data() + done, sealed.size() - done, static_cast<off_t>(place.offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return Fail(DiskError(got < 0 ? errno : EIO));
      done += static_cast<std::size_t>(got);
    }
  }
  const std::string iv = sealed.substr(0, kGcmIvBytes);
  const std::string tag = sealed.substr(sealed.size() - kGcmTagBytes);
  return GcmOpen(key_, {}, iv, sealed.substr(kGcmIvBytes, sealed.size() - kGcmIvBytes - kGcmTagBytes), tag);
}

void ContentCache::Forget(const Place& place) {
  held_ -= place.size;
  // Frees the space where the file system can; a failure only costs space.
  if (place.offset + place.size <= end_) {
    static_cast<void>(::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                  static_cast<off_t>(place.offset), place.size));
  }
}

}  // namespace reprise
