#pragma once

#include <string>
#include <vector>

#include "reprise/interaction.h"

namespace reprise {

struct MarkdownTurn {
  const Interaction* interaction;
  bool superseded;
};

// A chat for people, as Markdown after its facts (YAML). Texts of the chat are quoted or fenced, so that they do not
// become part of the document's own structure: only our headings are outside of quotes. No text becomes HTML. Within
// its quote an answer stays Markdown. Characters that would control a terminal are made visible.
std::string FormatMarkdown(const ChatSummary& summary, const std::vector<MarkdownTurn>& turns);

}  // namespace reprise
