#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/learned_secrets.h"
#include "base/mutex.h"
#include "crypto/key_set.h"
#include "doors/api/server.h"
#include "reprise/file_system.h"
#include "reprise/model_client.h"
#include "reprise/options.h"
#include "reprise/transport.h"

namespace reprise {

// The providers that people have connected in the page. They are used at once, and kept in a file of the data folder
// that is sealed if chats are. A provider of the configuration wins over one of the same name here. Thread-safe.
class ConnectedProviders final : public ProviderConnections {
 public:
  struct Parts {  // all must outlive the object
    const Options& options;
    Transport& transport;
    FileSystem& disk;
    std::shared_ptr<const KeySet> keys;  // null: a plain data folder
    LearnedSecrets& secrets;             // learns the keys of all connected providers
  };
  // Reads the file. One that cannot be read counts as empty, with a warning, and is never written over: Connect and
  // Disconnect then fail with kConflict.
  explicit ConnectedProviders(Parts parts);

  bool is_sealed() const override { return parts_.keys != nullptr; }
  Result<std::vector<Provider>> List() override;
  Result<std::size_t> Connect(const Wanted& wanted) override;
  Result<void> Disconnect(const std::string& name) override;

  // Those of this provider; null if it is not connected. They live as long as this object.
  const ModelDirectory* Find(std::string_view provider) const;
  std::vector<const ModelDirectory*> All() const;

 private:
  struct Kept {
    Wanted provider;
    const ModelDirectory* models;
  };
  Result<Json> Read() const;
  Result<void> Write(const std::map<std::string, Kept, std::less<>>& all, const Json& unused) const;
  Result<void> CheckWritable() const;
  Result<std::unique_ptr<ModelDirectory>> ModelsOf(const Wanted& wanted) const;
  bool IsConfigured(const std::string& name) const;

  const Parts parts_;
  const std::string path_;
  mutable Mutex mutex_;
  std::optional<Error> unread_ GUARDED_BY(mutex_);  // why the file could not be read
  std::map<std::string, Kept, std::less<>> connected_ GUARDED_BY(mutex_);
  // Entries of the file that are not used, such as those that the configuration overrides. They stay in the file.
  Json unused_ GUARDED_BY(mutex_) = Json::object();
  // Also those that were replaced or disconnected, because runs may still use their clients.
  std::vector<std::unique_ptr<ModelDirectory>> models_ GUARDED_BY(mutex_);
};

// Copies the providers that were connected in one data folder to another one, where they are sealed by other keys.
// Without keys a folder is plain.
Result<void> CopyConnectedProviders(FileSystem& disk, const std::string& from, const KeySet* opened_by,
                                    const std::string& to, const KeySet* sealed_by);

// The configured models, and those of connected providers, which must outlive the result.
std::unique_ptr<ModelDirectory> WithConnected(std::unique_ptr<ModelDirectory> configured,
                                              const ConnectedProviders& connected);

}  // namespace reprise
