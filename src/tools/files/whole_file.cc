#include "tools/files/whole_file.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/try.h"
#include "domain/file_kind.h"
#include "tools/files/workspace.h"
#include "tools/text_file.h"

namespace reprise {

Result<WholeFile> ReadWholeFile(const std::string& path, int fd, std::string begin, const ToolContext& context) {
  static constexpr std::size_t kMostBytes = 16u << 20;
  std::string content = std::move(begin);
  std::string chunk(64 * 1024, '\0');
  while (content.size() <= kMostBytes) {
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail(WorkspaceError(errno));
    if (got == 0) break;
    content.append(chunk, 0, static_cast<std::size_t>(got));
  }
  if (content.size() > kMostBytes)
    return Fail(ErrorCode::kInvalidArgument, "it is a binary file, too large to look at");
  const std::string name = path.substr(path.find_last_of('/') + 1);
  FileNature nature = NatureOf(name, "", content);
  if (!nature.problem.empty()) return Fail(ErrorCode::kInvalidArgument, "it is an image, but " + nature.problem);
  if (nature.kind == FileKind::kImage) {
    ToolOutcome image{.output = "the image " + QuotedPath(path) + ", " + nature.mime_type};
    image.files.push_back({.mime_type = nature.mime_type, .filename = name, .content = std::move(content)});
    return WholeFile{.image = std::move(image)};
  }
  if (!IsDocument(nature.kind) || context.documents == nullptr) {
    return Fail(ErrorCode::kInvalidArgument, "it is a binary file, not text");
  }
  const auto document = TRY(MakeFile(name, nature.mime_type, std::move(content)));
  return WholeFile{.text = TRY(context.documents->Read(document, context.stop))};
}

}  // namespace reprise
