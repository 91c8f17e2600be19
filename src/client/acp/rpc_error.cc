#include "client/acp/rpc_error.h"

namespace reprise::rpc {

Json ErrorObject(int code, const std::string& message, const std::string& reason) {
  Json error = {{"code", code}, {"message", message}};
  if (!reason.empty()) error["data"] = {{"code", reason}};
  return error;
}

Json ErrorObject(const Error& error) {
  const std::string& reason = error.reason;
  const auto is_one_of = [&reason](std::initializer_list<const char*> reasons) {
    for (const char* each : reasons) {
      if (reason == each) return true;
    }
    return false;
  };
  int code = kInternalError;
  if (is_one_of({"not_found", "no_such_file"})) code = kResourceNotFound;
  if (is_one_of({"unauthenticated", "invalid_token"})) code = kAuthRequired;
  if (is_one_of({"busy"})) code = kInvalidRequest;
  if (error.code == ErrorCode::kInvalidArgument ||
      is_one_of({"unknown_model", "mode_not_allowed", "too_large", "no_such_workspace", "workspace_not_allowed",
                 "works_elsewhere"}) ||
      reason.starts_with("invalid_")) {
    if (code == kInternalError) code = kInvalidParams;
  }
  return ErrorObject(code, error.message, reason);
}

}  // namespace reprise::rpc
