#include "doors/audio.h"

#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "base/try.h"
#include "reprise/event_log.h"

namespace reprise {
namespace {

// A request to the provider and its result.
struct UnderWay {
  std::stop_source stop;
  const std::shared_ptr<EventLog> end = std::make_shared<EventLog>();  // closed once `result` is set
  std::optional<Result<std::string>> result;
};

// Says whose fault a failure is, because here the provider's failure is a reply and no event, and the client must know
// what to do next.
Error AsAnswer(Error error) {
  if (error.code == ErrorCode::kProvider) {
    error.code = error.Is(Reason::kProviderBadRequest) ? ErrorCode::kInvalidArgument : ErrorCode::kUnavailable;
  }
  return error;
}

// Waits without a thread, and only as long as the client does.
Outcome Await(const std::function<void(std::stop_token, Audio::Done)>& begin,
              const std::function<Reply(std::string)>& reply) {
  const auto under_way = std::make_shared<UnderWay>();
  begin(under_way->stop.get_token(), [under_way](Result<std::string> result) {
    under_way->result = std::move(result);
    under_way->end->Close();
  });
  const std::shared_ptr<void> hold(nullptr, [under_way](void*) { under_way->stop.request_stop(); });
  return DeferredReply{.log = under_way->end, .hold = hold, .finish = [under_way, reply]() -> Result<Reply> {
                         auto result = *std::exchange(under_way->result, std::nullopt);
                         if (!result) return Fail(AsAnswer(std::move(result.error())));
                         return reply(*std::move(result));
                       }};
}

}  // namespace

Result<Audio*> AudioOf(Engine& engine) {
  if (Audio* const audio = engine.audio()) return audio;
  return Fail(Reason::kNotConfigured, "this server neither listens nor speaks");
}

TranscriptionRequest TranscriptionIn(Form form) {
  return {.content = std::move(form.file.content),
          .filename = std::move(form.file.filename),
          .mime_type = std::move(form.file.mime_type),
          .model = std::move(form.fields["model"]),
          .language = std::move(form.fields["language"]),
          .prompt = std::move(form.fields["prompt"])};
}

Result<Outcome> AwaitTranscription(Engine& engine, TranscriptionRequest speech,
                                   const std::function<Reply(std::string)>& reply) {
  Audio* const audio = TRY(AudioOf(engine));
  if (speech.content.empty()) {
    return Fail(Reason::kInvalidBody, "the file is empty");
  }
  return Await([&](std::stop_token stop,
                   Audio::Done done) { audio->Transcribe(std::move(speech), std::move(stop), std::move(done)); },
               reply);
}

Result<Outcome> AwaitSpeech(Engine& engine, SpeechRequest text, const SpeechFormat& format) {
  Audio* const audio = TRY(AudioOf(engine));
  text.format = format.name;
  return Await(
      [&](std::stop_token stop, Audio::Done done) { audio->Speak(std::move(text), std::move(stop), std::move(done)); },
      [type = format.content_type](std::string bytes) {
        return Reply{.body = std::move(bytes), .content_type = std::string(type)};
      });
}

}  // namespace reprise
