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
// become part of the document's own structure; an answer is Markdown already and stays as it is. Characters that would
// steer a terminal are made visible.
std::string FormatMarkdown(const ChatSummary& summary, const std::vector<MarkdownTurn>& turns);

}  // namespace reprise
