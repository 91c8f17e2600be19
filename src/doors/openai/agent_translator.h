#pragma once

#include <functional>
#include <memory>
#include <string>

#include "doors/openai/answer_writer.h"
#include "doors/translator.h"
#include "reprise/ids.h"
#include "transcript/transcript.h"

namespace reprise::openai {

// Shows a run of an agent as the answer of a model: its text, its thinking, a line of thinking for each tool call, and
// as text what it asks people, with a link to where they can answer.
class AgentTranslator final : public Translator {
 public:
  struct Options {
    std::string page{};  // the address of the page; empty: there is none
    // Of the run; nullopt: now.
    std::optional<Timestamp> created_at{}, completed_at{};
    bool is_repeated = false;  // a request before has begun the run, and is answered as it ended
    // The run has begun.
    std::function<void(const InteractionRef&)> began{};
    // It has ended, and this is the SpokenDigest of what the model has answered.
    std::function<void(const InteractionRef&, const std::string& spoken_digest)> ended{};
  };
  AgentTranslator(std::unique_ptr<AnswerWriter> writer, Options options)
      : writer_(std::move(writer)), options_(std::move(options)) {}

  void End(bool complete, std::string& out) override;

  // In place of End, of a run that may go on.
  void EndAs(InteractionStatus status, std::string& out);

  // How it has ended, after End.
  const AnswerEnd& end() const { return end_; }

 private:
  void TakePiece(std::uint64_t seq, Piece piece, std::string_view escaped, std::string& out) override;
  void TakeEvent(const AgentEvent& event, std::string& out) override;
  void TakeAnswer(const std::string& content, std::string& out);
  void TakeText(std::string_view escaped, std::string& out);
  void TakeThinking(std::string_view escaped, std::string& out);
  // What we say ourselves, as a paragraph.
  void Note(std::string_view text, std::string& out);
  void BeginAnswer(std::string& out);
  std::string Link() const;
  void Finish(std::string& out);

  const std::unique_ptr<AnswerWriter> writer_;
  const Options options_;
  RunState run_;
  AnswerEnd end_{};
  // The model's answer, without what we have said ourselves; with its end only the digest is kept, as many runs may end
  // together.
  std::string spoken_{}, spoken_digest_{};
  bool has_text_ = false;     // something was shown as text
  bool needs_break_ = false;  // what comes next is a paragraph of its own
  bool said_ = false;         // this round's text was shown while it came
  bool thought_ = false;      // likewise
};

}  // namespace reprise::openai
