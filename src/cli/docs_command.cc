#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "app/options.h"
#include "base/did_you_mean.h"
#include "base/posix_file_system.h"
#include "cli/commands.h"
#include "cli/completion_script.h"
#include "cli/man_page.h"
#include "store/chat_files.h"
#include "terminal/console.h"

namespace reprise {
namespace {

int WriteAllPages(const CommandDoc& root, const std::string& folder) {
  for (const CommandDoc* command : AllCommands(root)) {
    const std::string path = folder + "/" + ManPageName(*command) + ".1";
    std::ofstream file(path, std::ios::binary);
    file << ManPage(root, *command);
    file.close();
    if (!file) return Complain(MakeError(ErrorCode::kIo, "cannot write " + path, std::strerror(errno)));
  }
  return kExitOk;
}

// Only names of folders are read: no key is needed, and nobody is asked for a passphrase while they press TAB.
int PrintChats(const CommandLine& line, const Environment& environment) {
  const auto options = LoadOptions(line.flags, environment);
  if (!options) return ComplainOfUse(options.error());
  const auto chats = ChatFiles(options->data_dir, MakeRecordFormat(nullptr), Disk()).ListChats();
  if (!chats) return Complain(chats.error());
  std::string text;
  for (const ChatId& chat : *chats) text += chat.str() + "\n";
  Print(text);
  return kExitOk;
}

}  // namespace

int RunMan(const CommandLine& line, const Environment&) {
  const CommandDoc root = DescribeCommands();
  if (!line.output.empty()) return WriteAllPages(root, line.output);
  std::string name;
  for (const std::string& word : line.arguments) name += (name.empty() ? "" : " ") + word;
  const CommandDoc* command = FindCommand(root, name);
  if (command == nullptr) {
    std::vector<std::string> known;
    for (const CommandDoc* each : AllCommands(root)) known.push_back(each->name);
    return Misused("there is no command " + name + DidYouMean(name, known) + " (reprise --help lists them)");
  }
  Print(ManPage(root, *command));
  return kExitOk;
}

int RunCompletion(const CommandLine& line, const Environment& environment) {
  if (line.list) return PrintChats(line, environment);
  const auto script = CompletionScript(line.argument, DescribeCommands());
  if (!script) return Misused("which shell? bash, zsh or fish");
  Print(*script);
  return kExitOk;
}

}  // namespace reprise
