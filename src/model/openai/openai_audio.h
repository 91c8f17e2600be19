#pragma once

#include <cstddef>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "model/openai/openai_client.h"
#include "reprise/audio.h"
#include "reprise/transport.h"

namespace reprise {

struct OpenAiAudioOptions {
  std::map<std::string, OpenAiOptions, std::less<>> providers = {};  // by name
  std::string transcription_model = {}, speech_model = {};           // PROVIDER/MODEL; empty: unavailable
  std::string talk_model = {};                                       // likewise; see Audio::talk_model
  std::string voice = {};                                            // empty: "alloy"
};

// Audio over OpenAI's /audio/transcriptions and /audio/speech, which many local servers offer too.
class OpenAiAudio final : public Audio {
 public:
  // `transport` must outlive this.
  OpenAiAudio(Transport& transport, OpenAiAudioOptions options);
  ~OpenAiAudio() override;  // stops requests under way and waits for them

  const std::string& transcription_model() const override { return options_.transcription_model; }
  const std::string& speech_model() const override { return options_.speech_model; }
  const std::string& talk_model() const override { return options_.talk_model; }
  void Transcribe(TranscriptionRequest request, std::stop_token stop, Done done) override;
  void Speak(SpeechRequest request, std::stop_token stop, Done done) override;

 private:
  struct Target {
    const OpenAiOptions* provider;
    std::string model;  // the provider's own name
  };
  // From the requested model, else from the model configured under `setting`.
  Result<Target> Find(const std::string& asked, const std::string& configured, std::string_view setting) const;
  // Reserves one of the concurrent requests.
  enum class Wanted { kText, kSound };
  Result<void> Begin();
  void End();
  void Send(const Target& target, std::string_view path, std::string content_type, std::string body, Wanted wanted,
            std::stop_token stop, Done done);

  Transport& transport_;
  const OpenAiAudioOptions options_;
  std::stop_source stop_;
  Mutex mutex_;
  Condition ended_;
  std::size_t under_way_ GUARDED_BY(mutex_) = 0;
};

}  // namespace reprise
