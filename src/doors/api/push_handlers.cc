#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/try.h"
#include "doors/api/requests.h"
#include "doors/api/routes.h"
#include "doors/api/server.h"
#include "reprise/timestamp.h"
#include "wire/error_response.h"
#include "wire/request_values.h"

namespace reprise {
namespace {

Result<DevicePush*> PushOf(const HandlerContext& context) {
  if (DevicePush* const push = context.shared.options.push) return push;
  return Fail(ErrorCode::kNotFound, "this server tells no devices that something waits");
}

Json DeviceBody(const DevicePush::Device& device) {
  return {{"id", device.id},
          {"name", device.name},
          {"service", device.service},
          {"created_at", FormatTimestamp(device.created_at)}};
}

Result<Outcome> ListDevices(const HandlerContext& context, const Request& request) {
  DevicePush* const push = TRY(PushOf(context));
  Json devices = Json::array();
  for (const auto& each : TRY(push->List(request.principal))) devices.push_back(DeviceBody(each));
  auto key = TRY(push->PublicKey());
  return JsonReply({{"public_key", std::move(key)}, {"devices", std::move(devices)}});
}

Result<Outcome> AddDevice(const HandlerContext& context, const Request& request) {
  const auto wanted = TRY(ParseDeviceBody(request.body));
  return JsonReply(DeviceBody(TRY(TRY(PushOf(context))->Add(request.principal, wanted))));
}

Result<Outcome> RemoveDevice(const HandlerContext& context, const Request& request) {
  TRY(ParseEmptyBody(request.body));
  const std::string& id = request.captures.at(0);
  TRY(TRY(PushOf(context))->Remove(request.principal, id));
  return JsonReply({{"status", "deleted"}, {"device_id", id}});
}

}  // namespace

void AddPushRoutes(Router& router, const HandlerContext& context) {
  const auto with = HandlersOf(context);
  router.Add("GET", "/push/devices", with(ListDevices));
  router.Add("POST", "/push/devices", with(AddDevice));
  router.Add("DELETE", "/push/devices/*", with(RemoveDevice));
}

}  // namespace reprise
