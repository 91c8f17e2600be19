#include "app/instruction_files.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "app/prompt_folder.h"
#include "base/private_file.h"
#include "base/utf8.h"
#include "crypto/digest.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;
using File = ProjectInstructions::File;
using State = ProjectInstructions::State;

constexpr std::size_t kMostFolders = 32;
constexpr std::size_t kMaxFile = 256 * 1024;  // that is read at all

constexpr std::string_view kIntroduction =
    "What people have written down for agents that work here. What the user says in the conversation goes before it; "
    "of two files that contradict each other the later one counts.";

// From the top down to the workspace. `project` becomes the top of its git work tree.
std::vector<std::string> FoldersOf(const std::string& workspace, std::string& project) {
  std::vector<std::string> folders;
  if (workspace.empty()) return folders;
  const char* const home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): read at the start
  std::error_code failed;
  const fs::path end = home ? fs::weakly_canonical(home, failed) : fs::path();
  for (fs::path folder = workspace; folders.size() < kMostFolders; folder = folder.parent_path()) {
    folders.push_back(folder.string());
    if (fs::exists(folder / ".git", failed)) project = folder.string();
    if (!project.empty() || folder == end || !folder.has_relative_path()) break;
  }
  std::reverse(folders.begin(), folders.end());
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

bool IsThere(const std::string& path) {
  std::error_code failed;
  return fs::symlink_status(path, failed).type() != fs::file_type::not_found && !failed;
}

// A file of a project, and nothing that a link in it leads to elsewhere.
File TakeWithin(const std::string& path, const std::string& project) {
  std::error_code failed;
  const fs::path real = fs::canonical(path, failed);
  if (failed) return Unusable(path, "cannot read " + path + ": " + failed.message());
  if (!LiesBelow(real, project)) return Unusable(path, path + " leads out of " + project);
  return Take(path, ReadSmallFile(real.string(), kMaxFile));
}

std::string_view WithoutBlanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  return begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// At most so many bytes, in whole characters.
std::string_view FirstBytes(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  text = text.substr(0, bytes);
  return text.substr(0, text.size() - IncompleteUtf8Tail(text));
}

}  // namespace

InstructionFiles::InstructionFiles(const Options& options, std::string workspace)
    : own_(ConfigDirectoryOf(options) + "/" + kInstructionsName),
      folders_(FoldersOf(workspace, project_)),
      trusted_(options.trust_file) {}

std::vector<File> InstructionFiles::List() const {
  std::vector<File> files;
  if (IsThere(own_)) files.push_back(Take(own_, ReadOwnFile(own_, kMaxFile)));
  Result<FileDigests> allowed = FileDigests();
  bool is_read = false;
  for (const std::string& folder : folders_) {
    const std::string path = (fs::path(folder) / kInstructionsName).string();
    if (path == own_ || !IsThere(path)) continue;
    if (!std::exchange(is_read, true)) allowed = trusted_.Read();
    File& file = files.emplace_back(TakeWithin(path, project_.empty() ? folder : project_));
    if (file.state == State::kUnusable) continue;
    if (!allowed) {
      file = Unusable(path, allowed.error().message);
      continue;
    }
    const auto known = allowed->find(PlaceOf(path));
    if (known == allowed->end()) file.state = State::kNew;
    if (known != allowed->end() && known->second != file.digest) file.state = State::kChanged;
  }
  return files;
}

Result<void> InstructionFiles::Allow(std::string_view path, std::string_view digest) {
  const std::vector<File> files = List();
  const auto file = std::find_if(files.begin(), files.end(), [&](const File& each) { return each.path == path; });
  if (file == files.end() || file->digest.empty()) {
    return Fail(Error{.code = ErrorCode::kNotFound,
                      .reason = "no_such_file",
                      .message = "there is no such file of instructions; GET /instructions lists them"});
  }
  if (file->digest != digest) {
    return Fail(Error{.code = ErrorCode::kConflict,
                      .reason = "stale",
                      .message = "the file has changed meanwhile; look at it again (GET /instructions)"});
  }
  if (file->state == State::kUsed) return {};
  return trusted_.Allow({{PlaceOf(file->path), file->digest}});
}

std::string TextOf(const std::vector<File>& files) {
  std::size_t room = kMaxInstructions;
  std::string text;
  for (auto file = files.rbegin(); file != files.rend(); ++file) {  // the nearest has the first claim to the room
    const std::string_view whole = file->state == State::kUsed ? WithoutBlanks(file->text) : std::string_view();
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
