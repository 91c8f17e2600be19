#include "cli/new_rules.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/posix_file_system.h"
#include "base/terminal_text.h"
#include "base/try.h"

namespace reprise {

Result<NewRules> ReadNewRules(const std::string& path, const Environment& environment) {
  constexpr std::uint64_t kMostBytes = 1 << 20;
  const std::string name = VisibleLine(path);
  auto text = Disk().ReadFile(path, kMostBytes);
  if (!text && IsNotFound(text.error())) return Fail(ErrorCode::kNotFound, "there is no file " + name);
  if (!text && text.error().code == ErrorCode::kTooLarge) {
    return Fail(ErrorCode::kInvalidArgument, name + " has more than 1 MiB, which no configuration has");
  }
  const auto wrong = [&](const Error& why) {
    return MakeError(ErrorCode::kInvalidArgument, name + ": " + why.message);
  };
  auto json = ParseJsonWithComments(TRY(std::move(text)));
  if (!json) return Fail(wrong(json.error()));
  const bool is_list = json->is_array();
  const bool has_list = json->is_object() && json->size() == 1 && json->contains("rules");
  if (!is_list && !json->is_object()) {
    return Fail(ErrorCode::kInvalidArgument, name + " is neither an array of rules nor a configuration");
  }
  NewRules rules{.options = {}, .is_configuration = !is_list && !has_list};
  const Json document = is_list ? Json{{"tools", {{"rules", *json}}}} : has_list ? Json{{"tools", *json}} : *json;
  const auto applied = ApplyConfig(rules.options, DumpJson(document), environment);
  if (!applied) return Fail(wrong(applied.error()));
  return rules;
}

}  // namespace reprise
