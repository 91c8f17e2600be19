#pragma once

#include <string>
#include <string_view>

// What an answer shows of approvals and questions, and how it is taken out again when a front end tells the answer.
namespace reprise {

// Each is a paragraph of Markdown. `where`: where a person can answer. Text of others must be escaped by the caller.
std::string ApprovalNote(std::string_view tool, std::string_view arguments, std::string_view where);
std::string QuestionNote(std::string_view question, std::string_view where);
inline constexpr std::string_view kApprovedNote = "Approved.";
inline constexpr std::string_view kRejectedNote = "Rejected.";
inline constexpr std::string_view kExpiredNote = "Nobody has answered in time: rejected.";
// Behind how a run has ended, for a request that has come again (Conversations::FollowRepeated).
inline constexpr std::string_view kRepeatedNote =
    " (This request has begun a run before, whose tools have done something, and that is how it ended. It is not done "
    "again for ten minutes: change the message, or send an Idempotency-Key, to begin anew.)";

// What the model said of an answer as a front end has it: without our notes, what front ends put around thinking and
// tool calls (<details>, <think> and the like), and white space, which they trim, wrap and join as they like. An answer
// that was cut off may end within any of them.
std::string SpokenText(std::string_view shown);
// Of that text: what is kept of an answer while a run ends.
std::string SpokenDigest(std::string_view shown);

}  // namespace reprise
