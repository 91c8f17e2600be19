#include "cli/mv_command.h"

#include <nlohmann/json.hpp>
#include <string>

#include "base/terminal_text.h"
#include "base/utf8.h"
#include "client/chat_writer.h"
#include "terminal/console.h"

namespace reprise {

int RunMv(const CommandLine& line, const Environment& environment) {
  const auto chat = ChatId::Parse(line.argument);
  if (!chat) return Misused("\"" + line.argument + "\" names no chat: " + chat.error().message);
  std::string title;
  for (const std::string& word : line.arguments) title += (title.empty() ? "" : " ") + word;
  if (title.empty()) return Misused("the title is empty");
  if (ToValidUtf8(title) != title) return Misused("the title is not UTF-8");
  const auto writer = ChatWriter::Open(line.flags, line.url, environment);
  if (!writer) return ComplainOfUse(writer.error());
  const auto renamed = (*writer)->Rename(*chat, title);
  if (!renamed && renamed.error().reason == "invalid_member") return Misused(renamed.error().message);
  if (!renamed) return Complain(renamed.error());
  Print(line.json ? DumpJson(*renamed) + "\n"
                  : chat->str() + " has the title \"" + VisibleLine(TextMember(*renamed, "title")) + "\" now\n");
  return kExitOk;
}

}  // namespace reprise
