#include "engine/named_files.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "approval/decision.h"
#include "base/json.h"
#include "base/try.h"

namespace reprise {
namespace {

constexpr std::string_view kReadingTool = "read_file";

Error NotReadable(std::string why) {
  return Error{.code = ErrorCode::kForbidden, .reason = "not_readable", .message = std::move(why)};
}

}  // namespace

Result<const WorkspaceReader*> NamedFiles::Reader() const {
  if (services_.parts.workspace_reader != nullptr) return services_.parts.workspace_reader;
  return Fail(Error{.code = ErrorCode::kNotFound,
                    .reason = "no_workspace",
                    .message = "this server has no workspace whose files could be named"});
}

// In the mode that asks, whatever holds for the server: nobody is here to be asked, and no chat's grants count.
Result<void> NamedFiles::CheckReadable(const std::string& path) const {
  const auto tools = services_.parts.tools.Current();
  Tool* const tool = tools->Find(kReadingTool);
  if (tool == nullptr) return Fail(NotReadable("the configuration of this server does not let files be read"));
  const ReviewedCall call{
      .call = {.id = {}, .name = std::string(kReadingTool), .arguments = DumpJson({{"path", path}})},
      .offered = {.tools = tools, .tool = tool}};
  const ApprovalPolicy policy{.nobody_to_ask = true, .rules = services_.options.rules};
  if (Decide(call, AgentState{}, policy).run() != nullptr) return {};
  return Fail(
      NotReadable("the agent may not read this file without a question (the configuration says so, or you keep secrets "
                  "there); what you upload yourself it may"));
}

Result<WorkspaceReader::Listing> NamedFiles::Find(std::string_view text, std::size_t limit) const {
  const auto* const reader = TRY(Reader());
  return reader->Find({.text = std::string(text), .limit = limit, .accepts = [this](const std::string& path) {
                         return CheckReadable(path).has_value();
                       }});
}

Result<StoredFile> NamedFiles::Read(std::string_view path) const {
  const auto* const reader = TRY(Reader());
  TRY(CheckReadable(std::string(path)));
  auto content = reader->Read(path);
  if (!content) {
    Error error = std::move(content.error());
    if (error.code == ErrorCode::kNotFound) error.reason = "no_such_file";
    if (error.code == ErrorCode::kTooLarge) error.reason = "file_too_large";
    error.detail.clear();  // it is the person's, and no trouble of the server
    return Fail(std::move(error));
  }
  // As of what tools say.
  if (!services_.redactor.empty() && IsText(*content)) content = services_.redactor.Redacted(*std::move(content));
  return MakeFile(path, "", *std::move(content));
}

}  // namespace reprise
