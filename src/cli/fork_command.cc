#include "cli/fork_command.h"

#include <nlohmann/json.hpp>

#include "archive/record_reference.h"
#include "base/terminal_text.h"
#include "client/chat_writer.h"
#include "terminal/console.h"

namespace reprise {

int RunFork(const CommandLine& line, const Environment& environment) {
  const auto what = ParseReference(line.argument);
  if (!what) return Misused(what.error().message);
  if (!line.as.empty() && !ChatId::Parse(line.as)) {
    return Misused("--as: \"" + line.as + "\" cannot be a chat's name: " + ChatId::Parse(line.as).error().message);
  }
  const auto writer = ChatWriter::Open(line.flags, line.url, environment);
  if (!writer) return ComplainOfUse(writer.error());
  auto copy = (*writer)->Fork(what->chat, what->interaction, line.as);
  if (!copy && copy.error().reason == "chat_exists") {
    copy.error().message = "there is a chat " + line.as + " already (--as gives the copy another name)";
  }
  if (!copy && copy.error().reason == "not_finished") {
    copy.error().message +=
        " (CHAT/INTERACTION names an earlier one; `reprise ls " + what->chat.str() + "` lists them)";
  }
  if (!copy) return Complain(copy.error());
  const Json origin = copy->contains("forked_from") ? (*copy)["forked_from"] : Json();
  Print(line.json ? DumpJson(*copy) + "\n"
                  : VisibleLine(TextMember(*copy, "id") + " is a copy of " + TextMember(origin, "chat_id") + " up to " +
                                TextMember(origin, "interaction_id")) +
                        "\n");
  return kExitOk;
}

}  // namespace reprise
