#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "reprise/result.h"

namespace reprise {

// What a recording may have, and what is spoken.
inline constexpr std::size_t kMaxAudioBytes = 25u << 20;

// Speech that is to become text.
struct TranscriptionRequest {
  std::string content{};
  std::string filename{}, mime_type{};  // as they were sent; empty: not said
  std::string model{};                  // PROVIDER/MODEL; empty: the configured one
  std::string language{}, prompt{};     // hints; empty: none
};

// Text that is to be spoken.
struct SpeechRequest {
  std::string text{};
  std::string voice{}, model{};  // empty: the configured ones
  std::string format = "mp3";    // "mp3", "opus", "aac", "flac" or "wav"
};

// Turns speech into text and text into speech, through a provider that can. It keeps nothing of either. Thread-safe.
//
// Both return at once: a recording that is listened to holds no thread. `done` is called exactly once, on the
// provider's thread (so it must not block) or within the call. Failures: kNotFound (reason "not_configured"; the
// message names the setting), kInvalidArgument (reason "unknown_model"), kUnavailable (reason "overloaded": so many are
// under way already), kCancelled when `stop` is requested, and those of ModelClient::Generate.
class Audio {
 public:
  virtual ~Audio() = default;
  // PROVIDER/MODEL; empty: it is not configured.
  virtual const std::string& transcription_model() const = 0;
  virtual const std::string& speech_model() const = 0;

  using Done = std::function<void(Result<std::string>)>;
  // Gives the text.
  virtual void Transcribe(TranscriptionRequest request, std::stop_token stop, Done done) = 0;
  // Gives the bytes of an audio file, at most kMaxAudioBytes.
  virtual void Speak(SpeechRequest request, std::stop_token stop, Done done) = 0;
};

}  // namespace reprise
