#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/replay.h"
#include "reprise/result.h"

namespace reprise {

// Two inputs of one turn, the recorded and the current one, and any mix of them: to find the difference that matters.
// An input is what a request says beside its messages: system prompt, tools and parameters. Immutable, thread-safe.
//
//   const MixedInput input = TRY(MixedInput::Of(recorded, current, drift));
//   std::vector<bool> is_current(input.differences().size());
//   is_current[0] = true;  // the first difference as it is now, all others as they were
//   request.body = TRY(input.Mix(request.body, is_current));
class MixedInput {
 public:
  // The bodies of the turn's first request, for the same interface. `names`: what is known of the differences
  // (FindDrift). kInvalidArgument: a body is no JSON object, or the interfaces differ.
  static Result<MixedInput> Of(const std::string& recorded, const std::string& current,
                               const std::vector<Drift>& names);

  // Each stands for itself: a paragraph of the prompt, a tool, the order of the tools, a parameter.
  const std::vector<Drift>& differences() const { return differences_; }
  // The first place where the request differs even with the whole recorded input: messages, for example, which are no
  // part of it. A JSON pointer (RFC 6901); empty: nowhere.
  const std::string& left_over() const { return left_over_; }

  // `body`, of any request of the turn with the current input, with the recorded one in place of each difference that
  // is not current. Without any current difference the first request becomes the recorded one, byte for byte, if only
  // its input differs; with all of them it stays as it is, and so does a request with another system prompt, such as
  // one for a summary. kInvalidArgument: `body` is no such request. REQUIRES: `is_current` has an element for each
  // difference.
  Result<std::string> Mix(const std::string& body, const std::vector<bool>& is_current) const;

 private:
  // A value that both inputs have, or one of them. Without a difference both are equal but for their writing.
  struct Piece {
    std::string name{};
    std::optional<std::string> recorded{}, current{};
    std::optional<std::size_t> difference{};
  };
  // The differences that are current.
  struct Choice {
    const std::vector<bool>& is_current;
    bool none = false;
    bool takes_current(const std::optional<std::size_t>& difference) const {
      return difference ? is_current[*difference] : !none;
    }
    const std::optional<std::string>& of(const Piece& piece) const {
      return takes_current(piece.difference) ? piece.current : piece.recorded;
    }
  };

  std::size_t Add(Drift drift);
  void ComparePrompt(const std::string& recorded, const std::string& current, const std::vector<Drift>& names);
  void CompareTools(std::string_view recorded, std::string_view current);
  void CompareMember(const std::string& name, std::string_view recorded, std::string_view current);
  std::string PromptOf(const Choice& choice) const;
  std::string ToolsOf(const Choice& choice) const;
  std::string SystemOf(const Choice& choice, std::string_view now, const std::string& prompt_now) const;

  std::vector<Drift> differences_;
  std::string left_over_;
  std::vector<Piece> prompt_;                                // paragraphs, in their order
  std::vector<Piece> tools_, members_;                       // by name; members_: the other members of the body
  std::vector<std::string> recorded_order_, current_order_;  // of tools
  std::optional<std::size_t> order_;                         // the difference in it
  std::vector<std::string> recorded_members_;                // all members' names, in their order
  std::string system_path_, current_system_;
  std::string recorded_system_;  // the value that holds the system prompt: a member, or a message; empty: none
};

}  // namespace reprise
