#include "tools/files/ignore_rules.h"

#include <fcntl.h>
#include <re2/re2.h>
#include <re2/set.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <utility>

#include "base/path.h"
#include "base/private_file.h"
#include "base/system.h"

namespace reprise {

namespace {

constexpr std::size_t kMostPatterns = 2'000;  // of one file
constexpr std::size_t kLongestPattern = 4'096;

RE2::Options BytesAsTheyAre() {
  RE2::Options options(RE2::Latin1);
  options.set_dot_nl(true);
  options.set_log_errors(false);
  return options;
}

void AppendLiteral(std::string& regex, char c) { regex += RE2::QuoteMeta(re2::StringPiece(&c, 1)); }

// Appends the bracket expression at `at` and returns its end, npos if it has none. It never matches a slash.
std::size_t AppendBracket(std::string& regex, std::string_view pattern, std::size_t at) {
  std::size_t next = at + 1;
  const bool negated = next < pattern.size() && (pattern[next] == '!' || pattern[next] == '^');
  if (negated) ++next;
  std::string set;
  const auto append = [&set](char c) {
    if (c == '\\' || c == ']' || c == '[' || c == '^' || c == '-') set += '\\';
    set += c;
  };
  for (bool first = true;; first = false) {
    if (next >= pattern.size()) return std::string_view::npos;
    char c = pattern[next];
    if (c == ']' && !first) break;
    if (c == '[' && pattern.substr(next).starts_with("[:")) {
      const std::size_t end = pattern.find(":]", next + 2);
      if (end == std::string_view::npos) return end;
      set += pattern.substr(next, end + 2 - next);
      next = end + 2;
      continue;
    }
    if (c == '\\') {
      if (++next >= pattern.size()) return std::string_view::npos;
      c = pattern[next];
    }
    ++next;
    const bool is_range = next + 1 < pattern.size() && pattern[next] == '-' && pattern[next + 1] != ']';
    if (!is_range) {
      append(c);
      continue;
    }
    char last = pattern[next + 1];
    next += 2;
    if (last == '\\') {
      if (next >= pattern.size()) return std::string_view::npos;
      last = pattern[next++];
    }
    if (static_cast<unsigned char>(last) < static_cast<unsigned char>(c)) continue;  // an empty range
    append(c);
    set += '-';
    append(last);
  }
  if (set.empty()) {
    regex += negated ? "[^/]" : "[^\\x00-\\xff]";
  } else if (negated) {
    regex += "[^/" + set + "]";
  } else {
    regex += "[" + set + "]";
  }
  return next + 1;
}

}  // namespace

std::string PatternToRegex(std::string_view pattern) {
  const bool anchored = pattern.find('/') != std::string_view::npos;
  if (pattern.starts_with('/')) pattern.remove_prefix(1);
  if (pattern.empty()) return {};
  std::string regex = anchored ? "" : "(?:.*/)?";
  for (std::size_t at = 0; at < pattern.size();) {
    const char c = pattern[at];
    if (c == '*') {
      const std::size_t end = std::min(pattern.find_first_not_of('*', at), pattern.size());
      const bool begins = at == 0 || pattern[at - 1] == '/';
      const bool two = end - at >= 2;
      if (two && begins && end < pattern.size() && pattern[end] == '/') {
        regex += "(?:.*/)?";
        at = end + 1;
      } else if (two && begins && end == pattern.size() && anchored) {
        regex += ".*";
        at = end;
      } else {
        regex += "[^/]*";
        at = end;
      }
    } else if (c == '?') {
      regex += "[^/]";
      ++at;
    } else if (c == '[') {
      at = AppendBracket(regex, pattern, at);
      if (at == std::string_view::npos) return {};
    } else if (c == '\\') {
      if (at + 1 == pattern.size()) return {};
      AppendLiteral(regex, pattern[at + 1]);
      at += 2;
    } else {
      AppendLiteral(regex, c);
      ++at;
    }
  }
  return regex;
}

struct IgnoreRules::Patterns {
  // One set with the patterns for any entry, one with all patterns; directories are looked up in the second.
  RE2::Set set{BytesAsTheyAre(), RE2::ANCHOR_BOTH};
  struct Rule {
    bool negated, only_directories;
  };
  std::vector<Rule> rules;
  bool usable = false;
};

IgnoreRules::~IgnoreRules() = default;

std::shared_ptr<const IgnoreRules> IgnoreRules::Parse(std::string_view text, std::string base,
                                                      std::shared_ptr<const IgnoreRules> above) {
  auto patterns = std::make_unique<Patterns>();
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  while (!text.empty() && patterns->rules.size() < kMostPatterns) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with('#') || line.size() > kLongestPattern) continue;
    // Trailing spaces do not count, unless a backslash keeps the first of them.
    std::size_t size = line.size();
    while (size > 0 && line[size - 1] == ' ') {
      std::size_t slashes = 0;
      while (slashes < size - 1 && line[size - 2 - slashes] == '\\') ++slashes;
      if (slashes % 2 == 1) break;
      --size;
    }
    line = line.substr(0, size);
    const bool negated = line.starts_with('!');
    if (negated) line.remove_prefix(1);
    const bool only_directories = line.ends_with('/');
    if (only_directories) line.remove_suffix(1);
    if (line.empty()) continue;
    const std::string regex = PatternToRegex(line);
    if (regex.empty() || patterns->set.Add(regex, nullptr) < 0) continue;
    patterns->rules.push_back({negated, only_directories});
  }
  if (patterns->rules.empty()) return above;
  patterns->usable = patterns->set.Compile();
  std::shared_ptr<IgnoreRules> rules(new IgnoreRules);
  rules->base_ = std::move(base);
  rules->above_ = std::move(above);
  rules->patterns_ = std::move(patterns);
  return rules;
}

bool IgnoreRules::Names(std::string_view path, bool is_directory) const {
  for (const IgnoreRules* rules = this; rules != nullptr; rules = rules->above_.get()) {
    if (!rules->patterns_->usable || !path.starts_with(rules->base_)) continue;
    const std::string_view below = path.substr(rules->base_.size());
    std::vector<int> matches;
    if (!rules->patterns_->set.Match({below.data(), below.size()}, &matches)) continue;
    int last = -1;
    for (const int match : matches) {
      const auto& rule = rules->patterns_->rules[static_cast<std::size_t>(match)];
      if (match > last && (is_directory || !rule.only_directories)) last = match;
    }
    if (last >= 0) return !rules->patterns_->rules[static_cast<std::size_t>(last)].negated;
  }
  return false;
}

namespace {

constexpr std::size_t kMaxRules = 1 << 20;  // bytes of a .gitignore

}  // namespace

IgnoreFiles::IgnoreFiles(const Workspace& workspace) : workspace_(workspace) {
  namespace fs = std::filesystem;
  for (fs::path top = workspace_.directory();; top = top.parent_path()) {
    if (IsThere(top / ".git")) {
      const std::string relative = fs::path(workspace_.directory()).lexically_relative(top).string();
      if (relative != ".") prefix_ = relative + "/";
      break;
    }
    if (top == top.parent_path()) break;
  }
}

IgnoreFiles::Rules IgnoreFiles::Above() const {
  std::string top = workspace_.directory();
  for (std::size_t levels = static_cast<std::size_t>(std::ranges::count(prefix_, '/')); levels > 0; --levels) {
    top = std::filesystem::path(top).parent_path().string();
  }
  Rules rules;
  if (const auto exclude = ReadSmallFile(top + "/.git/info/exclude", kMaxRules)) {
    rules = IgnoreRules::Parse(*exclude, "", nullptr);
  }
  std::string base;
  for (std::size_t at = 0; at < prefix_.size();) {
    if (const auto text = ReadSmallFile(top + "/" + base + std::string(kIgnoreFile), kMaxRules)) {
      rules = IgnoreRules::Parse(*text, base, std::move(rules));
    }
    const std::size_t end = prefix_.find('/', at) + 1;
    base = prefix_.substr(0, end);
    at = end;
  }
  return rules;
}

IgnoreFiles::Rules IgnoreFiles::In(int fd, const std::string& directory, Rules above) const {
  const UniqueFd file(::openat(fd, std::string(kIgnoreFile).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return above;
  const auto text = ReadAll(file.get(), kMaxRules);
  if (!text) return above;
  return IgnoreRules::Parse(*text, prefix_ + (directory.empty() ? "" : directory + "/"), std::move(above));
}

bool IgnoreFiles::Name(const Rules& rules, const std::string& path, bool is_directory) const {
  return rules && rules->Names(prefix_ + path, is_directory);
}

}  // namespace reprise
