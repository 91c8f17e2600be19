#include "client/archive/foreign_sessions.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/path.h"
#include "base/text.h"
#include "base/try.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr int kMostDeep = 10;
constexpr std::size_t kMostFiles = 500'000;

// A folder, or a database, below the folder that a variable names, or else below $HOME.
struct ToolFolder {
  std::string_view format, variable, below_variable, below_home;  // `variable` may be empty
};
constexpr ToolFolder kFolders[] = {
    {"claude-code", "CLAUDE_CONFIG_DIR", "projects", ".claude/projects"},
    {"claude-code", "XDG_CONFIG_HOME", "claude/projects", ".config/claude/projects"},
    {"codex", "CODEX_HOME", "sessions", ".codex/sessions"},
    {"codex", "CODEX_HOME", "archived_sessions", ".codex/archived_sessions"},
    {"opencode", "XDG_DATA_HOME", "opencode/opencode.db", ".local/share/opencode/opencode.db"},
    {"opencode", "XDG_DATA_HOME", "opencode/storage/session", ".local/share/opencode/storage/session"},
    {"goose", "XDG_DATA_HOME", "goose/sessions/sessions.db", ".local/share/goose/sessions/sessions.db"},
    {"goose", "XDG_DATA_HOME", "goose/sessions", ".local/share/goose/sessions"},
    {"gemini", "", "", ".gemini/tmp"},
    {"cline", "CLINE_DIR", "data/tasks", ".cline/data/tasks"},
    {"cline", "XDG_CONFIG_HOME", "Code/User/globalStorage/saoudrizwan.claude-dev/tasks",
     ".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks"},
    {"cline", "", "", ".vscode-server/data/User/globalStorage/saoudrizwan.claude-dev/tasks"},
};

// Codex compresses old sessions; one that was unpacked stands beside.
bool MayHoldSessions(const fs::path& file) {
  const std::string name = file.filename().string(), extension = file.extension().string();
  std::error_code ignored;
  const bool is_packed = name.ends_with(".jsonl.zst") && !fs::exists(fs::path(file).replace_extension(), ignored);
  return (extension == ".json" || extension == ".jsonl" || is_packed) && !name.starts_with('.') &&
         !name.starts_with("agent-");
}

// The files of a folder and those below that may hold sessions, by name. Follows no link.
std::vector<std::string> FilesBelow(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code failed;
  const auto skip = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator each(folder, skip, failed), end;
       !failed && each != end && files.size() < kMostFiles; each.increment(failed)) {
    std::error_code ignored;
    if (each.depth() >= kMostDeep || each->path().filename() == "subagents") each.disable_recursion_pending();
    if (fs::is_regular_file(each->symlink_status(ignored)) && MayHoldSessions(each->path()))
      files.push_back(each->path().string());
  }
  std::ranges::sort(files);
  return files;
}

class Finder {
 public:
  Finder(const WantedSessions& wanted, const std::function<Result<void>(FoundSession)>& visit,
         const std::function<void(const std::string& path, Error error)>& failed)
      : wanted_(wanted),
        folder_(wanted.folder.empty() ? "" : FullPath(wanted.folder)),
        visit_(visit),
        failed_(failed) {}

  Result<void> Look(const std::string& path) {
    if (!IsDirectory(path)) return LookAt(path, /*must_fit=*/true);
    for (const std::string& file : FilesBelow(path)) TRY(LookAt(file, /*must_fit=*/false));
    return {};
  }
  const PassedOver& passed_over() const { return passed_over_; }

 private:
  // Only the visitor's failures end the search.
  Result<void> LookAt(const std::string& path, bool must_fit) {
    const auto source = SourceText::Open(path);
    if (!source) return failed_(path, source.error()), Result<void>();
    if (!must_fit && wanted_.since && *source->changed_at() < *wanted_.since) {
      ++passed_over_.sessions;
      return {};
    }
    const auto format = RecognizeFormat(*source, wanted_.from);
    if (!format) return failed_(path, format.error()), Result<void>();
    if (*format == nullptr && must_fit) {
      const std::string tool = wanted_.from.empty() ? "a tool that is known here" : wanted_.from;
      failed_(path,
              Fail(ErrorCode::kInvalidArgument, path + ": it is no session of " + tool + " (docs/moves.md)").value());
    }
    if (*format == nullptr) return {};
    std::optional<Error> of_visitor;
    const auto look = [&](FoundSession session) -> Result<void> {
      if (!IsWanted(session)) return {};
      auto visited = visit_(std::move(session));
      if (!visited) of_visitor = visited.error();
      return visited;
    };
    auto looked = ForEachSession(*source, **format, path, look, [&](Error error) { failed_(path, std::move(error)); });
    if (of_visitor) return Fail(*std::move(of_visitor));
    if (!looked) failed_(path, std::move(looked.error()));
    return {};
  }

  bool IsWanted(const FoundSession& session) {
    const auto& updated = session.facts.updated;
    const std::string& folder = session.facts.folder;
    const bool is_old = wanted_.since && updated && *updated < *wanted_.since;
    const bool is_there = folder_.empty() || (!folder.empty() && FullPath(folder) == folder_);
    if (is_there && !is_old) return true;
    ++passed_over_.sessions;
    if (!is_there && folder.empty()) ++passed_over_.without_folder;
    return false;
  }

  const WantedSessions& wanted_;
  const std::string folder_;
  const std::function<Result<void>(FoundSession)>& visit_;
  const std::function<void(const std::string& path, Error error)>& failed_;
  PassedOver passed_over_;
};

}  // namespace

std::vector<std::string> FoldersOfTool(std::string_view format, const Environment& environment) {
  const std::string home = environment("HOME").value_or("");
  std::vector<std::string> folders;
  for (const ToolFolder& each : kFolders) {
    if (each.format != format) continue;
    const auto named = each.variable.empty() ? std::nullopt : environment(std::string(each.variable));
    if (named && !named->empty()) {
      folders.push_back(*named + "/" + std::string(each.below_variable));
    } else if (!home.empty()) {
      folders.push_back(home + "/" + std::string(each.below_home));
    }
  }
  return folders;
}

Result<bool> HoldsForeignSessions(const std::string& path) {
  for (const std::string& file : IsDirectory(path) ? FilesBelow(path) : std::vector{path}) {
    const auto source = SourceText::Open(file);
    if (!source) return Fail(source.error());
    const auto format = RecognizeFormat(*source, {});
    if (!format && IsPacked(*source).value_or(false)) return true;  // the search says what to do
    if (!format && file == path) return Fail(format.error());
    if (format && *format != nullptr) return true;
  }
  return false;
}

Result<PassedOver> ForEachForeignSession(const WantedSessions& wanted, const Environment& environment,
                                         const std::function<Result<void>(FoundSession)>& visit,
                                         const std::function<void(const std::string& path, Error error)>& failed) {
  Finder finder(wanted, visit, failed);
  for (const std::string& path : wanted.paths) TRY(finder.Look(path));
  if (!wanted.paths.empty()) return finder.passed_over();
  const auto folders = FoldersOfTool(wanted.from, environment);
  if (folders.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                "sessions of " + wanted.from + " are in the file that it exports: name it");
  }
  bool has_any = false;
  for (const std::string& folder : folders) {
    const bool is_database = IsFile(folder);
    if (!is_database && !IsDirectory(folder)) continue;
    has_any = true;
    TRY(finder.Look(folder));
    if (is_database) break;  // the tool has moved into it what the folder has
  }
  if (!has_any) {
    return Fail(ErrorCode::kNotFound,
                "there are no sessions of " + wanted.from + ": no folder " + Joined(folders, ", "));
  }
  return finder.passed_over();
}

bool HasSeveral(const WantedSessions& wanted, const Environment& environment, std::size_t chats) {
  std::optional<FoundSession> alone;  // so far: it is read only if there is another chat
  const auto visit = [&](FoundSession session) -> Result<void> {
    if (chats == 0 && !alone) return alone = std::move(session), Result<void>();
    if (alone && alone->plan()) ++chats;
    alone.reset();
    if (session.plan()) ++chats;
    return chats > 1 ? Fail(ErrorCode::kCancelled, "two are enough") : Result<void>();
  };
  // The import itself tells what cannot be read.
  (void)ForEachForeignSession(wanted, environment, visit, [](const std::string&, const Error&) {});
  return chats > 1;
}

std::optional<Timestamp> ParseSince(const std::string& text) {
  constexpr int kMost = 100'000;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error == std::errc() && number >= 0 && number <= kMost) {
    if (unit == "d") return Now() - std::chrono::days(number);
    if (unit == "h") return Now() - std::chrono::hours(number);
  }
  const auto date = ParseTimestamp(text + "T00:00:00Z");
  return date ? std::optional(*date) : std::nullopt;
}

}  // namespace reprise
