#pragma once

#include <sys/types.h>

#include <string>

namespace reprise {

// A new directory (mode 0700) below the system's directory for temporary files. Removed with its content.
class TempDirectory {
 public:
  TempDirectory();
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  // Makes a file in it. Returns its path.
  std::string Write(const std::string& name, const std::string& text, mode_t mode = 0600) const;

 private:
  std::string path_;
};

}  // namespace reprise
