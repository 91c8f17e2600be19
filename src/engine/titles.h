#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "engine/busy_chats.h"
#include "engine/chats.h"
#include "engine/model_questions.h"
#include "engine/services.h"

namespace reprise {

// A title for a chat, made by its model from the first message and its answer. Thread-safe.
class Titles {
 public:
  Titles(EngineServices& services, BusyChats& busy, ModelQuestions& questions, Chats& chats)
      : services_(services), busy_(busy), questions_(questions), chats_(chats) {}

  // Called when an interaction is saved, before its work ends. Returns at once. Asks for a title if the settings want
  // it, the chat begins with this interaction, and it has the title made of the first message. Failures are only
  // logged.
  void Saved(const Interaction& interaction);

 private:
  struct Asked;

  void Ask(const std::shared_ptr<Asked>& asked);
  void Set(const std::shared_ptr<Asked>& asked);
  void End(const std::shared_ptr<Asked>& asked, const Result<void>& made);

  EngineServices& services_;
  BusyChats& busy_;
  ModelQuestions& questions_;
  Chats& chats_;
};

// The title in a model's answer: its first line that is not blank, without quotes and the marks of Markdown, at most 80
// characters. Empty if there is none, or if it has hidden characters.
std::string TitleInAnswer(std::string_view answer);

}  // namespace reprise
