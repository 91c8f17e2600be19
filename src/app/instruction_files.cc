#include "app/instruction_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <system_error>
#include <tuple>
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

// Where they are in the configuration folder and in a project's, and what reads their heads.
constexpr std::tuple<const char*, const char*, void (*)(std::vector<File>&)> kNamedKinds[] = {
    {"commands", ".reprise/commands", ReadCommandHeads}, {"agents", ".reprise/agents", ReadAgentHeads}};

constexpr std::size_t kMostFolders = 32, kMostLookedAt = 2000;

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

// Reads a file of a project; refuses it if a link leads out of the project.
File TakeWithin(const std::string& path, const std::string& project, std::size_t max_bytes) {
  std::error_code failed;
  const fs::path real = fs::canonical(path, failed);
  if (failed) return Unusable(path, "cannot read " + path + ": " + failed.message());
  if (!LiesBeneath(real, project)) return Unusable(path, path + " leads out of " + project);
  return Take(path, ReadSmallFile(real.string(), max_bytes));
}

// Whether a skill's file lies outside its own folder. That folder may be a link, but not to the folder of all skills.
bool LeavesItsFolder(const std::string& path) {
  const fs::path file(path);
  std::error_code failed;
  const auto real = [&](const fs::path& each) { return fs::weakly_canonical(each, failed); };
  const fs::path folder = real(file.parent_path());
  return !LiesBeneath(real(file), folder) || LiesBeneath(real(file.parent_path().parent_path()), folder) || failed;
}

// What a reading depends on, as the file system tells of it: a folder's times change with the names in it.
class Seen {
 public:
  // Whether there is anything at `path`, if only a link that leads nowhere. Call it before what is there is read.
  bool Look(const fs::path& path) {
    // A missing one would appear in the first folder above it that is there.
    fs::path folder = path.parent_path();
    while (!Note(folder) && folder.has_relative_path()) folder = folder.parent_path();
    return Note(path) || IsThere(path);
  }
  // False if there is nothing, or a link that leads nowhere yet.
  bool Note(const fs::path& path) {
    const Signature signature = SignatureOf(path.string());
    if (signature != Signature() || IsThere(path)) noted_.try_emplace(path.string(), signature);
    return signature != Signature();
  }
  // There is more than is noted, so that it counts as changed.
  void CountAsChanged() { is_whole_ = false; }
  // What changed just before it was read may have changed again at what counts as the same time.
  bool IsSame() const {
    constexpr std::int64_t kSecond = 1'000'000'000, kTick = kSecond / 20;
    return is_whole_ && std::ranges::all_of(noted_, [&](const auto& each) {
             const std::int64_t changed = std::max(each.second[0], each.second[1]);
             const std::int64_t tick =
                 changed % kSecond == 0 ? 2 * kSecond : kTick;  // some file systems count whole seconds
             return changed < began_ - tick && SignatureOf(each.first) == each.second;
           });
  }

 private:
  using Signature = std::array<std::int64_t, 6>;  // the first are times of changes; all 0: there is nothing
  static Signature SignatureOf(const std::string& path) {
    struct stat is {};
    if (::stat(path.c_str(), &is) != 0) return {};
    const auto time = [](const timespec& at) { return at.tv_sec * std::int64_t{1'000'000'000} + at.tv_nsec; };
    return {
        time(is.st_mtim), time(is.st_ctim), static_cast<std::int64_t>(is.st_dev), static_cast<std::int64_t>(is.st_ino),
        is.st_size,       is.st_mode};
  }

  const std::int64_t began_ = std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  std::map<std::string, Signature> noted_;
  bool is_whole_ = true;
};

// Adds the skills, or the files NAME.md, of `folder`, each as `take` reads it.
void AddFrom(const std::string& folder, bool skills, std::vector<File>& files, Seen& seen,
             const std::function<File(const std::string& path)>& take) {
  if (!seen.Look(folder)) return;
  bool cut = false;
  std::error_code failed;
  fs::directory_iterator entry(folder, failed), end;
  std::size_t looked_at = 0;
  for (; skills && !failed && entry != end && looked_at < kMostLookedAt; ++looked_at, entry.increment(failed)) {
    seen.Note(entry->path());  // where a skill may appear
  }
  if (looked_at == kMostLookedAt) seen.CountAsChanged();
  for (const std::string& path : skills ? SkillsIn(folder, cut) : NamedFilesIn(folder, cut)) {
    seen.Look(path);
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

// The files as they were read, with the list of allowed ones, which is read when it is first needed.
class InstructionFiles::Reading {
 public:
  explicit Reading(std::string trust_file) : trust_file_(std::move(trust_file)) {}

  // Sets the state of a file that tools could have written.
  void Judge(File& file) {
    if (file.state == State::kUnusable) return;
    if (!allowed_ && !trust_file_.empty()) seen.Look(trust_file_);
    if (!allowed_) allowed_ = TrustedFiles(trust_file_).Read();
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

  Seen seen;
  std::vector<File> files;

 private:
  const std::string trust_file_;
  std::optional<Result<FileDigests>> allowed_;
};

InstructionFiles::InstructionFiles(const Options& options, std::string workspace, bool with_skills)
    : workspace_(std::move(workspace)),
      config_directory_(ConfigDirectoryOf(options)),
      with_skills_(with_skills),
      own_(config_directory_ + "/" + kInstructionsName),
      trust_file_(options.trust_file) {
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
  const MutexLock lock(mutex_);
  if (last_ && last_->seen.IsSame()) return last_->files;
  last_.reset();
  const auto reading = std::make_shared<Reading>(trust_file_);
  std::vector<File>& files = reading->files;
  if (reading->seen.Look(own_)) files.push_back(Take(own_, ReadOwnFile(own_, kMaxInstructionFile)));
  for (const Folder& folder : folders_) {
    const auto file =
        std::ranges::find_if(folder.instructions, [&](const auto& path) { return reading->seen.Look(path); });
    if (file == folder.instructions.end() || *file == own_) continue;
    reading->Judge(files.emplace_back(TakeWithin(*file, LimitOf(folder), kMaxInstructionFile)));
  }
  if (with_skills_) AddSkills(files, *reading);
  for (auto& [own, shared, read] : kNamedKinds) {
    std::vector<File> named = NamedFiles(own, shared, *reading);
    read(named);
    std::move(named.begin(), named.end(), std::back_inserter(files));
  }
  last_ = reading;
  return files;
}

// A skill's head is parsed only when the skill is in use. Before a person has allowed it, its text is only shown.
void InstructionFiles::AddSkills(std::vector<File>& files, Reading& reading) const {
  const std::size_t first = files.size();
  for (const std::string& folder : own_skills_) {
    AddFrom(folder, /*skills=*/true, files, reading.seen, [&](const std::string& path) {
      File file = Take(path, ReadOwnFile(path, kMaxSkillFile));
      if (OpenToTools(path, workspace_, config_directory_)) reading.Judge(file);
      return file;
    });
  }
  for (const Folder& folder : folders_) {
    if (std::ranges::find(own_skills_, folder.skills) != own_skills_.end()) continue;
    AddFrom(folder.skills, /*skills=*/true, files, reading.seen, [&](const std::string& path) {
      File file = TakeWithin(path, LimitOf(folder), kMaxSkillFile);
      reading.Judge(file);
      return file;
    });
  }
  for (std::size_t i = first; i < files.size(); ++i) files[i].kind = Kind::kSkill;
  ReadHeads(files);
}

// The files NAME.md of one kind: `own` in the configuration folder, `shared` in the folders of a project.
std::vector<File> InstructionFiles::NamedFiles(const char* own, const char* shared, Reading& reading) const {
  std::vector<File> files;
  const std::string own_folder = config_directory_ + "/" + own;
  AddFrom(own_folder, /*skills=*/false, files, reading.seen,
          [](const std::string& path) { return Take(path, ReadOwnFile(path, kMaxNamedFile)); });
  for (const Folder& folder : folders_) {
    const std::string path = folder.path + (folder.path.ends_with('/') ? "" : "/") + shared;
    if (path == own_folder) continue;
    AddFrom(path, /*skills=*/false, files, reading.seen, [&](const std::string& each) {
      File file = TakeWithin(each, LimitOf(folder), kMaxNamedFile);
      reading.Judge(file);
      return file;
    });
  }
  return files;
}

std::vector<File> InstructionFiles::Agents() const {
  std::vector<File> files = List();
  std::erase_if(files, [](const File& file) { return file.kind != Kind::kAgent; });
  return files;
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
  return TrustedFiles(trust_file_).Allow({{PlaceOf(file->path), file->digest}});
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
