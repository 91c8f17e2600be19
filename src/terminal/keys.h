#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace reprise {

// The terminal marks where a paste begins and ends, if it is asked to.
constexpr std::string_view kPasteBegin = "\x1b[200~", kPasteEnd = "\x1b[201~";

// A key, as a terminal writes it.
struct Key {
  enum class Kind {
    kEdits,   // `bytes` are for the editor: a character in UTF-8, a control character, or a sequence that it knows
    kEscape,  // the Esc key alone
    kNothing  // a key without a meaning here
  };
  Kind kind = Kind::kNothing;
  std::string bytes;
  std::size_t length = 0;  // of what the terminal wrote for it
};

// The first key of `bytes`, which must not be empty; within a paste each character and the mark of its end is one. What
// terminals write for keys that they can tell apart on request (kitty's protocol, modifyOtherKeys) becomes what they
// always wrote. nullopt: more of it has to come. `no_more`: nothing more comes, so that what is there counts as it is.
std::optional<Key> FirstKey(std::string_view bytes, bool in_paste, bool no_more);

}  // namespace reprise
