#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/queues.h"
#include "crypto/key_set.h"
#include "crypto/web_push.h"
#include "doors/api/server.h"
#include "reprise/engine.h"
#include "reprise/file_system.h"
#include "reprise/options.h"
#include "reprise/principal.h"
#include "reprise/telemetry.h"
#include "reprise/transport.h"

namespace reprise {

// Tells people's devices that something waits, through the push services of their browsers (RFC 8030), in messages that
// the devices alone can read (RFC 8291), signed with a key of this server (RFC 8292). The key and the devices are kept
// in data folders, sealed if chats are. Fire and forget: a few messages wait, and those without room and those that are
// not taken are dropped and counted. Thread-safe.
class DevicePushes final : public DevicePush {
 public:
  struct Parts {  // the references must outlive the object
    const Options& options;
    Transport& transport;
    FileSystem& disk;
    std::shared_ptr<const KeySet> keys;  // of the server's own key; null: a plain data folder
  };
  explicit DevicePushes(Parts parts);
  // Gives up what waits.
  ~DevicePushes() override;
  DevicePushes(const DevicePushes&) = delete;

  // From now on this tenant (as TenantOf says; empty: the operator) has devices, kept in its folder. The result tells
  // them, and does not wait; without devices it costs nothing.
  std::function<void(const Engine::Attention&)> Open(const std::string& tenant, const std::string& folder,
                                                     std::shared_ptr<const KeySet> keys);
  void Collect(std::vector<Metric>& metrics) const;

  Result<std::string> PublicKey() override;
  Result<std::vector<Device>> List(const Principal& owner) override;
  Result<Device> Add(const Principal& owner, const Wanted& wanted) override;
  Result<void> Remove(const Principal& owner, const std::string& id) override;

 private:
  struct Known {
    Device device;
    std::string endpoint;
    std::string p256dh, auth;  // as given
    PushRecipient recipient;
  };
  // The devices of a tenant and their file.
  struct Folder {
    std::string path;
    std::shared_ptr<const KeySet> keys;
    std::optional<std::vector<Known>> devices{};  // nullopt: they could not be read yet
    std::vector<std::string> refused{};           // JSON of entries that are not allowed now, and stay in the file
    std::shared_ptr<std::atomic<bool>> has_any = std::make_shared<std::atomic<bool>>(false);
  };
  struct Message;

  Result<Known> Check(const Wanted& wanted) const;
  std::optional<Known> KnownIn(const Json& json) const;
  Result<Folder*> FolderOf(const std::string& tenant) REQUIRES(mutex_);
  Result<void> Write(Folder& folder, std::vector<Known> devices) REQUIRES(mutex_);
  Result<void> RemoveFrom(const std::string& tenant, const std::string& id);
  Result<const P256KeyPair*> Key() REQUIRES(mutex_);

  void Tell(const std::string& tenant, const Engine::Attention& what) noexcept;
  void SendAll(const std::string& tenant, const Engine::Attention& what);
  std::optional<HttpRequest> RequestTo(const Known& device, const Engine::Attention& what,
                                       const P256KeyPair& key) const;
  std::string Authorization(const std::string& origin, const P256KeyPair& key) const;
  void Send(std::shared_ptr<Message> message, HttpRequest request);
  void Ended(const Message& message, const Result<void>& sent);

  const Parts parts_;
  const std::string key_path_, subject_;
  Mutex mutex_;  // also held while files are read and written
  std::optional<P256KeyPair> key_ GUARDED_BY(mutex_);
  std::map<std::string, Folder> folders_ GUARDED_BY(mutex_);  // by tenant

  std::stop_source give_up_;
  std::atomic<std::uint64_t> waiting_{0}, sent_{0}, failed_{0}, dropped_{0}, removed_{0};
  Mutex under_way_mutex_;
  Condition all_ended_;
  std::size_t under_way_ GUARDED_BY(under_way_mutex_) = 0;
  SerialQueue queue_;  // last
};

// Copies the key and the devices of one data folder to another one, where they are sealed by other keys. Without keys a
// folder is plain.
Result<void> CopyDevices(FileSystem& disk, const std::string& from, const KeySet* opened_by, const std::string& to,
                         const KeySet* sealed_by);

}  // namespace reprise
