#pragma once

#include <memory>
#include <optional>
#include <string>

#include "reprise/tool.h"

namespace reprise {

// A file that is not plain text, read as a whole: an image, or a document's text.
struct WholeFile {
  std::optional<ToolOutcome> image{};
  std::shared_ptr<const std::string> text{};
};

// `begin`: what has been read of `fd`, which is at `path`, so far. The error is for the model: it is neither, or too
// large.
Result<WholeFile> ReadWholeFile(const std::string& path, int fd, std::string begin, const ToolContext& context);

}  // namespace reprise
