#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/sealed_list.h"
#include "base/learned_secrets.h"
#include "base/mutex.h"
#include "crypto/key_set.h"
#include "doors/api/server.h"
#include "reprise/audit_log.h"
#include "reprise/file_system.h"
#include "reprise/options.h"
#include "reprise/transport.h"

namespace reprise {

class WorkspaceFolders;

// The MCP servers that the operator has added in the page, for the operator's chats alone. They are used at once, and
// kept in a SealedList. A server of the configuration wins over one of the same name here. An added server is one for
// all folders, even if it is a command. Thread-safe.
class AddedServers final : public ToolServerSettings {
 public:
  struct Parts {  // all must outlive the object
    const Options& options;
    Transport& transport;
    FileSystem& disk;
    std::shared_ptr<const KeySet> keys;  // null: a plain data folder
    LearnedSecrets& secrets;             // learns those of all added servers
    AuditLog* audit;                     // without a line there nothing is changed; null: none
  };
  // Reads the list.
  explicit AddedServers(Parts parts);

  // Where they run; set before the functions of ToolServerSettings are called.
  void RunIn(WorkspaceFolders& folders) { folders_ = &folders; }

  // Those that can be used.
  std::vector<McpServerOptions> InUse() const;
  bool Has(const std::string& name) const;
  // kForbidden (reason "untrusted") if the program of one lies in this workspace, where tools could replace it.
  Result<void> CheckFolder(const std::string& workspace) const;

  bool is_sealed() const override { return parts_.keys != nullptr; }
  Result<std::vector<Server>> List() override;
  Result<Server> Add(const Wanted& wanted) override;
  Result<void> Remove(const std::string& name, const Consent& consent) override;
  Result<std::string> Test(const std::string& name) override;

 private:
  struct Kept {
    McpServerOptions options{};
    std::string digest{};   // that a person has agreed to
    std::string problem{};  // why it is not used; empty: it is
  };
  Result<McpServerOptions> Read(const std::string& name, const Json& members) const;
  Result<std::string> DigestOf(const McpServerOptions& server) const;
  Result<void> CheckPlace(const McpServerOptions& server, const std::string& workspace) const;
  Result<void> Check(const McpServerOptions& server, const Consent& consent) const;
  std::optional<Kept> Find(const std::string& name) const;
  bool IsConfigured(const std::string& name) const;
  Server Shown(const Kept& kept) const;
  void Learn(const McpServerOptions& server) const;

  const Parts parts_;
  WorkspaceFolders* folders_ = nullptr;
  Mutex changing_;  // held during a change; taken before the locks of the folders and mutex_
  SealedList list_ GUARDED_BY(changing_);
  mutable Mutex mutex_;
  std::map<std::string, Kept> kept_ GUARDED_BY(mutex_);
};

}  // namespace reprise
