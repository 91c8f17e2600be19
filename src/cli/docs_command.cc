#include <zlib.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/embedded.h"
#include "app/options.h"
#include "base/posix_file_system.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/grammar_docs.h"
#include "store/chat_files.h"
#include "terminal/console.h"

namespace reprise {
namespace {

// Prints the first existing one of `files` in the folder `share` that was built or installed with this program.
bool PrintShared(const std::vector<std::string>& files) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const auto& share : {program / "share", program / "../share"}) {
    for (const std::string& name : files) {
      const gzFile file = gzopen((share / name).c_str(), "rb");  // also reads plain files
      if (file == nullptr) continue;
      std::array<char, 16384> buffer;
      for (int size; (size = gzread(file, buffer.data(), buffer.size())) > 0;) {
        Print({buffer.data(), static_cast<std::size_t>(size)});
      }
      return gzclose(file) == Z_OK;
    }
  }
  return false;
}

// Reads only names of folders, so TAB needs no key and no passphrase.
Exited PrintChats(const CommandLine& line, const Environment& environment) {
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  const auto chats = TRY(ChatFiles(options.data_dir, MakeRecordFormat(nullptr), Disk()).ListChats());
  std::string text;
  for (const ChatId& chat : chats) text += chat.str() + "\n";
  Print(text);
  return kExitOk;
}

}  // namespace

Exited RunMan(const CommandLine& line, const Environment&) {
  const Json commands = DescribeCommands();
  if (line.list) {
    Print(Json{{"version", Version()}, {"commands", commands}}.dump() + "\n");
    return kExitOk;
  }
  const std::string name = Joined(line.arguments, " ");
  std::string page = "man/man1/reprise";
  for (const std::string& word : line.arguments) page += "-" + word;
  std::vector<std::string> known;
  for (const Json& command : commands) known.push_back(command["name"]);
  if (std::ranges::find(known, name) == known.end()) {
    return Misused("there is no command " + name + DidYouMean(name, known) + " (reprise --help lists them)");
  }
  if (PrintShared({page + ".1", page + ".1.gz"})) return kExitOk;
  return Complain(MakeError(ErrorCode::kNotFound, "the man pages are not installed beside this program"));
}

Exited RunCompletion(const CommandLine& line, const Environment& environment) {
  if (line.list) return PrintChats(line, environment);
  if (line.argument.empty()) return Misused("which shell? bash, zsh or fish");
  const bool is_printed = line.argument == "bash" ? PrintShared({"bash-completion/completions/reprise"})
                          : line.argument == "fish"
                              ? PrintShared({"fish/vendor_completions.d/reprise.fish"})
                              : PrintShared({"zsh/site-functions/_reprise", "zsh/vendor-completions/_reprise"});
  if (is_printed) return kExitOk;
  return Complain(MakeError(ErrorCode::kNotFound, "the completions are not installed beside this program"));
}

}  // namespace reprise
