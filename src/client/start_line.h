#pragma once

#include <string>

#include "base/json.h"
#include "client/server_link.h"
#include "terminal/terminal_style.h"

namespace reprise {

// A conversation that begins.
struct ConversationStart {
  std::string chat;
  const Json* known;        // the answer of GET /chats/ID; null if the chat has no message yet
  std::string model{};      // that this client asks for; empty: the chat's or the server's
  std::string home{};       // shown as "~"; may be empty
  bool names_chat = false;  // the line has the chat's id too
};

// The line that tells what the conversation works with, and what waits in other chats:
// "openai/gpt-4o-mini · ~/project · mode ask · http://127.0.0.1:8000 · 2 questions wait in other chats (/approvals) ·
// /help lists the commands". Asks the server what waits. Leaves out the least important parts if there are fewer
// `columns`; 0 is no limit. Never leaves out an approval mode other than "ask". REQUIRES: `link` is reached.
std::string StartLine(ServerLink& link, const ConversationStart& beginning, int columns, const Style& style);

// What the line above the input tells; empty parts are left out.
struct Status {
  std::string model, folder, branch, mode, cost, context;
};
// Of the conversation, without what its runs tell.
Status StatusOf(ServerLink& link, const ConversationStart& beginning);
// The branch, or the beginning of the commit, that is checked out in the folder or one above; empty: none.
std::string GitBranch(const std::string& folder);
// "openai/gpt-4o-mini · ~/project (main) · mode ask · cost 0.12 · context 12 %". Leaves out the least important parts
// if there are fewer `columns`, but no mode other than "ask".
std::string StatusLine(const Status& status, int columns, const Style& style);

}  // namespace reprise
