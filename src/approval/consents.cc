#include "approval/consents.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/system.h"
#include "base/try.h"
#include "crypto/digest.h"

namespace reprise {
namespace {

constexpr std::uint64_t kMaxFile = 16u << 20;

bool ReadFingerprint(const Json& json, ToolFingerprint& fingerprint) {
  const auto read = [&](const char* member, std::string& target) {
    if (!json.is_object() || !json.contains(member) || !json[member].is_string()) return false;
    target = json[member].get<std::string>();
    return true;
  };
  return read("launch", fingerprint.launch) && read("description", fingerprint.description) &&
         read("schema", fingerprint.schema);
}

std::string MacOf(const SecretKey& key, const Json& servers) {
  return HmacSha256(key, {"reprise/approved_tools\n", DumpJson(servers)});
}

// Whether one of our keys authenticates the file. A plain folder has no keys, so any file counts.
bool IsOurs(const Json& file, const KeySet* keys) {
  if (keys == nullptr) return true;
  const KeySet::Key* key = keys->Find(TextMember(file, "kid"));
  return key != nullptr && TextMember(file, "mac") == MacOf(key->secret, file["servers"]);
}

}  // namespace

// If the file cannot be read, nothing counts as approved, so every tool asks once more.
void Consents::ReadOnce() {
  if (std::exchange(read_, true)) return;
  const auto text = file_system_.ReadFile(path_, kMaxFile);
  if (!text && IsNotFound(text.error())) return;
  const auto json = text ? ParseJson(*text) : Result<Json>(Fail(text.error()));
  const bool whole = json && json->is_object() && json->contains("servers") && (*json)["servers"].is_object();
  damaged_ = !whole;
  if (damaged_) return LogWarning("the list of approved tools cannot be read", {{"file", path_}});
  if (!IsOurs(*json, keys_.get())) {
    damaged_ = true;
    return LogWarning("the list of approved tools was written under an unknown key; all of them ask once more",
                      {{"file", path_}});
  }
  for (const auto& [server, tools] : (*json)["servers"].items()) {
    if (!tools.is_object()) continue;
    for (const auto& [tool, digests] : tools.items()) {
      if (ToolFingerprint fingerprint; ReadFingerprint(digests, fingerprint)) given_[server][tool] = fingerprint;
    }
  }
}

Consents::State Consents::Look(const std::string& server, const std::string& tool, const ToolFingerprint& now) {
  const MutexLock lock(mutex_);
  ReadOnce();
  const auto tools = given_.find(server);
  if (tools == given_.end()) return State::kNew;
  const auto approved = tools->second.find(tool);
  if (approved == tools->second.end()) return State::kNew;
  if (approved->second.launch != now.launch) return State::kLaunchChanged;
  if (approved->second.description != now.description) return State::kDescriptionChanged;
  return approved->second.schema == now.schema ? State::kGiven : State::kSchemaChanged;
}

Result<void> Consents::Give(const std::string& server, const std::string& tool, const ToolFingerprint& now) {
  const MutexLock lock(mutex_);
  ReadOnce();
  given_[server][tool] = now;
  return Write();
}

Result<void> Consents::Forget(const std::string& server) {
  const MutexLock lock(mutex_);
  ReadOnce();
  auto forgotten = given_.extract(server);
  if (forgotten.empty()) return {};
  auto written = Write();
  if (!written) given_.insert(std::move(forgotten));
  return written;
}

Result<void> Consents::Write() {
  if (damaged_) {  // kept for inspection
    TRY(file_system_.Rename(path_, path_ + ".damaged." + RandomHex(4)));
    damaged_ = false;
  }
  TRY(ReplaceFile(file_system_, path_, FileText()));
  return file_system_.SyncDirectory(ParentDirectory(path_));
}

std::string Consents::FileText() const {
  Json servers = Json::object();
  for (const auto& [server, tools] : given_) {
    for (const auto& [tool, digests] : tools) {
      servers[server][tool] = {
          {"launch", digests.launch}, {"description", digests.description}, {"schema", digests.schema}};
    }
  }
  Json file = {{"schema", 1}};
  if (keys_) {
    file["kid"] = keys_->current().kid;
    file["mac"] = MacOf(keys_->current().secret, servers);
  }
  file["servers"] = std::move(servers);
  return DumpJsonPretty(file) + "\n";
}

}  // namespace reprise
