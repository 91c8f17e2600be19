#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/provider_response.h"
#include "model/tool_call_assembler.h"

namespace reprise {

// Members of the provider's extras (see request_parts.h) that hold the thoughts of a chat completion in their places,
// beside the members of the message itself. As parts of the content (Mistral), where a text part gives its number of
// bytes of the message:
//
//   "parts": [{"type":"thinking","thinking":[{"type":"text","text":"..."}]}, {"type":"text","bytes":12}]
//
// or between tags before the content: "think": "..." for "<think>...</think>".
inline constexpr std::string_view kContentParts = "parts";
inline constexpr std::string_view kThinkTag = "think";

// The answer to a chat completion. The transcript of spoken answers counts as text. `reasoning_content`,
// `reasoning`, thinking parts, and text between <think> and </think> at the beginning count as thinking. Members that
// chat completions do not define are kept for the provider (see kept_members.h and request_parts.h). `url_citation`
// annotations (https://platform.openai.com/docs/guides/tools-web-search?api-mode=chat) are citations of the text.
class OpenAiResponse : public ProviderResponse {
 public:
  using ProviderResponse::ProviderResponse;

  bool complete() const override { return done_ || !finish_reason_.empty(); }
  Result<ModelResponse> Take() override;

 protected:
  void TakeObject(const EventJson& json, bool is_whole) override;
  void TakeDone() override { done_ = true; }

 private:
  struct Json;  // code that touches the JSON library; in the source file
  // The position of the text relative to the thinking tags.
  enum class Tag { kMayBegin, kInside, kBehind, kNone };

  void AddContent(std::string_view text);
  void AddTagged(std::string_view text);
  void EndContent();
  reprise::Json& members();
  std::string TakeExtras();

  std::shared_ptr<reprise::Json> members_;  // the message's members to keep; null: none
  std::shared_ptr<reprise::Json> parts_;    // see kContentParts; null: the content has only texts
  std::size_t text_bytes_ = 0;              // of the text since the last part that is not text
  ModelResponse response_;
  ToolCallAssembler tool_calls_;
  std::string finish_reason_;
  Digest content_;  // all received content, with its tags
  Tag tag_ = Tag::kMayBegin;
  std::string held_;         // the end of the received text, which may begin a tag
  std::string tagged_;       // thoughts between tags
  std::string closing_tag_;  // of the open tag
  bool done_ = false;
};

// The answer of the Responses API (https://platform.openai.com/docs/api-reference/responses-streaming). An item is
// either a text or a refusal. Summaries of the reasoning, or the reasoning itself where a server shows it, count as
// thinking. The answer's items are kept for the provider (see kept_members.h). Web searches, with their `sources`, and
// `url_citation` annotations of texts: https://platform.openai.com/docs/guides/tools-web-search
//
// Items are identified by `output_index`, unless two items have the same; else by their ids, else by their order, where
// the end of an item closes it.
class ResponsesResponse : public ProviderResponse {
 public:
  using ProviderResponse::ProviderResponse;

  bool complete() const override { return !status_.empty(); }
  Result<ModelResponse> Take() override;

 protected:
  void TakeObject(const EventJson& json, bool is_whole) override;
  bool is_over() const override { return complete(); }

 private:
  struct Json;  // code that touches the JSON library; in the source file

  // An item, by its index in the answer.
  struct Item {
    std::string id{}, call_id{};
    Digest text{};            // the streamed text
    Digest said{};            // see SaidIn; once it has ended
    std::string arguments{};  // the streamed ones of a call
    bool is_call = false;     // it began as a call
    bool is_refusal = false;
    std::shared_ptr<reprise::Json> whole{};  // null until it has ended, and for a call that was cut off
    std::int64_t characters = 0;             // of its text
    std::vector<Citation> citations{};       // in its text
  };
  void TellSearches(ModelResponse& response) const;
  std::map<std::int64_t, Item> items_;
  bool has_streamed_thinking_ = false;
  ToolCallAssembler tool_calls_;
  TokenUsage usage_;
  std::string model_;
  std::string status_;             // the response's final status
  std::string incomplete_reason_;  // "max_output_tokens", "content_filter"
};

}  // namespace reprise
