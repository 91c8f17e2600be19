#include "app/device_push.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <chrono>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/folders.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/public_address.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "mcp/oauth_documents.h"
#include "reprise/timestamp.h"
#include "store/record.h"

namespace reprise {
namespace {

constexpr std::string_view kKeyName = "/.push_key", kDevicesName = "/.push_devices";
constexpr std::string_view kKeyType = "reprise/push-key", kDevicesType = "reprise/push-devices";
constexpr int kSchema = 1;
constexpr std::size_t kMostDevices = 10, kMaxEndpoint = 2000, kMaxDeviceName = 100;
constexpr std::uint64_t kMostWaitingCalls = 64;
constexpr std::size_t kMostUnderWay = 64;
constexpr std::size_t kPaddedTo = 256;
constexpr std::size_t kIdDigits = 32, kTopicBytes = 24;
constexpr std::chrono::seconds kServiceTimeout{10};
constexpr std::chrono::hours kKept{24};  // by the push service, for a device that is away
constexpr std::chrono::hours kTokenLife{12};

Error BadDevice(std::string message) { return Refused(Reason::kInvalidMember, std::move(message)); }

// The first hex digits of a digest.
std::string Opaque(std::string_view text) {
  const std::string digest = Sha256Digest({text});
  return digest.substr(digest.find(':') + 1, kIdDigits);
}

// False for a literal address that is not public. Names are looked up when something is sent.
bool MayBePublic(const std::string& host) {
  if (IsLoopbackHost(host) || LowerCase(host).ends_with(".localhost")) return false;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  const bool is_v6 = host.starts_with('[') && host.ends_with(']');
  if (is_v6 && ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6.sin6_addr) == 1) {
    return IsPublicAddress(reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
  }
  if (is_v6) return false;
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) != 1) return true;
  return IsPublicAddress(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
}

std::string_view KindName(Engine::Attention::Kind kind) {
  switch (kind) {
    case Engine::Attention::Kind::kApproval:
      return "approval";
    case Engine::Attention::Kind::kQuestion:
      return "question";
    case Engine::Attention::Kind::kEnded:
      return "ended";
  }
  return "ended";
}

Error Unread(std::string_view what, const std::string& path, const Error& why) {
  return MakeError(ErrorCode::kConflict, std::string(what) + " in " + path + " cannot be read (" + why.message +
                                             "), and is not written over; bring the file or its key back, or remove "
                                             "the file");
}

std::string SubjectOf(const Options& options) {
  if (!options.push.contact.empty()) return options.push.contact;
  // Some push services want to know whom to ask.
  return options.public_hosts.empty() ? "mailto:operator@example.org" : "https://" + options.public_hosts.front();
}

Result<void> CopyHead(FileSystem& disk, const std::string& from, const KeySet* opened_by, const std::string& to,
                      const KeySet* sealed_by, std::string_view type) {
  const auto text = TRY(ReadHeadFile(disk, from, type, opened_by));
  return text ? WriteHeadFile(disk, to, type, *text, sealed_by) : Result<void>();
}

std::string TenantIn(const Principal& owner) { return owner.is_tenant() ? TenantOf(owner) : std::string(); }

}  // namespace

// A message on its way to a device.
struct DevicePushes::Message final : HttpResponseHandler {
  Message(std::string of, Device to) : tenant(std::move(of)), device(std::move(to)) {}
  void OnHead(int answered, const HttpHeaders&) override { status = answered; }
  bool OnData(std::string_view) override { return false; }

  const std::string tenant;
  const Device device;
  int status = 0;
};

DevicePushes::DevicePushes(Parts parts)
    : parts_(std::move(parts)),
      key_path_(parts_.options.data_dir + std::string(kKeyName)),
      subject_(SubjectOf(parts_.options)) {}

DevicePushes::~DevicePushes() {
  give_up_.request_stop();
  MutexLock lock(under_way_mutex_);
  all_ended_.wait(lock, [this]() REQUIRES(under_way_mutex_) { return under_way_ == 0; });
}

std::function<void(const Engine::Attention&)> DevicePushes::Open(const std::string& tenant, const std::string& folder,
                                                                 std::shared_ptr<const KeySet> keys) {
  const MutexLock lock(mutex_);
  const auto opened =
      folders_.insert_or_assign(tenant, Folder{.path = folder + std::string(kDevicesName), .keys = std::move(keys)});
  if (const auto read = FolderOf(tenant); !read) {
    LogWarning("devices cannot be told", {{"detail", read.error().message}});
  }
  return [this, tenant, any = opened.first->second.has_any](const Engine::Attention& what) {
    if (*any) Tell(tenant, what);
  };
}

// --- what is kept ----------------------------------------------------------------------------------------------------

Result<const P256KeyPair*> DevicePushes::Key() {
  if (key_) return &*key_;
  const auto kept = ReadHeadFile(parts_.disk, key_path_, kKeyType, parts_.keys.get());
  if (!kept) return Fail(Unread("the key for push services", key_path_, kept.error()));
  if (*kept) {
    const auto json = ParseJson(**kept);
    const auto bytes = json ? DecodeBase64Url(TextMember(*json, "secret")) : std::nullopt;
    const auto secret = bytes ? SecretKey::FromBytes(*bytes) : std::nullopt;
    key_ = secret ? P256KeyPair::FromSecret(*secret) : std::nullopt;
    if (!key_) {
      return Fail(Unread("the key for push services", key_path_, MakeError(ErrorCode::kCorruption, "it holds no key")));
    }
    return &*key_;
  }
  P256KeyPair made = P256KeyPair::Random();
  const std::string json = DumpJson({{"schema", kSchema}, {"secret", EncodeBase64Url(made.secret())}});
  TRY(WriteHeadFile(parts_.disk, key_path_, kKeyType, json, parts_.keys.get()));
  key_ = std::move(made);
  return &*key_;
}

Result<std::string> DevicePushes::PublicKey() {
  const MutexLock lock(mutex_);
  return EncodeBase64Url(TRY(Key())->public_key());
}

Result<DevicePushes::Known> DevicePushes::Check(const Wanted& wanted) const {
  const auto url = wanted.endpoint.size() <= kMaxEndpoint ? ParseUrl(wanted.endpoint) : std::nullopt;
  const bool allows_private = parts_.options.push.allow_private_addresses;
  const bool is_safe = url && (url->scheme == "https" || (allows_private && IsLoopbackHost(url->host())));
  if (!is_safe) return Fail(BadDevice("\"endpoint\" must be an address that begins with https://"));
  if (!allows_private && !MayBePublic(url->host())) {
    return Fail(Reason::kAddressNotAllowed, "\"endpoint\" is not at a public address");
  }
  auto recipient = PushRecipient::Parse(wanted.p256dh, wanted.auth);
  if (!recipient) return Fail(BadDevice("\"p256dh\" and \"auth\" must be the keys of a browser's subscription"));
  const bool is_name = Utf8Prefix(wanted.name, kMaxDeviceName).size() == wanted.name.size();
  if (!is_name || HasControlCharacter(wanted.name)) {
    return Fail(BadDevice("\"name\" must have at most 100 characters, and no control characters"));
  }
  return Known{
      .device = {.id = Opaque(wanted.endpoint), .name = wanted.name, .service = url->host(), .created_at = Now()},
      .endpoint = wanted.endpoint,
      .p256dh = wanted.p256dh,
      .auth = wanted.auth,
      .recipient = *std::move(recipient)};
}

std::optional<DevicePushes::Known> DevicePushes::KnownIn(const Json& json) const {
  auto known = Check({.endpoint = TextMember(json, "endpoint"),
                      .p256dh = TextMember(json, "p256dh"),
                      .auth = TextMember(json, "auth"),
                      .name = TextMember(json, "name")});
  if (!known) return std::nullopt;  // such as one of a private network that is not allowed any more
  const auto created = ParseTimestamp(TextMember(json, "created_at"));
  if (created) known->device.created_at = *created;
  return *std::move(known);
}

Result<DevicePushes::Folder*> DevicePushes::FolderOf(const std::string& tenant) {
  const auto found = folders_.find(tenant);
  if (found == folders_.end()) return Fail(ErrorCode::kNotFound, "this server tells no devices that something waits");
  Folder& folder = found->second;
  if (folder.devices) return &folder;
  const auto kept = ReadHeadFile(parts_.disk, folder.path, kDevicesType, folder.keys.get());
  const auto json = !kept    ? Fail(kept.error())
                    : !*kept ? Result<Json>({{"schema", kSchema}, {"devices", Json::array()}})
                             : ParseJson(**kept);
  if (!json) return Fail(Unread("the list of devices", folder.path, json.error()));
  if (MemberOf(*json, "schema") != kSchema || !MemberOf(*json, "devices").is_array()) {
    return Fail(Unread("the list of devices", folder.path, MakeError(ErrorCode::kCorruption, "it is no such list")));
  }
  folder.devices.emplace();
  for (const Json& each : MemberOf(*json, "devices")) {
    if (auto known = KnownIn(each)) {
      folder.devices->push_back(*std::move(known));
    } else {
      folder.refused.push_back(DumpJson(each));
    }
  }
  *folder.has_any = !folder.devices->empty();
  return &folder;
}

Result<void> DevicePushes::Write(Folder& folder, std::vector<Known> devices) {
  Json list = Json::array();
  for (const std::string& each : folder.refused) list.push_back(TRY(ParseJson(each)));
  for (const Known& each : devices) {
    list.push_back({{"endpoint", each.endpoint},
                    {"p256dh", each.p256dh},
                    {"auth", each.auth},
                    {"name", each.device.name},
                    {"created_at", FormatTimestamp(each.device.created_at)}});
  }
  const std::string json = DumpJson({{"schema", kSchema}, {"devices", std::move(list)}});
  TRY(WriteHeadFile(parts_.disk, folder.path, kDevicesType, json, folder.keys.get()));
  folder.devices = std::move(devices);
  *folder.has_any = !folder.devices->empty();
  return {};
}

Result<std::vector<DevicePush::Device>> DevicePushes::List(const Principal& owner) {
  const MutexLock lock(mutex_);
  std::vector<Device> devices;
  for (const Known& each : *TRY(FolderOf(TenantIn(owner)))->devices) devices.push_back(each.device);
  return devices;
}

Result<DevicePush::Device> DevicePushes::Add(const Principal& owner, const Wanted& wanted) {
  Known known = TRY(Check(wanted));
  Device device = known.device;
  const MutexLock lock(mutex_);
  Folder& folder = *TRY(FolderOf(TenantIn(owner)));
  std::vector<Known> devices = *folder.devices;
  std::erase_if(devices, [&](const Known& each) { return each.device.id == device.id; });
  if (devices.size() >= kMostDevices) {
    return Fail(ErrorCode::kConflict,
                "there are " + std::to_string(kMostDevices) + " devices, as many as there may be; remove one");
  }
  devices.push_back(std::move(known));
  TRY(Write(folder, std::move(devices)));
  return device;
}

Result<void> DevicePushes::Remove(const Principal& owner, const std::string& id) {
  return RemoveFrom(TenantIn(owner), id);
}

Result<void> DevicePushes::RemoveFrom(const std::string& tenant, const std::string& id) {
  const MutexLock lock(mutex_);
  Folder& folder = *TRY(FolderOf(tenant));
  std::vector<Known> devices = *folder.devices;
  if (std::erase_if(devices, [&](const Known& each) { return each.device.id == id; }) == 0) {
    return Fail(ErrorCode::kNotFound, "there is no such device");
  }
  return Write(folder, std::move(devices));
}

Result<void> CopyDevices(FileSystem& disk, const std::string& from, const KeySet* opened_by, const std::string& to,
                         const KeySet* sealed_by) {
  const auto copy = [&](std::string_view name, std::string_view type) {
    return CopyHead(disk, from + std::string(name), opened_by, to + std::string(name), sealed_by, type);
  };
  return copy(kKeyName, kKeyType).and_then([&] { return copy(kDevicesName, kDevicesType); });
}

// --- what is sent ----------------------------------------------------------------------------------------------------

void DevicePushes::Tell(const std::string& tenant, const Engine::Attention& what) noexcept {
  if (waiting_.fetch_add(1) >= kMostWaitingCalls) {
    --waiting_;
    ++dropped_;
    return;
  }
  try {
    queue_.Post([this, tenant, what] {
      if (!give_up_.stop_requested()) Guarded("a push message", [&] { SendAll(tenant, what); });
      --waiting_;
    });
  } catch (const std::exception&) {
    --waiting_;
    ++dropped_;
  }
}

void DevicePushes::SendAll(const std::string& tenant, const Engine::Attention& what) {
  std::vector<std::pair<Device, HttpRequest>> all;
  {
    const MutexLock lock(mutex_);
    const auto folder = FolderOf(tenant);
    if (!folder) return LogWarning("devices cannot be told", {{"detail", folder.error().message}});
    if ((*folder)->devices->empty()) return;
    const auto key = Key();
    if (!key) return LogWarning("devices cannot be told", {{"detail", key.error().message}});
    for (const Known& each : *(*folder)->devices) {
      if (auto request = RequestTo(each, what, **key)) all.emplace_back(each.device, *std::move(request));
    }
  }
  for (auto& [device, request] : all) Send(std::make_shared<Message>(tenant, device), std::move(request));
}

// Nothing but that something waits: no text, no title, no name. The page finds out what the ids stand for.
std::optional<HttpRequest> DevicePushes::RequestTo(const Known& device, const Engine::Attention& what,
                                                   const P256KeyPair& key) const {
  Json json = {{"kind", KindName(what.kind)}, {"chat", Opaque(what.chat.str())}};
  if (!what.id.empty()) json["id"] = what.id;
  auto body = SealPush(device.recipient, DumpJson(json), kPaddedTo);
  const auto url = ParseUrl(device.endpoint);
  if (!body || !url) return std::nullopt;
  HttpRequest request;
  request.method = "POST";
  request.url = device.endpoint;
  request.body = *std::move(body);
  request.total_timeout = kServiceTimeout;
  request.public_addresses_only = !parts_.options.push.allow_private_addresses;
  // The newest message of a chat replaces an older one that the device has not got yet. The push service sees the
  // topic, and cannot guess the chat.
  const std::string topic = Sha256Bytes({device.recipient.auth, "\n", what.chat.str()}).substr(0, kTopicBytes);
  request.headers = {{"TTL", std::to_string(std::chrono::seconds(kKept).count())},
                     {"Urgency", what.kind == Engine::Attention::Kind::kEnded ? "normal" : "high"},
                     {"Topic", EncodeBase64Url(topic)},
                     {"Content-Encoding", "aes128gcm"},
                     {"Content-Type", "application/octet-stream"},
                     {"Authorization", Authorization(url->origin(), key)}};
  return request;
}

std::string DevicePushes::Authorization(const std::string& origin, const P256KeyPair& key) const {
  const auto until = std::chrono::system_clock::now() + kTokenLife;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(until.time_since_epoch()).count();
  const std::string text = EncodeBase64Url(DumpJson({{"typ", "JWT"}, {"alg", "ES256"}})) + "." +
                           EncodeBase64Url(DumpJson({{"aud", origin}, {"exp", seconds}, {"sub", subject_}}));
  return "vapid t=" + text + "." + EncodeBase64Url(key.Sign(text)) + ", k=" + EncodeBase64Url(key.public_key());
}

void DevicePushes::Send(std::shared_ptr<Message> message, HttpRequest request) {
  {
    const MutexLock lock(under_way_mutex_);
    if (under_way_ >= kMostUnderWay || give_up_.stop_requested()) {
      ++dropped_;
      return;
    }
    ++under_way_;
  }
  Message& handler = *message;
  parts_.transport.Send(std::move(request), handler, give_up_.get_token(),
                        [this, message = std::move(message)](const Result<void>& sent) {
                          Guarded("a push message", [&] { Ended(*message, sent); });
                          const MutexLock lock(under_way_mutex_);
                          --under_way_;
                          all_ended_.notify_all();
                        });
}

// Called on the transport's thread.
void DevicePushes::Ended(const Message& message, const Result<void>& sent) {
  constexpr int kNotFound = 404, kGone = 410;
  if (give_up_.stop_requested()) {
    ++dropped_;
    return;
  }
  if (sent && message.status >= 200 && message.status < 300) {
    ++sent_;
    return;
  }
  ++failed_;
  const bool is_gone = sent && (message.status == kNotFound || message.status == kGone);
  LogWarning(is_gone ? "a device is not told any more: its subscription has ended" : "a device could not be told",
             {{"service", message.device.service},
              {"status", message.status},
              {"code", sent ? std::string() : sent.error().reason}});
  if (!is_gone) return;
  queue_.Post([this, tenant = message.tenant, id = message.device.id] {
    Guarded("the end of a subscription", [&] {
      if (RemoveFrom(tenant, id)) ++removed_;
    });
  });
}

void DevicePushes::Collect(std::vector<Metric>& metrics) const {
  const auto add = [&](std::string_view name, std::string_view help, const std::atomic<std::uint64_t>& count) {
    metrics.push_back({.name = name,
                       .type = Metric::Type::kCounter,
                       .unit = "{message}",
                       .help = help,
                       .points = {{.value = static_cast<double>(count.load())}}});
  };
  add("reprise.push.sent", "Messages to devices that their push services have taken.", sent_);
  add("reprise.push.failed", "Messages to devices that their push services have not taken.", failed_);
  add("reprise.push.dropped", "Messages to devices that were dropped: too many waited, or the server stopped.",
      dropped_);
  add("reprise.push.ended", "Devices that are not told any more because their push services say so.", removed_);
}

}  // namespace reprise
