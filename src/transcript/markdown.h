#pragma once

#include <string>
#include <vector>

#include "reprise/interaction.h"

namespace reprise {

struct MarkdownTurn {
  const Interaction* interaction;
  bool superseded;
};

// A chat for people, as Markdown with its facts in front (YAML). What was said is quoted or fenced, so that it does not
// become part of the document's own structure: a heading that is not in a quote is ours. Nothing of it is HTML. Within
// its quote an answer is the Markdown it was. Characters that would steer a terminal are made visible.
std::string FormatMarkdown(const ChatSummary& summary, const std::vector<MarkdownTurn>& turns);

}  // namespace reprise
