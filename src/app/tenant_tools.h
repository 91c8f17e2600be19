#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "reprise/tool.h"

namespace reprise {

// The server's tools for its tenants, without those that still need consent. A consent counts for all tenants, so only
// the operator can give it. Thread-safe.
class TenantTools final : public ToolRegistry {
 public:
  // `all` must outlive the object.
  explicit TenantTools(const ToolRegistry& all) : all_(all) {}

  std::shared_ptr<const ToolSet> Current() const override;
  std::shared_ptr<const ToolSet> With(const std::vector<std::shared_ptr<Tool>>& more) const override;
  std::vector<ToolServer> Servers() const override { return all_.Servers(); }

 private:
  const ToolRegistry& all_;
  mutable Mutex mutex_;
  mutable std::shared_ptr<const ToolSet> base_ GUARDED_BY(mutex_), current_ GUARDED_BY(mutex_);  // made of base_
};

}  // namespace reprise
