#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reprise/event.h"
#include "reprise/interaction.h"
#include "reprise/message.h"
#include "reprise/question_store.h"

namespace reprise {

// The files of a message or a tool's result, one per line: "[x.png, image/png, 120 bytes]".
inline std::string FileLines(const std::vector<Attachment>& files) {
  std::string lines;
  for (const Attachment& file : files) {
    lines += (lines.empty() ? "[" : "\n[") + file.filename + ", " + file.mime_type + ", " +
             std::to_string(file.size_bytes) + " bytes]" + (file.note.empty() ? "" : " " + file.note);
  }
  return lines;
}

// Pages of the web, one per line: "https://example.org/ (Title)". The last line says how many results are omitted.
std::string SourceLines(const std::vector<WebSource>& sources, std::int64_t omitted = 0);

// {"messages":[...]} on one line, the form in which other programs read conversations: each message as on the wire of
// OpenAI's interface, without provider extras.
std::string ConversationLine(const AgentState& state);

// The progress of a run, derived from its events.
struct RunState {
  void Take(const AgentEvent& event);
  // Removes a question that needs no answer any more.
  void Settle(const std::string& question_id);

  std::optional<InteractionRef> run{};  // nullopt until it has begun
  std::string model{};
  std::vector<PendingQuestion> open{};  // open questions to people, oldest first
  event::Answer answer{};               // the last one
  event::Failed failure{};              // likewise
  std::optional<event::Cancelled> cancelled{};
  std::optional<InteractionStatus> status{};  // its final status; nullopt until it has ended
};

// An interaction for reading: the messages, the tools with their results, the end. Safe to print on a terminal.
std::string FormatInteraction(const Interaction& interaction, bool superseded);

// A chat's heading.
std::string FormatHeading(const ChatSummary& summary);

// Date and time to the second, in this machine's time zone: 2025-01-15 10:00:00.
std::string FormatForReading(Timestamp time);

struct MarkdownTurn {
  const Interaction* interaction;
  bool superseded;
};

// A chat for people, as Markdown after its facts (YAML). Texts of the chat are quoted or fenced, so that they do not
// become part of the document's own structure: only our headings are outside of quotes. No text becomes HTML. Within
// its quote an answer stays Markdown. Characters that would control a terminal are made visible.
std::string FormatMarkdown(const ChatSummary& summary, const std::vector<MarkdownTurn>& turns);

}  // namespace reprise
