#include "http/file_preview_body.h"

#include <nlohmann/json.hpp>

namespace reprise {

void AddTo(Json& body, const FilesPreview& preview) {
  Json& list = body["files"] = Json::array();
  for (const FilePreview& file : preview.files) {
    list.push_back({{"path", file.path}, {"change", file.change}, {"conflict", !file.conflict.empty()}});
    if (!file.conflict.empty()) list.back()["reason"] = file.conflict;
    if (file.imported) list.back()["imported"] = true, list.back()["diff"] = file.diff;
  }
  if (preview.omitted > 0) body["omitted"] = preview.omitted;
}

}  // namespace reprise
