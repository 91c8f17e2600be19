#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// The files that the user's own tools run or obey by themselves in a folder: git's configuration and hooks, tasks of
// editors, files that a shell or an agent loads. A command that may write them escapes the sandbox later. The only
// table is RunByOthers::Table(); docs/trust.md shows it.

struct RunByOthers {
  // `/`-separated names below a folder of the workspace, each with * and ? as in fnmatch(3); a final `**` is everything
  // below. Applies only to the home folder if `only_in_home`.
  std::string_view pattern;
  std::string_view who;
  bool only_in_home = false;

  static const std::vector<RunByOthers>& Table();
};

// The program that runs the file at `path` by itself ("git", "direnv"); empty if none is known. `path` is relative to
// the workspace, in its shortest form; case is ignored. `home` is the home folder relative to the workspace ("." is the
// workspace itself); empty if it lies elsewhere.
std::string_view WhoRuns(std::string_view path, std::string_view home);
// Whether the folder at `path` may contain such files, so that it must not be skipped.
bool MayHoldWhatOthersRun(std::string_view path, std::string_view home);

// Whether `path`, relative to a ".git" folder, is data that git itself changes all the time and never runs (objects,
// refs, the index, messages).
bool IsGitsOwnData(std::string_view path);

// Absolute paths in `folder` and, within limits, below it that match the table, but none in the folders `closed`, which
// are absolute too. `missing` has the places without an
// entry directly in `folder` and in the git folders found.
struct FoundRunByOthers {
  std::vector<std::string> there, missing;
};
FoundRunByOthers FindRunByOthers(const std::string& folder, const std::string& home,
                                 const std::vector<std::string>& closed = {});

// `home` (absolute) relative to `workspace` (absolute); empty if it lies elsewhere.
std::string HomeIn(const std::string& workspace, std::string_view home);

}  // namespace reprise
