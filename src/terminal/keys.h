#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace reprise {

// On request the terminal marks the beginning and the end of a paste with these.
constexpr std::string_view kPasteBegin = "\x1b[200~", kPasteEnd = "\x1b[201~";

// A key, from the bytes of a terminal.
struct Key {
  enum class Kind {
    kEdits,   // `bytes` are for the editor: a character in UTF-8, a control character, or a sequence that it knows
    kEscape,  // the Esc key alone
    kNothing  // a key without a meaning here
  };
  Kind kind = Kind::kNothing;
  std::string bytes;
  std::size_t length = 0;  // of the terminal's bytes for it
};

// The first key of `bytes`, which must not be empty. Within a paste each character is a key, and so is its end mark.
// The codes by which terminals tell keys apart on request (kitty's protocol, modifyOtherKeys) become the traditional
// ones. nullopt if the key is incomplete; with `no_more`, because no more bytes follow, the present ones count.
std::optional<Key> FirstKey(std::string_view bytes, bool in_paste, bool no_more);

}  // namespace reprise
