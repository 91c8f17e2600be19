#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reprise {

// Finds out which request a message answers that cannot be parsed: it is too large to be kept, nested too deep, or cut
// off. Reads it in pieces and keeps nothing of it but the id, wherever among the members that stands.
class AnswerScanner {
 public:
  void Feed(std::string_view bytes);
  // Of what was fed until now; nullopt: it is no answer, or does not say to what.
  std::optional<std::int64_t> request() const { return is_answer_ ? id_ : std::nullopt; }

 private:
  void EndMember();

  std::size_t depth_ = 0;
  bool in_string_ = false, is_escaped_ = false;
  bool is_answer_ = true;
  std::string name_, word_;  // of the outermost object, as far as they can matter
  std::optional<std::int64_t> id_;
};

}  // namespace reprise
