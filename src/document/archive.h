#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::document {

// A ZIP archive on a seekable descriptor. Writes nothing to a disk and only compares names of entries. Throws
// Unreadable if the archive is damaged, encrypted or too large: by the number of entries, their size or their
// compression ratio, as declared or as unpacked.
class Archive {
 public:
  static constexpr std::size_t kMaxEntries = 20'000;
  static constexpr std::uint64_t kMaxEntryBytes = 64u << 20;
  static constexpr std::uint64_t kMaxBytes = 256u << 20;  // of all entries read, and of all declared
  static constexpr std::uint64_t kMaxRatio = 200;         // unpacked to packed size, beyond kFreeBytes
  static constexpr std::uint64_t kFreeBytes = 8u << 20;

  explicit Archive(int fd);

  const std::vector<std::string>& names() const { return names_; }
  // Whether there is such an entry; letters of ASCII match in either case, as in all packages of office programs.
  bool Has(std::string_view name) const;
  static bool IsSame(std::string_view one, std::string_view other);

  // Reads up to `size` bytes of an entry into `buffer`; 0 at its end.
  using Read = std::function<std::size_t(char* buffer, std::size_t size)>;
  // Goes through the entries in the archive's order and calls `take` for those that `wants` accepts.
  void ForEach(const std::function<bool(const std::string&)>& wants,
               const std::function<void(const std::string&, const Read&)>& take);

 private:
  void Count(std::uint64_t bytes);

  const int fd_;
  std::uint64_t size_ = 0;      // the archive's
  std::uint64_t unpacked_ = 0;  // so far
  std::vector<std::string> names_;
};

// The start of an element. Names have no prefix; they and the values are valid only during the call.
class Element {
 public:
  explicit Element(void* reader, std::string_view name) : reader_(reader), name_(name) {}
  std::string_view name() const { return name_; }
  // The attribute with this local name ("val" of w:val), in any namespace or with that prefix; empty if there is none.
  std::string Attribute(std::string_view name, std::string_view prefix = {}) const;

 private:
  void* const reader_;
  const std::string_view name_;
};

// True unless the element, a switch such as w:vanish, has a value that turns it off.
bool IsOn(const Element& element);

struct XmlHandler {
  std::function<void(const Element&)> begin{};
  std::function<void(std::string_view name)> end{};
  std::function<void(std::string_view text)> text{};
};

// Reads XML as a stream until its end or until `done` is true. Refuses document types and all that they could declare;
// fetches nothing. Throws Unreadable.
void ReadXml(const Archive::Read& read, const XmlHandler& handler, const std::function<bool()>& done);

}  // namespace reprise::document
