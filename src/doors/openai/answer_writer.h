#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "domain/transcript/transcript.h"
#include "doors/openai/request.h"
#include "doors/translator.h"
#include "reprise/event.h"
#include "reprise/ids.h"
#include "reprise/message.h"

namespace reprise::openai {
// The facts about an answer that are known when it begins.
struct AnswerHead {
  std::string name;          // "CHAT_int_001", or random; ids put a prefix before it
  std::int64_t created = 0;  // seconds since 1970
};

struct AnswerFailure {
  std::string code, message;
  bool retryable = false;  // a repeated request may succeed, and this one had no effect
};

// How an answer ended.
struct AnswerEnd {
  InteractionStatus status = InteractionStatus::kCompleted;
  TokenUsage usage{};
  std::string truncated{};  // a value of event::Answer::reason
  std::optional<AnswerFailure> failure{};
  std::optional<std::int64_t> at{};  // seconds since 1970; nullopt: now
};

// Writes an answer in the form of one of OpenAI's interfaces, piece by piece: as a stream of server-sent events, or as
// one object, which End writes. Text is the inside of a JSON string, because both sides have it in this form.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  virtual void Begin(const AnswerHead& head, std::string& out) = 0;
  virtual void Thinking(std::string_view escaped, std::string& out) = 0;
  virtual void Text(std::string_view escaped, std::string& out) = 0;
  // Text with which the model declines to answer.
  virtual void Refusal(std::string_view escaped, std::string& out) { Text(escaped, out); }
  // The citations of `text`, which has just been written.
  virtual void Cite(const std::string& text, const std::vector<Citation>& citations, std::string& out) = 0;
  // A call by a model alone, for its client to run.
  virtual void Call(const ToolCall& call, std::string& out) = 0;
  virtual void End(const AnswerEnd& end, std::string& out) = 0;
};

// chat.completion.chunk objects, or a chat.completion.
std::unique_ptr<AnswerWriter> MakeChatCompletionWriter(const OpenAiRequest& request);
// Events from response.created to response.completed, or a response.
std::unique_ptr<AnswerWriter> MakeResponseWriter(const OpenAiRequest& request);

// The inside of a JSON string that holds `text`.
std::string Escaped(std::string_view text);

// The number of characters that the inside of a JSON string has.
std::int64_t EscapedCharacters(std::string_view escaped);

// The members of a url_citation. `begin`: where the cited text begins, in characters.
void WriteCitation(JsonObjectWriter& out, const Citation& citation, std::int64_t begin);

// {"message":...,"type":...,"param":null,"code":...,"retryable":...}
std::string OpenAiErrorObject(const AnswerFailure& failure, std::string_view type = "server_error");

// Shows a run of an agent as the answer of a model: with its text, its thinking, and a line of thinking for each tool
// call. Questions to people appear as text, with a link to where they can answer.
class AgentTranslator final : public Translator {
 public:
  struct Options {
    std::string page{};  // the address of the page; empty: none
    // Times of the run; nullopt: now.
    std::optional<Timestamp> created_at{}, completed_at{};
    bool is_repeated = false;  // an earlier request began the run, and this one gets its result
    // Called when the run begins.
    std::function<void(const InteractionRef&)> began{};
    // Called when the run has ended, with the SpokenDigest of the model's answer.
    std::function<void(const InteractionRef&, const std::string& spoken_digest)> ended{};
  };
  AgentTranslator(std::unique_ptr<AnswerWriter> writer, Options options)
      : writer_(std::move(writer)), options_(std::move(options)) {}

  void End(bool complete, std::string& out) override;

  // Used in place of End for a run that may still continue.
  void EndAs(InteractionStatus status, std::string& out);

  // How the answer ended. Set by End.
  const AnswerEnd& end() const { return end_; }

 private:
  void TakePiece(std::uint64_t seq, Piece piece, std::string_view escaped, std::string& out) override;
  void TakeEvent(const AgentEvent& event, std::string& out) override;
  void TakeAnswer(const std::string& content, std::string& out);
  void TakeText(std::string_view escaped, std::string& out);
  void TakeThinking(std::string_view escaped, std::string& out);
  // Adds words of ours as a paragraph.
  void Note(std::string_view text, std::string& out);
  void BeginAnswer(std::string& out);
  std::string Link() const;
  void Finish(std::string& out);

  const std::unique_ptr<AnswerWriter> writer_;
  const Options options_;
  RunState run_;
  AnswerEnd end_{};
  // The model's answer without our notes. Once it ends only its digest is kept, because many runs may end together.
  std::string spoken_{}, spoken_digest_{};
  bool has_text_ = false;     // text was shown before
  bool needs_break_ = false;  // the next text begins a new paragraph
  bool said_ = false;         // this round's text was shown as deltas
  bool thought_ = false;      // the same for its thinking
};

}  // namespace reprise::openai
