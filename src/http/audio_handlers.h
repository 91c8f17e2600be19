#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "http/router.h"
#include "http/routes.h"
#include "reprise/audio.h"

namespace reprise {

void AddAudioRoutes(Router& router, const HandlerContext& context);

// The same for routes of another form. `audio` may be null: kNotFound (reason "not_configured"). `content_type` is a
// constant.
Result<Outcome> AwaitTranscription(Audio* audio, TranscriptionRequest speech,
                                   const std::function<Reply(std::string)>& reply);
Result<Outcome> AwaitSpeech(Audio* audio, SpeechRequest text, std::string_view content_type);

}  // namespace reprise
