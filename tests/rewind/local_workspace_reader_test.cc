#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "rewind/workspace_files.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise {
namespace local_workspace_reader_test {

namespace fs = std::filesystem;

struct World {
  TempDirectory folder;
  fs::path root = fs::path(folder.path()) / "workspace";

  World() { fs::create_directory(root); }
  void Write(const std::string& path, const std::string& content = "") const {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path, std::ios::binary) << content;
  }
  // The paths; " ..." behind them if there may be more.
  std::string Found(WorkspaceReader::Query query, LocalWorkspaceReader::Limits limits = {}) const {
    const Workspace workspace(root.string(), {(root / "chats").string()}, {(root / ".ssh").string()});
    const auto listing = LocalWorkspaceReader(workspace, limits).Find(query);
    REQUIRE(listing.has_value());
    std::string text;
    for (const auto& file : listing->files) text += (text.empty() ? "" : " ") + file.path;
    return text + (listing->complete ? "" : " ...");
  }
};

TEST_CASE("LocalWorkspaceReader: finds entries near the top in a workspace of any size", "[rewind]") {
  World world;
  for (int i = 0; i < 300; ++i) world.Write("many/folder" + std::to_string(i) + "/deep.txt");
  world.Write("near.txt");
  world.Write("one/near.txt");
  CHECK(world.Found({.text = "near"}) == "near.txt one/near.txt");
  CHECK(world.Found({.text = "near"}, {.entries = 10}).starts_with("near.txt"));
  CHECK(world.Found({.text = "near"}, {.entries = 10}).ends_with(" ..."));
  CHECK(world.Found({.text = "deep", .limit = 1}, {.entries = 10}) == " ...");
  // No time at all: it has to end.
  CHECK(world.Found({.text = "near"}, {.time = std::chrono::milliseconds(0)}).ends_with(" ..."));
}

TEST_CASE("LocalWorkspaceReader: asks `accepts` about the best candidates, up to the limit", "[rewind]") {
  World world;
  for (int i = 10; i < 60; ++i) world.Write("f" + std::to_string(i));
  std::vector<std::string> asked;
  const auto refuses = [&](const std::string& path) {
    asked.push_back(path);
    return path == "f12";
  };
  CHECK(world.Found({.text = "f", .limit = 2, .accepts = refuses}, {.candidates = 5}) == "f12 ...");
  CHECK(asked == std::vector<std::string>{"f10", "f11", "f12", "f13", "f14"});
  asked.clear();
  CHECK(world.Found({.text = "f5", .limit = 2, .accepts = refuses}).empty());
  CHECK(asked.size() == 10);
}

TEST_CASE("LocalWorkspaceReader: skips secrets, the server's own files and git's, without asking", "[rewind]") {
  World world;
  for (const char* path : {".ssh/key", "chats/key", ".git/key", "sub/.git/key", "sub/key"}) world.Write(path, "x");
  fs::create_symlink(".ssh/key", world.root / "key-link");
  std::vector<std::string> asked;
  CHECK(world.Found({.text = "key", .accepts = [&](const std::string& path) {
                       asked.push_back(path);
                       return true;
                     }}) == "sub/key");
  CHECK(asked == std::vector<std::string>{"key-link", "sub/key"});
}

TEST_CASE("LocalWorkspaceReader: reads up to the limit of bytes", "[rewind]") {
  World world;
  world.Write("just", "12345");
  world.Write("beyond", "123456");
  const Workspace workspace(world.root.string(), {}, {(world.root / ".ssh").string()});
  const LocalWorkspaceReader reader(workspace, {.file_bytes = 5});
  CHECK(reader.Read("just") == "12345");
  CHECK(reader.Read("beyond").error().code == ErrorCode::kTooLarge);
  CHECK(reader.Read("none").error().code == ErrorCode::kNotFound);
  CHECK(reader.Read("../just").error().code == ErrorCode::kForbidden);
  world.Write(".ssh/key");
  CHECK(reader.Read(".ssh/key").error().code == ErrorCode::kForbidden);
}

TEST_CASE("LocalWorkspaceReader: a workspace that has gone is an error", "[rewind]") {
  World world;
  const Workspace workspace(world.root.string(), {});
  const LocalWorkspaceReader reader(workspace, {});
  fs::remove(world.root);
  CHECK(reader.Find({}).error().code == ErrorCode::kIo);
}

}  // namespace local_workspace_reader_test
}  // namespace reprise
