#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::document {

// A ZIP archive on a descriptor that can be read again from its beginning. Nothing in it is ever written to a disk, and
// names of entries are only compared. It throws Unreadable where the archive is damaged, encrypted, or would become too
// large: by the number of its entries, their size and their ratio to the archive, said or real.
class Archive {
 public:
  static constexpr std::size_t kMaxEntries = 20'000;
  static constexpr std::uint64_t kMaxEntryBytes = 64u << 20;
  static constexpr std::uint64_t kMaxBytes = 256u << 20;  // of all entries that are read, and of all that there are
  static constexpr std::uint64_t kMaxRatio = 200;         // of all to the archive, beyond kFreeBytes
  static constexpr std::uint64_t kFreeBytes = 8u << 20;

  explicit Archive(int fd);

  const std::vector<std::string>& names() const { return names_; }
  bool Has(std::string_view name) const;

  // Gives the bytes of an entry piece by piece: at most `size` into `buffer`, 0 at its end.
  using Read = std::function<std::size_t(char* buffer, std::size_t size)>;
  // Goes through the entries in the archive's order; `take` is called for those of which `wants` is true.
  void ForEach(const std::function<bool(const std::string&)>& wants,
               const std::function<void(const std::string&, const Read&)>& take);

 private:
  void Count(std::uint64_t bytes);

  const int fd_;
  std::uint64_t size_ = 0;      // of the archive
  std::uint64_t unpacked_ = 0;  // so far
  std::vector<std::string> names_;
};

// An element that begins. Names are without their prefix; they and the values are good during the call only.
class Element {
 public:
  explicit Element(void* reader, std::string_view name) : reader_(reader), name_(name) {}
  std::string_view name() const { return name_; }
  // By its local name ("val" of w:val), in any namespace, or with that prefix; empty: there is none.
  std::string Attribute(std::string_view name, std::string_view prefix = {}) const;

 private:
  void* const reader_;
  const std::string_view name_;
};

struct XmlHandler {
  std::function<void(const Element&)> begin{};
  std::function<void(std::string_view name)> end{};
  std::function<void(std::string_view text)> text{};
};

// Reads XML as a stream. Document types, with all that they could declare, are refused; nothing is fetched. Throws
// Unreadable. Returns when `done` says so, too.
void ReadXml(const Archive::Read& read, const XmlHandler& handler, const std::function<bool()>& done);

}  // namespace reprise::document
