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

// The formats of what is spoken; the first is the usual one.
struct SpeechFormat {
  std::string_view name, content_type;
};
inline constexpr std::array<SpeechFormat, 5> kSpeechFormats{
    {{"mp3", "audio/mpeg"}, {"opus", "audio/ogg"}, {"aac", "audio/aac"}, {"flac", "audio/flac"}, {"wav", "audio/wav"}}};

// A form with a recording in `file`, and in `fields` perhaps "model", "language" and "prompt".
TranscriptionRequest TranscriptionIn(Form form);

// kNotFound (reason "not_configured") if there is none.
Result<Audio*> AudioOf(Engine& engine);
// Both reply when the provider has answered. Likewise.
Result<Outcome> AwaitTranscription(Engine& engine, TranscriptionRequest speech,
                                   const std::function<Reply(std::string)>& reply);
Result<Outcome> AwaitSpeech(Engine& engine, SpeechRequest text, const SpeechFormat& format);

}  // namespace reprise
