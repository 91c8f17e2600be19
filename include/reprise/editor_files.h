#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "reprise/result.h"

namespace reprise {

// The files of the workspace as the editor has them that is connected with one chat: with what nobody has saved yet.
// Thread-safe.
class EditorFiles {
 public:
  virtual ~EditorFiles() = default;
  // What the editor has of the file at this absolute path, UTF-8. Blocks, for some seconds at most. nullopt: no editor
  // is connected, or it does not say: the file is what the disk has.
  virtual std::optional<std::string> Read(const std::string& path, const std::stop_token& stop) = 0;
  // Has the editor put `content` in the place of what it has. Blocks likewise. kUnavailable: there is none that does,
  // or it does not answer; kIo: it refuses, and says why.
  virtual Result<void> Write(const std::string& path, const std::string& content, const std::stop_token& stop) = 0;
};

}  // namespace reprise
