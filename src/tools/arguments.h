#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// The arguments of one call, read by name. What is missing or of another type reads as nullopt: the schema has already
// said what is wrong with it.
class Arguments {
 public:
  // REQUIRES: `text` has passed the tool's schema. Anything else reads as an empty object.
  explicit Arguments(std::string_view text);
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  std::optional<std::string> String(std::string_view name) const;
  // 5.0 counts as 5, as in the schema.
  // Of an array, the strings that it has.
  std::vector<std::string> Strings(std::string_view name) const;
  std::optional<std::int64_t> Integer(std::string_view name) const;

 private:
  struct Object;
  std::unique_ptr<Object> object_;
};

}  // namespace reprise
