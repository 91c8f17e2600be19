#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "reprise/result.h"

namespace reprise {

// Limit of a recording and of generated speech.
inline constexpr std::size_t kMaxAudioBytes = 25u << 20;

// Speech for transcription.
struct TranscriptionRequest {
  std::string content{};
  std::string filename{}, mime_type{};  // as the client sent them; empty: not stated
  std::string model{};                  // PROVIDER/MODEL; empty: the configured one
  std::string language{}, prompt{};     // hints; empty: none
};

// Text for speech synthesis.
struct SpeechRequest {
  std::string text{};
  std::string voice{}, model{};  // empty: the configured ones
  std::string format = "mp3";    // "mp3", "opus", "aac", "flac" or "wav"
};

// Turns speech into text and text into speech, through a provider. Stores neither. Thread-safe.
// Both calls return at once, so a transcription holds no thread. `done` is called exactly once, on the provider's
// thread (so it must not block) or within the call. Failures: kNotFound (reason "not_configured"; the message names the
// setting), kInvalidArgument (reason "unknown_model"), kUnavailable (reason "overloaded": too many calls are in
// flight), kCancelled when `stop` is requested, and those of ModelClient::Generate.
//
//   audio.Speak({.text = "Hello", .format = "wav"}, stop, [](reprise::Result<std::string> sound) {
//     if (sound) Play(*sound);
//   });
class Audio {
 public:
  virtual ~Audio() = default;
  // PROVIDER/MODEL; empty: not configured.
  virtual const std::string& transcription_model() const = 0;
  virtual const std::string& speech_model() const = 0;
  virtual const std::string& talk_model() const = 0;  // that answers what is spoken, as a turn of a chat

  using Done = std::function<void(Result<std::string>)>;
  // Returns the text.
  virtual void Transcribe(TranscriptionRequest request, std::stop_token stop, Done done) = 0;
  // Returns the bytes of an audio file, at most kMaxAudioBytes.
  virtual void Speak(SpeechRequest request, std::stop_token stop, Done done) = 0;
};

}  // namespace reprise
