#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "reprise/event.h"

// What providers tell of their web searches, made harmless and limited in size: it is made of the words of web pages.
// An address that is not http or https, is too long, or hides where it leads is left out; a title becomes one line with
// all hidden characters spelled out.
namespace reprise {

inline constexpr std::size_t kMostSearches = 32;  // of one response
inline constexpr std::size_t kMostCitations = 128;

// A search without results.
event::WebSearch SearchFor(std::string_view query);
// Adds a result. One that is left out, or beyond the limit, is counted as omitted; one that is there already is not.
void AddResult(event::WebSearch& search, std::string_view url, std::string_view title);
// The provider's word for why a search failed.
void SetFailure(event::WebSearch& search, std::string_view error);

// Adds a citation for the characters [start, end) of the text.
void AddCitation(std::vector<Citation>& citations, std::string_view url, std::string_view title, std::int64_t start,
                 std::int64_t end);

}  // namespace reprise
