#include "app/named_files.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "app/prompt_files.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;
using File = ProjectInstructions::File;
using State = ProjectInstructions::State;

constexpr std::string_view kExtensionOfNamed = ".md";
constexpr std::size_t kMostInFolder = 2000;

}  // namespace

std::vector<std::string> NamedFilesIn(const std::string& folder, bool& cut) {
  std::vector<std::string> files;
  std::error_code failed;
  std::size_t entries = 0;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    if (++entries > kMostInFolder) break;
    if (entry->path().extension() == kExtensionOfNamed) files.push_back(entry->path().string());
  }
  std::ranges::sort(files);
  cut = files.size() > kMaxNamedFiles || entries > kMostInFolder;
  if (files.size() > kMaxNamedFiles) files.resize(kMaxNamedFiles);
  return files;
}

void ReadNamedHeads(std::vector<File>& files, ProjectInstructions::Kind kind, const HeadReader& read) {
  const std::string what(ToString(kind));
  std::map<std::string, std::string> taken;  // the file that has the name
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    file->kind = kind;
    if (file->state == State::kUnusable) continue;
    const std::string name = fs::path(file->path).stem().string();
    const auto refuse = [&](std::string problem) {
      *file = {.path = file->path, .state = State::kUnusable, .problem = std::move(problem), .kind = kind};
    };
    if (!IsSkillName(name)) {
      refuse(file->path + ": the name of a file of this kind (" + what +
             ") may be at most 64 small letters, digits and single hyphens between them");
      continue;
    }
    if (const auto [first, is_new] = taken.emplace(name, file->path); !is_new) {
      refuse(file->path + ": the " + what + " \"" + name + "\" is " + first->second + ", which lies nearer");
      continue;
    }
    file->name = name;
    if (file->state != State::kUsed) continue;
    auto description = read(file->text);
    if (!description) {
      refuse(file->path + ": " + description.error().message);
      continue;
    }
    file->description = *std::move(description);
  }
}

Error NotAllowedYet(const File& file) {
  return Refused(Reason::kUntrusted, file.path + (file.state == State::kNew ? " is new" : " has changed") +
                                         ", so it is not used before you have allowed it: `reprise trust " + file.path +
                                         "`, or /instructions");
}

}  // namespace reprise
