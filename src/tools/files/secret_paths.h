#pragma once

#include <string>
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

}  // namespace reprise
