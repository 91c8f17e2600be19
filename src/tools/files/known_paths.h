#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// Whose secrets: the folders of one user.
struct UserFolders {
  std::vector<std::string> homes;    // what HOME says, and what the system knows
  std::vector<std::string> configs;  // $XDG_CONFIG_HOME, if it is set; likewise the others
  std::vector<std::string> data;
  std::vector<std::string> states;
};
// Of the user who runs this program, as the environment is now.
UserFolders FoldersOfThisUser();

// Where programs keep what proves who their user is, and what the user has typed or said: keys, passwords, tokens,
// cookies, histories. Files and folders; most will not exist. What is not in here is no secret to anybody: whoever
// gives the agent a home folder as its workspace relies on it. Canonical, as far as they are there.
std::vector<std::string> SecretPaths(const UserFolders& folders);

// What the user's own tools run or obey by themselves when somebody works in a folder: git's configuration and hooks,
// tasks of editors, what a shell or an agent loads. Whoever may write one runs something outside the sandbox later. The
// one table is RunByOthers::Table(); docs/trust.md shows it.

struct RunByOthers {
  // By `/`-separated names below a folder of the workspace, each with * and ? as in fnmatch(3); `**` at the end is
  // everything below. In a home folder alone if `only_in_home`.
  std::string_view pattern;
  std::string_view who;
  bool only_in_home = false;

  static const std::vector<RunByOthers>& Table();
};

// Who runs the file at `path` (relative to the workspace, in its shortest form; upper and lower case count as the same)
// by itself: "git", "direnv"; empty: nobody that is known. `home` is the home folder relative to the workspace ("."
// is the workspace itself); empty: it does not lie in there.
std::string_view WhoRuns(std::string_view path, std::string_view home);
// Whether something below a folder at `path` may be such a file: it must not be passed over.
bool MayHoldWhatOthersRun(std::string_view path, std::string_view home);

// Below a folder called ".git": what git itself changes all the time and nobody runs (objects, refs, the index, its
// messages). `path` is what follows the folder's name.
bool IsGitsOwnData(std::string_view path);

// What is there of the table in `folder` and, within limits, below it: absolute. `missing`: the places right in
// `folder` and in the git folders found where nothing is yet.
struct FoundRunByOthers {
  std::vector<std::string> there, missing;
};
FoundRunByOthers FindRunByOthers(const std::string& folder, const std::string& home);

// `home` (absolute) relative to `workspace` (absolute); empty if it does not lie there.
std::string HomeIn(const std::string& workspace, std::string_view home);

}  // namespace reprise
