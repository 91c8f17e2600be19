#include "base/wav.h"

#include <algorithm>
#include <cstddef>

namespace reprise {
namespace {

constexpr std::uint32_t kChannels = 1, kSampleBytes = 2, kPlainSamples = 1;
constexpr std::size_t kChunkHead = 8, kFormatBytes = 16;

void AppendLittleEndian(std::string& out, std::uint32_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i) & 0xff);
}

std::uint32_t LittleEndian(std::string_view from, std::size_t at, std::size_t bytes) {
  std::uint32_t number = 0;
  for (std::size_t i = bytes; i-- > 0;) number = number << 8 | static_cast<unsigned char>(from[at + i]);
  return number;
}

bool IsSpeech(std::string_view format) {
  return format.size() >= kFormatBytes && LittleEndian(format, 0, 2) == kPlainSamples &&
         LittleEndian(format, 2, 2) == kChannels && LittleEndian(format, 4, 4) == kSpeechRate &&
         LittleEndian(format, 14, 2) == 8 * kSampleBytes;
}

}  // namespace

std::string MakeWav(std::string_view samples) {
  const auto size = static_cast<std::uint32_t>(samples.size());
  std::string wav = "RIFF";
  wav.reserve(samples.size() + 64);
  AppendLittleEndian(wav, size + 36, 4);
  wav += "WAVEfmt ";
  AppendLittleEndian(wav, kFormatBytes, 4);
  AppendLittleEndian(wav, kPlainSamples, 2);
  AppendLittleEndian(wav, kChannels, 2);
  AppendLittleEndian(wav, kSpeechRate, 4);
  AppendLittleEndian(wav, kSpeechRate * kChannels * kSampleBytes, 4);
  AppendLittleEndian(wav, kChannels * kSampleBytes, 2);
  AppendLittleEndian(wav, 8 * kSampleBytes, 2);
  wav += "data";
  AppendLittleEndian(wav, size, 4);
  return wav.append(samples);
}

std::optional<std::string_view> SamplesIn(std::string_view wav) {
  if (!wav.starts_with("RIFF") || wav.size() < 12 || wav.substr(8, 4) != "WAVE") return std::nullopt;
  bool is_speech = false;
  wav.remove_prefix(12);
  while (wav.size() >= kChunkHead) {
    const std::string_view name = wav.substr(0, 4);
    // A recorder that was cut off has not written the true size.
    const std::size_t size = std::min<std::size_t>(LittleEndian(wav, 4, 4), wav.size() - kChunkHead);
    const std::string_view chunk = wav.substr(kChunkHead, size);
    if (name == "fmt ") is_speech = IsSpeech(chunk);
    if (name == "data") return is_speech ? std::optional(chunk.substr(0, size - size % kSampleBytes)) : std::nullopt;
    wav.remove_prefix(std::min(wav.size(), kChunkHead + size + size % 2));
  }
  return std::nullopt;
}

}  // namespace reprise
