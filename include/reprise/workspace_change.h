#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// What a file or directory has beside content and mode. A restore makes it anew without these.
struct FileExtras {
  bool group = false;       // another than new files get there
  bool set_id = false;      // the set-user or set-group bit of a file
  bool hard_links = false;  // further names
  bool attributes = false;  // extended ones, an access list among them
  bool operator==(const FileExtras&) const = default;
};
// Part of the wire and of the file format.
struct FileExtraName {
  std::string_view name;
  bool FileExtras::*member;
};
inline constexpr FileExtraName kFileExtraNames[] = {{"group", &FileExtras::group},
                                                    {"set_id_bits", &FileExtras::set_id},
                                                    {"hard_links", &FileExtras::hard_links},
                                                    {"extended_attributes", &FileExtras::attributes}};

// The content of a workspace path at one moment. Part of the wire and of the file format.
struct FileVersion {
  enum class Kind { kFile, kLink, kDirectory };
  Kind kind = Kind::kFile;
  // Permission bits; of a directory also set-group and sticky, which older records lack; 0 for a symbolic link.
  std::uint32_t mode = 0;
  std::uint64_t size = 0;        // bytes of the content; 0 for a directory
  std::string digest{};          // of the content, or a link's target: "sha256:" + 64 hex digits; empty: not kept
  std::int64_t modified_ns = 0;  // if not kept: modification time, nanoseconds since 1970
  FileExtras extras{};           // not compared: what a restore has made is the recorded version
  // Whether its content can be restored: blobs have it, or it has none.
  bool is_kept() const { return kind == Kind::kDirectory || !digest.empty(); }
  bool operator==(const FileVersion& other) const {
    return kind == other.kind && mode == other.mode && size == other.size && digest == other.digest &&
           modified_ns == other.modified_ns;
  }
};

inline constexpr std::uint32_t kFileBits = 0777, kDirectoryBits = 03777;

// A change of one path; nullopt: the path did not, or does not, exist.
struct WorkspaceChange {
  std::string path;  // relative to the workspace, any bytes but NUL; never "", ".." or through a symbolic link
  std::optional<FileVersion> before{}, after{};
  bool operator==(const WorkspaceChange&) const = default;
};

// The recorded changes, and the number of further changed paths.
struct WorkspaceChanges {
  std::vector<WorkspaceChange> recorded{};
  std::uint64_t omitted = 0;
  bool unseen = false;  // nothing is known of them
};

}  // namespace reprise
