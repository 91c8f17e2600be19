#include "app/prompt_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "agent/prompt.h"
#include "app/instruction_files.h"
#include "app/skill_files.h"
#include "base/logging.h"
#include "base/mutex.h"
#include "base/private_file.h"
#include "base/text.h"
#include "base/utf8.h"
#include "crypto/digest.h"
#include "crypto/key_set.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxModuleBytes = 32 * 1024;
constexpr std::size_t kMaxModules = 50;
constexpr std::string_view kExtension = ".md";
constexpr const char* kProjectModule = "70-project";
constexpr const char* kSkillsModule = "72-skills";

// Whether the name has the form NN-name.md.
bool IsModuleFile(std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto allowed = [&](char c) { return is_digit(c) || IsAsciiLetter(c) || c == '_' || c == '-'; };
  if (!name.ends_with(kExtension)) return false;
  name.remove_suffix(kExtension.size());
  return name.size() > 3 && is_digit(name[0]) && is_digit(name[1]) && name[2] == '-' &&
         std::all_of(name.begin() + 3, name.end(), allowed);
}

// Sorted by name.
std::vector<std::string> ModuleFiles(const std::string& directory, std::error_code& failed) {
  std::vector<std::string> files;
  for (std::filesystem::directory_iterator entry(directory, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    std::string name = entry->path().filename().string();
    if (IsModuleFile(name)) files.push_back(std::move(name));
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::string PromptDirectoryOf(const Options& options) {
  if (!options.prompt_dir.empty()) return options.prompt_dir;
  return (std::filesystem::path(DefaultKeyFile()).parent_path() / "prompt").string();
}

std::string ConfigDirectoryOf(const Options& options) {
  const std::string file = options.trust_file.empty() ? DefaultKeyFile() : options.trust_file;
  return std::filesystem::path(file).parent_path().string();
}

std::vector<std::string> PromptModulesOpenToTools(const Options& options) {
  std::vector<std::string> modules;
  if (!options.system_prompt) return modules;
  const std::string directory = PromptDirectoryOf(options), closed = ConfigDirectoryOf(options);
  std::error_code failed;
  for (const std::string& file : ModuleFiles(directory, failed)) {
    std::string path = directory + "/" + file;
    // Unusable files are reported when they are read.
    if (OpenToTools(path, options.workspace, closed) && ReadOwnFile(path, kMaxModuleBytes)) {
      modules.push_back(std::move(path));
    }
  }
  return modules;
}

Result<std::string> PromptFolder::ReadModule(const std::string& path) const {
  auto text = ReadOwnFile(path, kMaxModuleBytes);
  if (!text) return text;
  if (OpenToTools(path, workspace_, config_directory_)) {
    const auto allowed = trusted_.Read();
    if (!allowed) return Fail(allowed.error());
    const auto found = allowed->find(PlaceOf(path));
    if (found == allowed->end() || found->second != Sha256Digest({*text})) {
      return Fail(ErrorCode::kForbidden, path +
                                             " lies in the workspace and has not been allowed as it is now; `reprise "
                                             "trust " +
                                             path + "` allows it");
    }
  }
  if (!IsUtf8(*text)) return Fail(ErrorCode::kInvalidArgument, path + " is not valid UTF-8");
  if (auto checked = CheckPromptModule(*text); !checked) {
    return Fail(ErrorCode::kInvalidArgument, path + " " + checked.error().message);
  }
  return text;
}

struct PromptFolder::Told {
  Mutex mutex;
  std::set<std::string> messages GUARDED_BY(mutex);
};

PromptFolder::PromptFolder(const Options& options, std::string workspace,
                           std::shared_ptr<const ProjectInstructions> project)
    : directory_(PromptDirectoryOf(options)),
      workspace_(std::move(workspace)),
      config_directory_(ConfigDirectoryOf(options)),
      trusted_(options.trust_file),
      project_(std::move(project)),
      told_(std::make_shared<Told>()) {}

void PromptFolder::Warn(const std::string& message) const {
  {
    const MutexLock lock(told_->mutex);
    if (!told_->messages.insert(message).second) return;
  }
  LogWarning("a part of the system prompt cannot be used; the built-in part is used instead", {{"error", message}});
}

std::vector<ProjectInstructions::File> PromptFolder::ProjectFiles() const {
  if (!project_) return {};
  auto files = project_->List();
  for (const auto& file : files) {
    switch (file.state) {
      case ProjectInstructions::State::kUsed:
        break;
      case ProjectInstructions::State::kNew:
      case ProjectInstructions::State::kChanged:
        Warn(file.path + (file.state == ProjectInstructions::State::kNew ? " is new" : " has changed") +
             ", so the model is not told of it; `reprise trust " + file.path + "` allows it as it is");
        break;
      case ProjectInstructions::State::kUnusable:
        Warn(file.problem);
        break;
    }
  }
  return files;
}

SystemPrompt PromptFolder::operator()() const {
  std::map<std::string, PromptModule> modules;
  for (PromptModule& module : DefaultPromptModules()) modules[module.name] = std::move(module);
  const auto told = ProjectFiles();
  const auto add_plain = [&](const char* name, std::string text) {
    if (!text.empty()) modules[name] = {.name = name, .text = std::move(text), .is_plain = true};
  };
  add_plain(kProjectModule, TextOf(told));
  add_plain(kSkillsModule, SkillsText(told, workspace_));
  std::error_code failed;
  std::vector<std::string> files = ModuleFiles(directory_, failed);
  if (failed && failed != std::errc::no_such_file_or_directory) {
    Warn("cannot read the folder " + directory_ + ": " + failed.message());
  }
  if (files.size() > kMaxModules) {
    Warn("only the first " + std::to_string(kMaxModules) + " files of " + directory_ + " are used");
    files.resize(kMaxModules);
  }
  for (const std::string& file : files) {
    auto text = ReadModule(directory_ + "/" + file);
    if (text) {
      const std::string name = file.substr(0, file.size() - kExtension.size());
      modules[name] = {.name = name, .text = *std::move(text)};
    } else {
      Warn(text.error().message);
    }
  }
  SystemPrompt prompt{.workspace = ToValidUtf8(workspace_)};
  for (auto& [name, module] : modules) prompt.modules.push_back(std::move(module));
  return prompt;
}

}  // namespace reprise
