#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// Writes messages in the wire format of Protocol Buffers. As in proto3, whoever writes leaves out what is zero or
// empty.
class ProtobufWriter {
 public:
  void Varint(std::uint32_t field, std::uint64_t value) {
    Tag(field, 0);
    Raw(value);
  }
  void Fixed64(std::uint32_t field, std::uint64_t value) {
    Tag(field, 1);
    RawFixed(value, 8);
  }
  void Fixed32(std::uint32_t field, std::uint32_t value) {
    Tag(field, 5);
    RawFixed(value, 4);
  }
  void Double(std::uint32_t field, double value) { Fixed64(field, std::bit_cast<std::uint64_t>(value)); }
  void Bytes(std::uint32_t field, std::string_view bytes) {
    Tag(field, 2);
    Raw(bytes.size());
    out_ += bytes;
  }
  void PackedFixed64(std::uint32_t field, const std::vector<std::uint64_t>& values) {
    Tag(field, 2);
    Raw(values.size() * 8);
    for (const std::uint64_t value : values) RawFixed(value, 8);
  }
  void PackedDoubles(std::uint32_t field, const std::vector<double>& values) {
    Tag(field, 2);
    Raw(values.size() * 8);
    for (const double value : values) RawFixed(std::bit_cast<std::uint64_t>(value), 8);
  }
  // A message within this one: what `write` writes.
  template <typename Write>
  void Message(std::uint32_t field, const Write& write) {
    Tag(field, 2);
    const std::size_t begin = out_.size();
    write();
    // How long it is stands before it.
    const std::size_t end = out_.size();
    Raw(end - begin);
    const std::string length = out_.substr(end);
    out_.resize(end);
    out_.insert(begin, length);
  }

  std::string Take() { return std::move(out_); }

 private:
  void Tag(std::uint32_t field, std::uint32_t wire_type) { Raw(field << 3 | wire_type); }
  void Raw(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  void RawFixed(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i, value >>= 8) out_ += static_cast<char>(value & 0xff);
  }

  std::string out_;
};

}  // namespace reprise
