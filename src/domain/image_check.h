#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace reprise {

// What an image says of itself.
struct ImageFacts {
  std::string mime_type{};  // empty: it is no image of a type that models take
  std::int64_t width = 0, height = 0;
  // Why no model takes it, for people and models: "it is cut short"; empty: nothing that can be seen without decoding.
  std::string problem{};
};

// Goes through the parts of a PNG, JPEG, GIF or WebP, and decodes nothing: models refuse what is cut, and a request
// with it fails as a whole, as would all that follow in the chat.
ImageFacts LookAtImage(std::string_view content);

}  // namespace reprise
