#include "base/path.h"

#include <string>

#include "support/test.h"

namespace reprise::path_test {

TEST_CASE("SearchFolders: all of a PATH, the empty ones too", "[base]") {
  using Folders = std::vector<std::filesystem::path>;
  CHECK(SearchFolders("/usr/bin:/bin") == Folders{"/usr/bin", "/bin"});
  CHECK(SearchFolders(":/bin::bin:") == Folders{"", "/bin", "", "bin", ""});
  CHECK(SearchFolders("") == Folders{""});
}

TEST_CASE("LiesBeneath: by whole names", "[base]") {
  CHECK(LiesBeneath("/a/b", "/a/b"));
  CHECK(LiesBeneath("/a/b/c", "/a/b"));
  CHECK_FALSE(LiesBeneath("/a/bc", "/a/b"));
  CHECK_FALSE(LiesBeneath("/a", "/a/b"));
}

TEST_CASE("Resolved: a relative path of which nothing exists becomes absolute, too", "[base]") {
  const std::string here = std::filesystem::current_path().string();
  CHECK(Resolved("no-such-folder/x").string() == here + "/no-such-folder/x");
}

}  // namespace reprise::path_test
