#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>

#include "reprise/audio.h"
#include "reprise/engine.h"
#include "reprise/result.h"
#include "wire/message.h"
#include "wire/multipart.h"

namespace reprise {

// The formats of speech; the first is the default.
struct SpeechFormat {
  std::string_view name, content_type;
};
inline constexpr std::array<SpeechFormat, 5> kSpeechFormats{
    {{"mp3", "audio/mpeg"}, {"opus", "audio/ogg"}, {"aac", "audio/aac"}, {"flac", "audio/flac"}, {"wav", "audio/wav"}}};

// Takes the recording from `file` and, if present, "model", "language" and "prompt" from `fields`.
TranscriptionRequest TranscriptionIn(Form form);

// The engine's Audio. kNotFound (Reason::kNotConfigured) if the server has none.
Result<Audio*> AudioOf(Engine& engine);
// These two reply once the provider has answered. They fail like AudioOf.
Result<Outcome> AwaitTranscription(Engine& engine, TranscriptionRequest speech,
                                   const std::function<Reply(std::string)>& reply);
Result<Outcome> AwaitSpeech(Engine& engine, SpeechRequest text, const SpeechFormat& format);

}  // namespace reprise
