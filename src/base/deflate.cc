#include "base/deflate.h"

#include <zlib.h>

#include <algorithm>

namespace reprise {
namespace {

void SetInput(z_stream& stream, std::string_view bytes) {
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
}

void SetOutput(z_stream& stream, std::string& out, std::size_t from) {
  stream.next_out = reinterpret_cast<Bytef*>(out.data() + from);
  stream.avail_out = static_cast<uInt>(out.size() - from);
}

}  // namespace

std::string Deflate(std::string_view text) {
  z_stream stream{};
  constexpr int kRaw = -MAX_WBITS, kMemory = 8;
  if (::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kRaw, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) return {};
  std::string packed(::deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  SetInput(stream, text);
  SetOutput(stream, packed, 0);
  const bool is_whole = ::deflate(&stream, Z_FINISH) == Z_STREAM_END;
  packed.resize(is_whole ? packed.size() - stream.avail_out : 0);
  ::deflateEnd(&stream);
  return packed;
}

std::optional<std::string> Inflate(std::string_view packed, Packing packing, std::size_t limit) {
  z_stream stream{};
  constexpr int kRaw = -MAX_WBITS, kGzipOnly = 16 + MAX_WBITS;
  if (::inflateInit2(&stream, packing == Packing::kGzip ? kGzipOnly : kRaw) != Z_OK) return std::nullopt;
  std::string text;
  SetInput(stream, packed);
  int status = Z_OK;
  while (status == Z_OK && text.size() <= limit) {
    constexpr std::size_t kStep = std::size_t{16} << 10;
    const std::size_t before = text.size();
    text.resize(before + std::max(kStep, before));
    SetOutput(stream, text, before);
    status = ::inflate(&stream, Z_NO_FLUSH);
    text.resize(text.size() - stream.avail_out);
  }
  const bool is_whole = status == Z_STREAM_END && stream.avail_in == 0 && text.size() <= limit;
  ::inflateEnd(&stream);
  if (!is_whole) return std::nullopt;
  return text;
}

}  // namespace reprise
