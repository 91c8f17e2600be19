#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/sealed_list.h"
#include "base/learned_secrets.h"
#include "base/mutex.h"
#include "crypto/key_set.h"
#include "doors/api/server.h"
#include "reprise/audit_log.h"
#include "reprise/file_system.h"
#include "reprise/model_client.h"
#include "reprise/options.h"
#include "reprise/transport.h"

namespace reprise {

// The providers that people have connected in the page. They are used at once, and kept in a SealedList. A provider of
// the configuration wins over one of the same name here. Thread-safe.
class ConnectedProviders final : public ProviderConnections {
 public:
  struct Parts {  // all must outlive the object
    const Options& options;
    Transport& transport;
    FileSystem& disk;
    std::shared_ptr<const KeySet> keys;  // null: a plain data folder
    LearnedSecrets& secrets;             // learns the keys of all connected providers
    AuditLog* audit;                     // without a line there nothing is changed; null: none
  };
  // Reads the list.
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
  Result<void> CheckWritable() const;
  Result<std::unique_ptr<ModelDirectory>> ModelsOf(const Wanted& wanted) const;
  bool IsConfigured(const std::string& name) const;

  const Parts parts_;
  mutable Mutex mutex_;
  SealedList list_ GUARDED_BY(mutex_);  // also has entries that are not used, such as those that are configured too
  std::map<std::string, Kept, std::less<>> connected_ GUARDED_BY(mutex_);
  // Also those that were replaced or disconnected, because runs may still use their clients.
  std::vector<std::unique_ptr<ModelDirectory>> models_ GUARDED_BY(mutex_);
};

// The configured models, and those of connected providers, which must outlive the result.
std::unique_ptr<ModelDirectory> WithConnected(std::unique_ptr<ModelDirectory> configured,
                                              const ConnectedProviders& connected);

}  // namespace reprise
