#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/model_client.h"
#include "reprise/options.h"
#include "reprise/transport.h"

namespace reprise {

// The models of a configuration. Providers of a type that cannot be talked to yet are known by name: using one is
// kInvalidArgument (reason "provider_not_supported") instead of a puzzling "unknown". Immutable, thread-safe.
class ModelCatalog final : public ModelDirectory {
 public:
  // `transport` must outlive the catalog.
  static Result<std::unique_ptr<ModelCatalog>> Create(Transport& transport, const Options& options);

  Result<Resolved> Resolve(std::string_view name) const override;
  const std::string& default_model() const override { return default_model_; }
  std::vector<Entry> List() const override { return supported_->List(); }

 private:
  ModelCatalog(std::unique_ptr<ModelDirectory> supported, std::set<std::string, std::less<>> unsupported,
               std::string default_model)
      : supported_(std::move(supported)),
        unsupported_(std::move(unsupported)),
        default_model_(std::move(default_model)) {}

  const std::unique_ptr<ModelDirectory> supported_;
  const std::set<std::string, std::less<>> unsupported_;  // providers
  const std::string default_model_;
};

}  // namespace reprise
