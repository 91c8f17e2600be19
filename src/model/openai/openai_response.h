#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "model/provider_response.h"
#include "model/tool_call_assembler.h"

namespace reprise {

// The members of what is kept for the provider (see provider_extras.h), beside those of the message itself, in which an
// answer to a chat completion has its thoughts where they stood in its content. As parts of it (Mistral), of which a
// text says how many bytes of the message stand there:
//
//   "parts": [{"type":"thinking","thinking":[{"type":"text","text":"..."}]}, {"type":"text","bytes":12}]
//
// or before it, between tags: "think": "..." for "<think>...</think>".
inline constexpr std::string_view kContentParts = "parts";
inline constexpr std::string_view kThinkTag = "think";

// The answer to a chat completion. `refusal` counts as text, and so does what an answer in sound says in words;
// `reasoning_content`, `reasoning`, parts of thinking, and what stands between <think> and </think> at the beginning of
// the text count as thinking. Members that chat completions do not define are kept for the provider (see kept_members.h
// and provider_extras.h).
class OpenAiResponse : public ProviderResponse {
 public:
  using ProviderResponse::ProviderResponse;

  bool complete() const override { return done_ || !finish_reason_.empty(); }
  Result<ModelResponse> Take() override;

 protected:
  void TakeObject(const EventJson& json, bool is_whole) override;
  void TakeDone() override { done_ = true; }

 private:
  struct Json;  // what touches the JSON library; in the source file
  // Where the text is, as far as tags go.
  enum class Tag { kMayBegin, kInside, kBehind, kNone };

  void AddContent(std::string_view text);
  void AddTagged(std::string_view text);
  void EndContent();
  reprise::Json& members();
  std::string TakeExtras();
  Result<void> CheckCalls(bool ended_by_itself, std::string_view truncated) const;

  std::shared_ptr<reprise::Json> members_;  // of the message, that are kept; null: none
  std::shared_ptr<reprise::Json> parts_;    // see kContentParts; null: its content has none but texts
  std::size_t text_bytes_ = 0;              // of the text, behind the last part that is no text
  ModelResponse response_;
  ToolCallAssembler tool_calls_;
  std::string finish_reason_;
  Digest content_;  // that has come, with its tags
  Tag tag_ = Tag::kMayBegin;
  std::string held_;         // the end of what has come, where it may be the beginning of a tag
  std::string tagged_;       // thoughts between tags
  std::string closing_tag_;  // of the tag that it is inside of
  bool done_ = false;
};

}  // namespace reprise
