#include "cli/keys_command.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/posix_file_system.h"
#include "cli/console.h"
#include "cli/terminal_text.h"
#include "crypto/key_set.h"

namespace reprise {
namespace {

Result<std::string> KeyFile(const CommandLine& line, const Environment& environment) {
  const auto options = LoadOptions(line.flags, environment);
  if (!options) return Fail(options.error());
  return options->key_file.empty() ? DefaultKeyFile() : options->key_file;
}

void PrintKeys(const std::string& path, const KeySet& keys, bool json) {
  if (!json) {
    Print("key file " + VisibleLine(path) + "\n");
    for (const KeySet::Key& key : keys.keys()) {
      Print(VisibleLine(key.kid) + "  A256KW" + (&key == &keys.current() ? "  (seals)\n" : "\n"));
    }
    return;
  }
  Json list = Json::array();
  for (const KeySet::Key& key : keys.keys()) {
    list.push_back({{"kid", key.kid}, {"alg", "A256KW"}, {"current", &key == &keys.current()}});
  }
  Print(DumpJson(Json{{"key_file", path}, {"keys", std::move(list)}}) + "\n");
}

}  // namespace

int RunKeysInit(const CommandLine& line, const Environment& environment) {
  const auto path = KeyFile(line, environment);
  if (!path) return Complain(path.error());
  PosixFileSystem disk;
  const auto keys = KeySet::LoadOrCreate(*path, disk);
  if (!keys) return Complain(keys.error());
  PrintKeys(*path, *keys, line.json);
  return kExitOk;
}

int RunKeysList(const CommandLine& line, const Environment& environment) {
  const auto path = KeyFile(line, environment);
  if (!path) return Complain(path.error());
  PosixFileSystem disk;
  const auto keys = KeySet::Load(*path, disk);
  if (!keys && keys.error().code == ErrorCode::kNotFound) {
    return Complain(MakeError(ErrorCode::kNotFound, "there is no key file " + *path + " yet (reprise keys init)"));
  }
  if (!keys) return Complain(keys.error());
  PrintKeys(*path, *keys, line.json);
  return kExitOk;
}

}  // namespace reprise
