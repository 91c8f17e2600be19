#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// The folders of one user, for SecretPaths.
struct UserFolders {
  std::vector<std::string> homes;    // $HOME, and the system's entry for the user
  std::vector<std::string> configs;  // $XDG_CONFIG_HOME if set; the others likewise
  std::vector<std::string> data;
  std::vector<std::string> states;
};
// The folders of the user who runs this program, from the current environment.
UserFolders FoldersOfThisUser();

// The files and folders where programs keep credentials and what the user has typed or said: keys, passwords, tokens,
// cookies, histories. Most will not exist. Only these paths are protected, which matters if the workspace is a home
// folder. Canonical as far as they exist.
std::vector<std::string> SecretPaths(const UserFolders& folders);

}  // namespace reprise
