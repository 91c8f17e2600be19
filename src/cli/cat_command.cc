#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "client/archive/chat_reader.h"
#include "domain/codec.h"
#include "terminal/console.h"

namespace reprise {
namespace {

int CatRecord(ChatReader& reader, const RecordReference& what) {
  InteractionStore& store = reader.store();
  const std::string& folder = reader.options().data_dir;
  if (what.interaction) {
    const auto interaction = store.LoadInteraction(what.chat, *what.interaction);
    if (!interaction) return Complain(NotThere(interaction.error(), what, folder));
    Print(DumpJson(ToJson(*interaction)) + "\n");
    return kExitOk;
  }
  const auto chat = store.LoadChat(what.chat);
  if (!chat) return Complain(NotThere(chat.error(), what, folder));
  Print(DumpJson(ChatToJson(*chat, /*all_branches=*/true)) + "\n");
  ComplainOfDamage(*chat);
  return chat->damaged.empty() ? kExitOk : kExitFailure;
}

int CatFile(const CommandLine& line, const Environment& environment) {
  const auto options = LoadOptions(line.flags, environment);
  if (!options) return ComplainOfUse(options.error());
  const auto file = ReadLoneFile(line.argument, *options);
  if (!file) return Complain(file.error());
  Print(file->text);
  if (file->is_part) Warn("the final state is only what was added to the interaction before, whose file is elsewhere");
  if (file->cut_off) Warn("the last record was not written to its end, and is left out");
  return kExitOk;
}

}  // namespace

int RunCat(const CommandLine& line, const Environment& environment) {
  auto stored = FindStored(line.argument, line.flags, environment);
  if (!stored) return ComplainOfUse(stored.error());
  return *stored ? CatRecord((*stored)->reader, (*stored)->what) : CatFile(line, environment);
}

}  // namespace reprise
