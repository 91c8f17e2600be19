#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "reprise/result.h"

namespace reprise {

// The workspace files in the editor of one chat, with unsaved changes. Thread-safe.
class EditorFiles {
 public:
  virtual ~EditorFiles() = default;
  // The editor's content of the file at this absolute path, UTF-8. Blocks some seconds at most. nullopt: no editor is
  // connected, or it does not answer: use the file on disk.
  virtual std::optional<std::string> Read(const std::string& path, const std::stop_token& stop) = 0;
  // Replaces the editor's content. Blocks likewise. kUnavailable: no editor accepts writes, or it does not answer; kIo:
  // it refuses, and says why.
  virtual Result<void> Write(const std::string& path, const std::string& content, const std::stop_token& stop) = 0;
};

}  // namespace reprise
