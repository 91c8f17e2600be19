#pragma once

#include <string>
#include <string_view>

// How an answer shows approvals and questions, and how these are removed again when a front end sends the answer back.
namespace reprise {

// Each is a paragraph of Markdown. `where` says where a person can answer. The caller must escape text that is not
// ours.
std::string ApprovalNote(std::string_view tool, std::string_view arguments, std::string_view where);
std::string QuestionNote(std::string_view question, std::string_view where);
inline constexpr std::string_view kApprovedNote = "Approved.";
inline constexpr std::string_view kRejectedNote = "Rejected.";
inline constexpr std::string_view kExpiredNote = "Nobody has answered in time: rejected.";
// Follows the failure of a run, for a repeated request (Conversations::FollowRepeated).
inline constexpr std::string_view kRepeatedNote =
    " (This request has begun a run before, whose tools have done something, and that is how it ended. It is not done "
    "again for ten minutes: change the message, or send an Idempotency-Key, to begin anew.)";

// The model's words in an answer, as a front end has it: without our notes, without what front ends put around thinking
// and tool calls (<details>, <think> and the like), and without white space, which they trim, wrap and join as they
// like. An answer that was cut off may end within any of these.
std::string SpokenText(std::string_view shown);
// A digest of SpokenText.
std::string SpokenDigest(std::string_view shown);

}  // namespace reprise
