#include "mcp/last_words.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "base/utf8.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxWords = 600;  // characters
constexpr std::size_t kMaxErrorLines = 3;

bool StartsWithAny(std::string_view line, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view each) { return line.starts_with(each); });
}

bool HasAny(std::string_view line, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view each) { return line.find(each) != std::string_view::npos; });
}

// What runtimes and package managers put around the reason: stack frames, source lines, notes and versions.
bool IsSurrounding(std::string_view line) {
  return line.empty() || line.front() == ' ' || line.front() == '\t' ||
         line.find_first_not_of("^~ {}[](),;") == std::string_view::npos ||
         StartsWithAny(line, {"Node.js v", "Bun v", "Deno ", "Traceback (", "node:internal/", "note: ", "goroutine ",
                              "exit status ", "npm error A complete log", "npm ERR! A complete log",
                              "During handling of", "The above exception"}) ||
         line == "npm error" || line == "npm ERR!";
}

bool NamesError(std::string_view line) {
  return HasAny(line, {"Error: ", "Error [", "Exception: ", "Error)", " panicked at "}) ||
         StartsWithAny(line, {"error: ", "fatal: ", "panic: ", "Caused by: ", "npm error ", "npm ERR! ", "ERROR"}) ||
         line.ends_with("Error") || line.ends_with("Exception");
}

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

std::string LastWords(std::string_view errors) {
  const auto lines = LinesOf(errors);
  std::string words;
  const auto add = [&](std::string_view line) { words += (words.empty() ? "" : " | ") + std::string(line); };
  auto last = lines.size();  // the last line that is not only around the reason
  while (last > 0 && IsSurrounding(lines[last - 1])) --last;
  auto error = last;  // the first of the last lines in a row that name an error
  while (error > 0 && (IsSurrounding(lines[error - 1]) || !NamesError(lines[error - 1]))) --error;
  while (error > 1 && !IsSurrounding(lines[error - 2]) && NamesError(lines[error - 2])) --error;
  if (error > 0) {
    auto next = error - 1;
    for (std::size_t count = 0; next < lines.size() && count < kMaxErrorLines; ++next, ++count) {
      if (count > 0 && IsSurrounding(lines[next])) break;
      add(lines[next]);
    }
    if (next < last) add(lines[last - 1]);
  } else if (last > 0) {
    add(lines[last - 1]);
  } else {  // nothing but what is usually around it
    const auto some = std::find_if(lines.rbegin(), lines.rend(), [](std::string_view line) { return !line.empty(); });
    if (some != lines.rend()) add(some->substr(std::min(some->find_first_not_of(" \t"), some->size())));
  }
  words = ToValidUtf8(words);
  std::replace_if(
      words.begin(), words.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return std::string(Utf8Prefix(words, kMaxWords));
}

}  // namespace reprise
