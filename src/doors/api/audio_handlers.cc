#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/try.h"
#include "doors/api/requests.h"
#include "doors/api/routes.h"
#include "doors/audio.h"
#include "wire/error_response.h"
#include "wire/multipart.h"

namespace reprise {
namespace {

Result<Outcome> Transcribe(Engine& engine, const Request& request) {
  TRY(AudioOf(engine));
  auto speech = TranscriptionIn(TRY(ReadForm(request, {"model", "language", "prompt"})));
  return AwaitTranscription(engine, std::move(speech), [](const std::string& text) {
    return JsonReply({{"text", text}});
  });
}

Result<Outcome> Speak(Engine& engine, const Request& request) {
  TRY(AudioOf(engine));
  auto body = TRY(ParseSpeechBody(request.body));
  return AwaitSpeech(engine, std::move(body.request), *body.format);
}

}  // namespace

void AddAudioRoutes(Router& router, const HandlerContext& context) {
  const auto with = HandlersOf(context.engine);
  router.Add("POST", "/audio/transcriptions", with(Transcribe), Lane::kWork, BodyKind::kAudio);
  router.Add("POST", "/audio/speech", with(Speak));
}

}  // namespace reprise
