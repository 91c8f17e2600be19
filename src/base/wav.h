#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reprise {

// Sound as models speak and hear it: 16-bit samples of one channel, little-endian, this many in a second.
inline constexpr std::uint32_t kSpeechRate = 24'000;

// A WAV file of such sound.
std::string MakeWav(std::string_view samples);
// The samples of such a file; a view into it. nullopt: it is none, or has another form.
std::optional<std::string_view> SamplesIn(std::string_view wav);

}  // namespace reprise
