#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace reprise {

// The one of `known` that somebody who typed `word` is likely to have meant; nullopt if none is near.
std::optional<std::string> Nearest(std::string_view word, std::span<const std::string> known);

// ", did you mean X?" or nothing.
std::string DidYouMean(std::string_view word, std::span<const std::string> known);

}  // namespace reprise
