#include "http/instruction_handlers.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/try.h"
#include "http/error_response.h"
#include "http/requests.h"

namespace reprise {
namespace {

Json ListOf(const ProjectInstructions* instructions) {
  Json files = Json::array();
  for (const auto& file : instructions ? instructions->List() : std::vector<ProjectInstructions::File>()) {
    Json entry = {{"path", file.path}, {"kind", ToString(file.kind)}, {"state", ToString(file.state)}};
    if (!file.name.empty()) {
      entry["name"] = file.name;
      entry["description"] = file.description;
    }
    if (file.digest.empty()) {
      entry["problem"] = file.problem;
    } else {
      entry["digest"] = file.digest;
      entry["text"] = file.text;
    }
    files.push_back(std::move(entry));
  }
  return {{"files", std::move(files)}};
}

Result<Outcome> List(const HandlerContext& context, const Request&) {
  return JsonReply(ListOf(context.engine.instructions()));
}

Result<Outcome> Trust(const HandlerContext& context, const Request& request) {
  const auto body = TRY(ParseTrustInstructionsBody(request.body));
  ProjectInstructions* const instructions = context.engine.instructions();
  if (instructions == nullptr) {
    return Fail(Error{.code = ErrorCode::kNotFound,
                      .reason = "no_such_file",
                      .message = "this server tells models of no instructions"});
  }
  TRY(instructions->Allow(body.path, body.digest));
  return JsonReply(ListOf(instructions));
}

}  // namespace

void AddInstructionRoutes(Router& router, const HandlerContext& context) {
  const auto with = [&context](Result<Outcome> (*handler)(const HandlerContext&, const Request&)) {
    return [&context, handler](const Request& request) { return handler(context, request); };
  };
  router.Add("GET", "/instructions", with(List), Lane::kWork, BodyKind::kJson, Access::kOperator);
  router.Add("POST", "/instructions/trust", with(Trust), Lane::kWork, BodyKind::kJson, Access::kOperator);
}

}  // namespace reprise
