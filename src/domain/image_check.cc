#include "domain/image_check.h"

#include <cstddef>

namespace reprise {
namespace {

constexpr std::int64_t kMostPixelsASide = 8000;  // what Anthropic takes; others shrink what is larger than far less
constexpr const char* kCut = "it is cut short";
constexpr const char* kDamaged = "it is damaged";

// Numbers in the bytes of an image; beyond the end they are 0, and it is known that they were asked for.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}
  std::size_t size() const { return bytes_.size(); }
  std::uint8_t At(std::size_t at) const { return at < bytes_.size() ? static_cast<std::uint8_t>(bytes_[at]) : 0; }
  std::int64_t Big(std::size_t at, std::size_t count) const {
    std::int64_t number = 0;
    for (std::size_t i = 0; i < count; ++i) number = number << 8 | At(at + i);
    return number;
  }
  std::int64_t Little(std::size_t at, std::size_t count) const {
    std::int64_t number = 0;
    for (std::size_t i = count; i-- > 0;) number = number << 8 | At(at + i);
    return number;
  }
  bool Has(std::size_t at, std::string_view text) const {
    return at <= bytes_.size() && bytes_.substr(at).starts_with(text);
  }
  bool HasLater(std::size_t at, std::string_view text) const { return bytes_.find(text, at) != std::string_view::npos; }

 private:
  const std::string_view bytes_;
};

// https://www.w3.org/TR/png-3/#5DataRep: chunks of length, type, data and checksum, from IHDR to IEND.
ImageFacts LookAtPng(const Bytes& png) {
  ImageFacts facts{.mime_type = "image/png", .width = png.Big(16, 4), .height = png.Big(20, 4)};
  if (png.size() >= 16 && !png.Has(12, "IHDR")) facts.problem = kDamaged;
  for (std::size_t at = 8; facts.problem.empty() && !png.Has(at + 4, "IEND");) {
    at += 12 + static_cast<std::size_t>(png.Big(at, 4));
    if (at + 12 > png.size()) facts.problem = kCut;
  }
  return facts;
}

// ITU T.81, B.1: markers, most with a length; the size is in the frame's header (SOF), and the image's data lies
// between the first scan (SOS) and the end (EOI).
ImageFacts LookAtJpeg(const Bytes& jpeg) {
  ImageFacts facts{.mime_type = "image/jpeg"};
  for (std::size_t at = 2;;) {
    if (at + 4 > jpeg.size()) {
      facts.problem = kCut;
      return facts;
    }
    const std::uint8_t marker = jpeg.At(at + 1);
    const auto length = static_cast<std::size_t>(jpeg.Big(at + 2, 2));
    if (marker == 0xff) {  // fills
      ++at;
      continue;
    }
    if (jpeg.At(at) != 0xff || length < 2) {
      facts.problem = kDamaged;
      return facts;
    }
    if (marker == 0xda) {
      if (!jpeg.HasLater(at, "\xff\xd9")) facts.problem = kCut;
      return facts;
    }
    if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
      facts.height = jpeg.Big(at + 5, 2);
      facts.width = jpeg.Big(at + 7, 2);
    }
    at += 2 + length;
  }
}

// https://www.w3.org/Graphics/GIF/spec-gif89a.txt: blocks, to the trailer.
ImageFacts LookAtGif(const Bytes& gif) {
  ImageFacts facts{.mime_type = "image/gif", .width = gif.Little(6, 2), .height = gif.Little(8, 2)};
  const auto colours = [&](std::size_t flags) {
    return (gif.At(flags) & 0x80) == 0 ? std::size_t{0} : std::size_t{3} << ((gif.At(flags) & 7) + 1);
  };
  const auto after_data = [&](std::size_t at) {
    while (gif.At(at) != 0) at += 1 + std::size_t{gif.At(at)};
    return at + 1;
  };
  for (std::size_t at = 13 + colours(10);;) {
    if (at >= gif.size()) {
      facts.problem = kCut;
      return facts;
    }
    switch (gif.At(at)) {
      case 0x3b:
        return facts;
      case 0x21:
        at = after_data(at + 2);
        break;
      case 0x2c:
        at = after_data(at + 10 + colours(at + 9) + 1);
        break;
      default:
        facts.problem = kDamaged;
        return facts;
    }
  }
}

// https://developers.google.com/speed/webp/docs/riff_container
ImageFacts LookAtWebp(const Bytes& webp) {
  ImageFacts facts{.mime_type = "image/webp"};
  if (webp.Has(12, "VP8X")) {
    facts.width = webp.Little(24, 3) + 1;
    facts.height = webp.Little(27, 3) + 1;
  } else if (webp.Has(12, "VP8 ")) {
    facts.width = webp.Little(26, 2) & 0x3fff;
    facts.height = webp.Little(28, 2) & 0x3fff;
  } else if (webp.Has(12, "VP8L")) {
    const std::int64_t bits = webp.Little(21, 4);
    facts.width = (bits & 0x3fff) + 1;
    facts.height = (bits >> 14 & 0x3fff) + 1;
  }
  if (static_cast<std::size_t>(webp.Little(4, 4)) + 8 > webp.size()) facts.problem = kCut;
  return facts;
}

ImageFacts LookByType(std::string_view content) {
  const Bytes bytes(content);
  if (bytes.Has(0, "\x89PNG\r\n\x1a\n")) return LookAtPng(bytes);
  if (bytes.Has(0, "\xff\xd8\xff")) return LookAtJpeg(bytes);
  if (bytes.Has(0, "GIF87a") || bytes.Has(0, "GIF89a")) return LookAtGif(bytes);
  if (bytes.Has(0, "RIFF") && bytes.Has(8, "WEBP")) return LookAtWebp(bytes);
  return {};
}

}  // namespace

ImageFacts LookAtImage(std::string_view content) {
  ImageFacts facts = LookByType(content);
  if (facts.mime_type.empty() || !facts.problem.empty()) return facts;
  if (facts.width == 0 || facts.height == 0) {
    facts.problem = kDamaged;
  } else if (facts.width > kMostPixelsASide || facts.height > kMostPixelsASide) {
    facts.problem = "it has " + std::to_string(facts.width) + " x " + std::to_string(facts.height) +
                    " pixels, and models take images of up to " + std::to_string(kMostPixelsASide) + " a side";
  }
  return facts;
}

}  // namespace reprise
