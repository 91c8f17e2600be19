#include "model/web_search.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

#include "base/terminal_text.h"
#include "base/text.h"

namespace reprise {
namespace {

constexpr std::size_t kMostResults = 20;  // of one search
constexpr std::size_t kLongestUrl = 1000;
constexpr std::size_t kLongestTitle = 200, kLongestQuery = 500, kLongestError = 64;  // characters
constexpr std::size_t kBytesPerCharacter = 4;

std::string OnOneLine(std::string_view text, std::size_t longest) {
  const std::string begin = ToValidUtf8(text.substr(0, longest * kBytesPerCharacter));
  return std::string(Utf8Prefix(VisibleOnOneLine(Utf8Prefix(begin, longest)), longest));
}

bool IsHarmless(std::string_view url) {
  if (url.size() > kLongestUrl || !IsUtf8(url) || HasHidden(url)) return false;
  if (url.find_first_of(" \t\r\n\"<>\\^`{|}") != std::string_view::npos) return false;
  const std::string begin = LowerCase(url.substr(0, std::string_view("https://").size()));
  if (!begin.starts_with("http://") && begin != "https://") return false;
  const std::string_view rest = url.substr(url.find("//") + 2);
  const std::string_view server = rest.substr(0, rest.find_first_of("/?#"));
  return !server.empty() && server.find('@') == std::string_view::npos;
}

std::optional<WebSource> SourceOf(std::string_view url, std::string_view title) {
  if (!IsHarmless(url)) return std::nullopt;
  return WebSource{std::string(url), OnOneLine(title, kLongestTitle)};
}

}  // namespace

event::WebSearch SearchFor(std::string_view query) {
  event::WebSearch search;
  search.query = OnOneLine(query, kLongestQuery);
  return search;
}

void AddResult(event::WebSearch& search, std::string_view url, std::string_view title) {
  auto source = SourceOf(url, title);
  if (source && std::find(search.results.begin(), search.results.end(), *source) != search.results.end()) return;
  if (!source || search.results.size() == kMostResults) {
    ++search.omitted;
  } else {
    search.results.push_back(*std::move(source));
  }
}

void SetFailure(event::WebSearch& search, std::string_view error) {
  search.error = OnOneLine(error.empty() ? "failed" : error, kLongestError);
}

void AddCitation(std::vector<Citation>& citations, std::string_view url, std::string_view title, std::int64_t start,
                 std::int64_t end) {
  auto source = citations.size() < kMostCitations ? SourceOf(url, title) : std::nullopt;
  if (!source) return;
  start = std::max<std::int64_t>(start, 0);
  Citation citation{*std::move(source), start, std::max(start, end)};
  if (std::find(citations.begin(), citations.end(), citation) == citations.end()) {
    citations.push_back(std::move(citation));
  }
}

}  // namespace reprise
