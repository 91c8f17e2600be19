#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// What the .gitignore of one directory says, and those of the directories above it (gitignore(5)). Immutable,
// thread-safe.
class IgnoreRules {
 public:
  ~IgnoreRules();

  // `base`: the directory, relative to where all paths begin, with a slash behind it; empty: that itself. Lines that
  // are no patterns say nothing. `above` may be null.
  static std::shared_ptr<const IgnoreRules> Parse(std::string_view text, std::string base,
                                                  std::shared_ptr<const IgnoreRules> above);

  // Whether a path below the base is named. What lies in a directory that is named is not asked about: it is ignored.
  bool Names(std::string_view path, bool is_directory) const;

 private:
  IgnoreRules() = default;
  struct Patterns;

  std::string base_;
  std::shared_ptr<const IgnoreRules> above_;
  std::unique_ptr<Patterns> patterns_;
};

// The pattern as a regular expression for the whole path, relative to the base; empty if it can match nothing.
// REQUIRES: without "!" and the slash behind it.
std::string PatternToRegex(std::string_view pattern);

}  // namespace reprise
