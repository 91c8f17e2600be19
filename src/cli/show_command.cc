#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "client/archive/chat_reader.h"
#include "domain/codec.h"
#include "domain/transcript/transcript.h"
#include "terminal/console.h"

namespace reprise {
namespace {

int ShowInteraction(ChatReader& reader, const RecordReference& what, bool json) {
  const auto interaction = reader.store().LoadInteraction(what.chat, *what.interaction);
  if (!interaction) return Complain(NotThere(interaction.error(), what, reader.options().data_dir));
  Print(json ? DumpJson(ToJson(*interaction)) + "\n" : FormatInteraction(*interaction, /*superseded=*/false));
  return kExitOk;
}

int ShowChat(ChatReader& reader, const RecordReference& what, const CommandLine& line) {
  const auto chat = reader.store().LoadChat(what.chat);
  if (!chat) return Complain(NotThere(chat.error(), what, reader.options().data_dir));
  if (line.json) {
    Print(DumpJson(ChatToJson(*chat, line.all_branches)) + "\n");
  } else {
    const auto branch = HeadBranch(*chat);
    Print(FormatHeading(chat->summary));
    for (const Interaction& interaction : chat->interactions) {
      const bool superseded = !branch.contains(interaction.id);
      if (!superseded || line.all_branches) Print("\n" + FormatInteraction(interaction, superseded));
    }
  }
  ComplainOfDamage(*chat);
  return chat->damaged.empty() ? kExitOk : kExitFailure;
}

int ShowFile(const CommandLine& line, const Environment& environment) {
  const auto options = LoadOptions(line.flags, environment);
  if (!options) return ComplainOfUse(options.error());
  const auto interaction = ReadLoneInteraction(line.argument, *options);
  if (!interaction) return Complain(interaction.error());
  Print(line.json ? DumpJson(ToJson(*interaction)) + "\n" : FormatInteraction(*interaction, /*superseded=*/false));
  return kExitOk;
}

}  // namespace

int RunShow(const CommandLine& line, const Environment& environment) {
  auto stored = FindStored(line.argument, line.flags, environment);
  if (!stored) return ComplainOfUse(stored.error());
  if (!*stored) return ShowFile(line, environment);
  auto& [reader, what] = **stored;
  return what.interaction ? ShowInteraction(reader, what, line.json) : ShowChat(reader, what, line);
}

}  // namespace reprise
