#include "app/instruction_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "app/named_files.h"
#include "app/prompt_files.h"
#include "base/path.h"
#include "base/private_file.h"
#include "base/text.h"
#include "crypto/digest.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;
using File = ProjectInstructions::File;
using Kind = ProjectInstructions::Kind;
using State = ProjectInstructions::State;

constexpr const char* kOwnSkills = "skills";             // in the configuration folder
constexpr const char* kSharedSkills = ".agents/skills";  // in the user's home, and in the folders of a project

constexpr const char* kOwnCommands = "commands";  // in the configuration folder
constexpr const char* kProjectCommands = ".reprise/commands";
constexpr const char* kOwnAgents = "agents";  // likewise
constexpr const char* kProjectAgents = ".reprise/agents";

constexpr std::size_t kMostFolders = 32;
constexpr std::size_t kMaxFile = 256 * 1024;  // larger files are not read

constexpr std::string_view kIntroduction =
    "What people have written down for agents that work here. What the user says in the conversation goes before it; "
    "of two files that contradict each other the later one counts.";

// Free of symbolic links; empty if unknown.
std::string Home() {
  const char* const home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): read at the start
  std::error_code failed;
  return home != nullptr && *home == '/' ? fs::weakly_canonical(home, failed).string() : std::string();
}

// From the top down to the workspace. Sets `project` to the top of its git work tree.
std::vector<std::string> FoldersOf(const std::string& workspace, std::string& project) {
  std::vector<std::string> folders;
  if (workspace.empty()) return folders;
  const fs::path end = Home();
  std::error_code failed;
  for (fs::path folder = workspace; folders.size() < kMostFolders; folder = folder.parent_path()) {
    folders.push_back(folder.string());
    if (fs::exists(folder / ".git", failed)) project = folder.string();
    if (!project.empty() || folder == end || !folder.has_relative_path()) break;
  }
  std::ranges::reverse(folders);
  return folders;
}

bool LiesBelow(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

File Unusable(std::string path, std::string problem) {
  return {.path = std::move(path), .state = State::kUnusable, .problem = std::move(problem)};
}

File Take(std::string path, Result<std::string> text) {
  if (!text) return Unusable(std::move(path), text.error().message);
  if (!IsUtf8(*text)) return Unusable(path, path + " is not valid UTF-8");
  File file{.path = std::move(path), .digest = Sha256Digest({*text})};
  file.text = *std::move(text);
  return file;
}

// Called before each turn, mostly for missing files, so it makes no std::filesystem::path.
// Reads a file of a project; refuses it if a link leads out of the project.
File TakeWithin(const std::string& path, const std::string& project, std::size_t max_bytes) {
  std::error_code failed;
  const fs::path real = fs::canonical(path, failed);
  if (failed) return Unusable(path, "cannot read " + path + ": " + failed.message());
  if (!LiesBelow(real, project)) return Unusable(path, path + " leads out of " + project);
  return Take(path, ReadSmallFile(real.string(), max_bytes));
}

// Whether a skill's file lies outside its own folder. That folder may be a link, but not to the folder of all skills.
bool LeavesItsFolder(const std::string& path) {
  const fs::path file(path);
  std::error_code failed;
  const auto real = [&](const fs::path& each) { return fs::weakly_canonical(each, failed); };
  const fs::path folder = real(file.parent_path());
  return !LiesBelow(real(file), folder) || LiesBelow(real(file.parent_path().parent_path()), folder) || failed;
}

// Adds the skills, or the files NAME.md, of `folder`, each as `take` reads it.
void AddFrom(const std::string& folder, bool skills, std::vector<File>& files,
             const std::function<File(const std::string& path)>& take) {
  if (!IsThere(folder)) return;
  bool cut = false;
  for (const std::string& path : skills ? SkillsIn(folder, cut) : NamedFilesIn(folder, cut)) {
    files.push_back(LeavesItsFolder(path) ? Unusable(path, path + " leads out of its folder") : take(path));
  }
  if (!cut) return;
  const std::string most = skills ? std::to_string(kMaxSkills) + " skills" : std::to_string(kMaxNamedFiles) + " files";
  files.push_back(Unusable(folder, "only the first " + most + " in " + folder + " are looked at"));
}

// At most `bytes` bytes, in whole characters.
std::string_view FirstBytes(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  text = text.substr(0, bytes);
  return text.substr(0, text.size() - IncompleteUtf8Tail(text));
}

}  // namespace

// The list of allowed files, read when it is first needed.
class InstructionFiles::Consent {
 public:
  explicit Consent(const TrustedFiles& trusted) : trusted_(trusted) {}

  // Sets the state of a file that tools could have written.
  void Judge(File& file) {
    if (file.state == State::kUnusable) return;
    if (!allowed_) allowed_ = trusted_.Read();
    if (!*allowed_) {
      file = Unusable(file.path, allowed_->error().message);
      return;
    }
    const auto known = (*allowed_)->find(PlaceOf(file.path));
    if (known == (*allowed_)->end()) {
      file.state = State::kNew;
    } else if (known->second != file.digest) {
      file.state = State::kChanged;
    }
  }

 private:
  const TrustedFiles& trusted_;
  std::optional<Result<FileDigests>> allowed_;
};

InstructionFiles::InstructionFiles(const Options& options, std::string workspace, bool with_skills)
    : workspace_(std::move(workspace)),
      config_directory_(ConfigDirectoryOf(options)),
      with_skills_(with_skills),
      own_(config_directory_ + "/" + kInstructionsName),
      trusted_(options.trust_file) {
  for (const std::string& folder : FoldersOf(workspace_, project_)) {
    folders_.push_back({.path = folder,
                        .skills = (fs::path(folder) / kSharedSkills).string(),
                        .instructions = {(fs::path(folder) / kInstructionsName).string()}});
    for (const char* name : kOtherInstructions) {
      folders_.back().instructions.push_back((fs::path(folder) / name).string());
    }
  }
  own_skills_.push_back(config_directory_ + "/" + kOwnSkills);
  if (const std::string home = Home(); !home.empty()) own_skills_.push_back(home + "/" + kSharedSkills);
}

// The folder that must contain this folder's files.
const std::string& InstructionFiles::LimitOf(const Folder& folder) const {
  return project_.empty() ? folder.path : project_;
}

std::vector<File> InstructionFiles::List() const {
  std::vector<File> files;
  if (IsThere(own_)) files.push_back(Take(own_, ReadOwnFile(own_, kMaxFile)));
  Consent consent(trusted_);
  for (const Folder& folder : folders_) {
    const auto file = std::ranges::find_if(folder.instructions, [](const std::string& path) { return IsThere(path); });
    if (file == folder.instructions.end() || *file == own_) continue;
    consent.Judge(files.emplace_back(TakeWithin(*file, LimitOf(folder), kMaxFile)));
  }
  if (with_skills_) AddSkills(files, consent);
  AddCommands(files, consent);
  std::vector<File> agents = Agents(consent);
  std::move(agents.begin(), agents.end(), std::back_inserter(files));
  return files;
}

// A skill's head is parsed only when the skill is in use. Before a person has allowed it, its text is only shown.
void InstructionFiles::AddSkills(std::vector<File>& files, Consent& consent) const {
  const std::size_t first = files.size();
  for (const std::string& folder : own_skills_) {
    AddFrom(folder, /*skills=*/true, files, [&](const std::string& path) {
      File file = Take(path, ReadOwnFile(path, kMaxSkillFile));
      if (OpenToTools(path, workspace_, config_directory_)) consent.Judge(file);
      return file;
    });
  }
  for (const Folder& folder : folders_) {
    if (std::ranges::find(own_skills_, folder.skills) != own_skills_.end()) continue;
    AddFrom(folder.skills, /*skills=*/true, files, [&](const std::string& path) {
      File file = TakeWithin(path, LimitOf(folder), kMaxSkillFile);
      consent.Judge(file);
      return file;
    });
  }
  for (std::size_t i = first; i < files.size(); ++i) files[i].kind = Kind::kSkill;
  ReadHeads(files);
}

// The files NAME.md of one kind: `own` in the configuration folder, `shared` in the folders of a project.
std::vector<File> InstructionFiles::NamedFiles(const char* own, const char* shared, Consent& consent) const {
  std::vector<File> files;
  const std::string own_folder = config_directory_ + "/" + own;
  AddFrom(own_folder, /*skills=*/false, files,
          [](const std::string& path) { return Take(path, ReadOwnFile(path, kMaxNamedFile)); });
  for (const Folder& folder : folders_) {
    const std::string path = folder.path + (folder.path.ends_with('/') ? "" : "/") + shared;
    if (path == own_folder) continue;
    AddFrom(path, /*skills=*/false, files, [&](const std::string& each) {
      File file = TakeWithin(each, LimitOf(folder), kMaxNamedFile);
      consent.Judge(file);
      return file;
    });
  }
  return files;
}

void InstructionFiles::AddCommands(std::vector<File>& files, Consent& consent) const {
  std::vector<File> commands = NamedFiles(kOwnCommands, kProjectCommands, consent);
  ReadCommandHeads(commands);
  std::move(commands.begin(), commands.end(), std::back_inserter(files));
}

std::vector<File> InstructionFiles::Agents() const {
  Consent consent(trusted_);
  return Agents(consent);
}

std::vector<File> InstructionFiles::Agents(Consent& consent) const {
  std::vector<File> agents = NamedFiles(kOwnAgents, kProjectAgents, consent);
  ReadAgentHeads(agents);
  return agents;
}

Result<ProjectInstructions::Agent> InstructionFiles::FindAgent(std::string_view name) const {
  return AgentNamed(Agents(), name);
}

Result<ProjectInstructions::Expanded> InstructionFiles::Expand(std::string_view name,
                                                               std::string_view arguments) const {
  return ExpandCommand(List(), name, arguments);
}

Result<void> InstructionFiles::Allow(std::string_view path, std::string_view digest) {
  const std::vector<File> files = List();
  const auto file = std::ranges::find(files, path, &File::path);
  if (file == files.end() || file->digest.empty()) {
    return Fail(Reason::kNoSuchFile, "there is no such file of instructions; GET /instructions lists them");
  }
  if (file->digest != digest) {
    return Fail(Reason::kStale, "the file has changed meanwhile; look at it again (GET /instructions)");
  }
  if (file->state == State::kUsed) return {};
  return trusted_.Allow({{PlaceOf(file->path), file->digest}});
}

std::string TextOf(const std::vector<File>& files) {
  std::size_t room = kMaxInstructions;
  std::string text;
  for (auto file = files.rbegin(); file != files.rend(); ++file) {  // the nearest file has the first claim to the space
    if (file->kind != Kind::kInstructions || file->state != State::kUsed) continue;
    const std::string_view whole = Trimmed(file->text);
    if (whole.empty()) continue;
    const std::string_view shown = FirstBytes(whole, room);
    room -= shown.size();
    std::string part = "\n\nFrom " + ToValidUtf8(file->path) + ":\n" + std::string(shown);
    if (shown.size() < whole.size()) {
      part += "\n(cut: the first " + std::to_string(shown.size()) + " of " + std::to_string(whole.size()) + " bytes)";
    }
    text.insert(0, part);
  }
  return text.empty() ? text : std::string(kIntroduction) + text;
}

}  // namespace reprise
