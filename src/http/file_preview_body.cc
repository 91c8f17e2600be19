#include "http/file_preview_body.h"

#include <nlohmann/json.hpp>

namespace reprise {

Json ToJson(const std::vector<FilePreview>& files) {
  Json list = Json::array();
  for (const FilePreview& file : files) {
    list.push_back({{"path", file.path}, {"change", file.change}, {"conflict", !file.conflict.empty()}});
    if (!file.conflict.empty()) list.back()["reason"] = file.conflict;
  }
  return list;
}

}  // namespace reprise
