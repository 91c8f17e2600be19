#include "tools/tool_catalog.h"

#include <fnmatch.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "base/logging.h"
#include "base/path.h"
#include "base/private_file.h"
#include "base/text.h"
#include "tools/arguments.h"
#include "tools/builtin_tools.h"
#include "tools/files/known_paths.h"
#include "tools/files/workspace.h"
#include "tools/text_file.h"

namespace reprise {
namespace {

// A tool's schema, compiled on first use, which saves an idle server a megabyte and some start-up time.
class LazySchema {
 public:
  explicit LazySchema(std::string text) : text_(std::move(text)) {}

  Result<void> Check(std::string_view arguments) const {
    std::call_once(compiled_, [this] { schema_ = ArgumentSchema::Compile(text_); });
    if (!schema_) return Fail(ErrorCode::kInternal, "the tool's schema is not usable", schema_.error().message);
    return (*schema_)->Check(arguments);
  }

 private:
  const std::string text_;
  mutable std::once_flag compiled_;
  mutable Result<std::unique_ptr<ArgumentSchema>> schema_;  // constant after the first Check
};

// Treats each folder as a separate workspace. A folder that is protected, or lies in a protected path, is open because
// the configuration names it.
std::function<Result<UniqueFd>(const std::string& path)> ElsewhereOf(const ToolOptions& options,
                                                                     const std::vector<std::string>& secret_paths) {
  if (!options.readable_folders) return {};
  return [folders = options.readable_folders, closed = options.protected_paths,
          secret_paths](const std::string& path) -> Result<UniqueFd> {
    const std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
    for (const std::string& folder : folders()) {
      if (!LiesBeneath(normal, folder)) continue;
      std::vector<std::string> still_closed = closed;
      std::erase_if(still_closed,
                    [&](const std::string& each) { return LiesBeneath(Resolved(folder), Resolved(each)); });
      return Workspace(folder, still_closed, secret_paths).OpenFile(path);
    }
    return Fail(WorkspaceError(EXDEV));
  };
}

}  // namespace

struct ToolCatalog::Offer {
  ToolSpec spec;  // as in the traits, which may be expensive (run_shell looks for the sandbox first)
  bool requires_approval;
  std::shared_ptr<Tool> tool;
  std::shared_ptr<const LazySchema> schema;
};

class ToolCatalog::FixedToolSet final : public ToolSet {
 public:
  FixedToolSet(std::shared_ptr<Workspace> workspace, bool allows_web_search)
      : workspace_(std::move(workspace)), allows_web_search_(allows_web_search) {}

  // False if its name is taken.
  bool Add(const Offer& offer) {
    if (Find(offer.spec.name) != nullptr) return false;
    offers_.push_back(offer);
    tools_.push_back(offer.tool.get());
    specs_.push_back(offer.spec);
    return true;
  }
  // `make` is called under a lock.
  void AddUnlisted(std::function<std::optional<Offer>(std::string_view name)> make) {
    unlisted_makers_.push_back(std::move(make));
  }

  Tool* Find(std::string_view name) const override {
    const auto offer =
        std::ranges::find_if(offers_, [&](const Offer& candidate) { return candidate.spec.name == name; });
    return offer == offers_.end() ? FindUnlisted(name) : offer->tool.get();
  }

  Result<void> Validate(const Tool& tool, std::string_view arguments) const override {
    const Offer* offer = OfferOf(tool);
    if (offer == nullptr) return Fail(ErrorCode::kInternal, "the tool is not one of this set");
    return offer->schema->Check(arguments);
  }

  const std::vector<Tool*>& tools() const override { return tools_; }
  const std::vector<ToolSpec>& specs() const override { return specs_; }

  bool RequiresApproval(const Tool& tool) const override {
    const Offer* offer = OfferOf(tool);
    return offer == nullptr || offer->requires_approval;  // unknown tools ask
  }
  bool AllowsWebSearch() const override { return allows_web_search_; }

 private:
  const Offer* OfferOf(const Tool& tool) const {
    const auto offer =
        std::ranges::find_if(offers_, [&](const Offer& candidate) { return candidate.tool.get() == &tool; });
    if (offer != offers_.end()) return &*offer;
    const MutexLock lock(mutex_);
    const auto unlisted =
        std::ranges::find_if(unlisted_, [&](const Offer& candidate) { return candidate.tool.get() == &tool; });
    return unlisted == unlisted_.end() ? nullptr : &*unlisted;
  }

  Tool* FindUnlisted(std::string_view name) const {
    const MutexLock lock(mutex_);
    for (const Offer& offer : unlisted_) {
      if (offer.spec.name == name) return offer.tool.get();
    }
    for (const auto& make : unlisted_makers_) {
      if (auto offer = make(name)) return unlisted_.emplace_back(*std::move(offer)).tool.get();
    }
    return nullptr;
  }

  const std::shared_ptr<Workspace> workspace_;  // the built-in tools refer to it
  const bool allows_web_search_;
  std::vector<Offer> offers_;
  std::vector<Tool*> tools_;
  std::vector<ToolSpec> specs_;
  std::vector<std::function<std::optional<Offer>(std::string_view name)>> unlisted_makers_;
  mutable Mutex mutex_;
  mutable std::deque<Offer> unlisted_ GUARDED_BY(mutex_);  // made so far; entries never change or move
};

ToolCatalog::ToolCatalog(ToolOptions options) : ToolCatalog(std::move(options), SecretPaths(FoldersOfThisUser())) {}

bool MatchesAny(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(
      patterns, [&](const std::string& pattern) { return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
}

ToolCatalog::ToolCatalog(ToolOptions options, const std::vector<std::string>& secret_paths)
    : options_(std::move(options)),
      workspace_(std::make_shared<Workspace>(options_.workspace_directory, options_.protected_paths, secret_paths)) {
  const auto add = [this](std::unique_ptr<BuiltinTool> tool) {
    const ToolSpec spec = tool->spec();
    if (!IsAllowed(spec.name)) return;
    const bool asks = tool->asks_by_default() || MustAsk(spec.name);
    builtin_.push_back({.spec = spec,
                        .requires_approval = asks,
                        .tool = std::move(tool),
                        .schema = std::make_shared<LazySchema>(spec.parameters)});
  };
  const bool reads_freely = IsAllowed("read_file") && !MustAsk("read_file");
  const Quoting quoting = reads_freely ? Quoting::kAllowed : Quoting::kForbidden;
  add(MakeEchoTool());
  add(MakeCalculatorTool());
  add(MakeCurrentTimeTool(&Now));
  add(MakeListFilesTool(*workspace_));
  add(MakeReadFileTool(*workspace_, ElsewhereOf(options_, secret_paths)));
  add(MakeFindFilesTool(*workspace_));
  add(MakeSearchFilesTool(*workspace_));
  add(MakeWriteFileTool(*workspace_));
  add(MakeEditFileTool(*workspace_, quoting));
  // Who forbids a tool for files, or wants to be asked about it, means its work in a patch too.
  auto patch = MakeApplyPatchTool(*workspace_, quoting);
  const std::vector<std::string> acts_as = patch->traits().acts_as;
  if (std::ranges::none_of(acts_as, [&](const auto& name) { return MatchesAny(options_.deny, name); })) {
    add(std::move(patch));
  }
  add(MakeDeleteFileTool(*workspace_));
  // Takes the environment as it is now.
  const auto runner = std::make_shared<const CommandRunner>(*workspace_, secret_paths, options_.shell);
  add(MakeShellTool(runner));
  add(MakeCodeTool(runner));
  add(MakeReadJobTool());
  add(MakeStopJobTool());
  add(MakeHttpGetTool(options_.transport, options_.http));
  add(MakeListChatFilesTool());
  add(MakeReadChatFileTool());
  add(MakeSaveChatFileTool());
  add(MakeDeleteChatFileTool());
  add(MakeAskHumanTool());
  add(MakeManageTasksTool());
  add(MakeUpdatePlanTool());
  add(MakePresentPlanTool());
  add(MakeResearchTool());
  add(MakeRecallTool());
  current_ = MakeSet();
}

ToolCatalog::~ToolCatalog() = default;

bool ToolCatalog::IsAllowed(const std::string& name) const {
  return MatchesAny(options_.allow, name) && !MatchesAny(options_.deny, name);
}

bool ToolCatalog::MustAsk(const std::string& name) const { return MatchesAny(options_.require_approval, name); }

std::shared_ptr<ToolCatalog::FixedToolSet> ToolCatalog::MakeSet() const {
  const std::string web_search(kWebSearchName);
  auto set = std::make_shared<FixedToolSet>(workspace_, IsAllowed(web_search) && !MustAsk(web_search));
  for (const Offer& offer : builtin_) set->Add(offer);
  for (const Source& source : sources_) {
    for (const Offer& offer : source.offers) {
      if (!set->Add(offer)) LogWarning("a tool is left out: its name is taken", {{"server", source.server.name}});
    }
    if (!source.unlisted) continue;
    set->AddUnlisted([this, make = source.unlisted](std::string_view name) -> std::optional<Offer> {
      std::shared_ptr<Tool> tool = IsAllowed(std::string(name)) ? make(name) : nullptr;
      if (!tool) return std::nullopt;
      return ForeignOffer(std::move(tool));
    });
  }
  return set;
}

std::shared_ptr<const ToolSet> ToolCatalog::Current() const {
  const MutexLock lock(mutex_);
  return current_;
}

std::shared_ptr<const ToolSet> ToolCatalog::With(const std::vector<std::shared_ptr<Tool>>& more) const {
  const MutexLock lock(mutex_);
  auto set = MakeSet();
  // The configuration's settings for a server's tools hold even while the server is away.
  const auto is_of_server = [&](const std::string& name) REQUIRES(mutex_) {
    return std::ranges::any_of(sources_,
                               [&](const Source& source) { return name.starts_with(source.server.name + "__"); });
  };
  for (const std::shared_ptr<Tool>& tool : more) {
    const std::string& name = tool->fixed_traits().spec.name;
    if (IsAllowed(name) && !is_of_server(name)) set->Add(ForeignOffer(tool));
  }
  return set;
}

namespace {

// "Debian GNU/Linux 12 (bookworm), x86_64"
std::string System() {
  constexpr std::string_view kName = "PRETTY_NAME=";
  constexpr std::size_t kMaxName = 80, kMaxFile = 64 * 1024;
  utsname kernel{};
  const bool is_known = ::uname(&kernel) == 0;
  std::string name = is_known ? kernel.sysname : "Linux";
  const std::string release = "\n" + ReadSmallFile("/etc/os-release", kMaxFile).value_or("");
  if (const std::size_t at = release.find("\n" + std::string(kName)); at != std::string::npos) {
    const std::size_t begin = at + 1 + kName.size();
    name = Trimmed(std::string_view(release).substr(begin, release.find('\n', begin) - begin), " \"'");
  }
  return OneLine(name.substr(0, kMaxName)) + (is_known ? std::string(", ") + kernel.machine : "");
}

}  // namespace

std::string ToolCatalog::DescribeEnvironment() const {
  if (options_.workspace_directory.empty()) return {};
  std::string text = "Tools work in the folder " + OneLine(workspace_->directory()) + " on " + System() + ".";
  if (!IsAllowed("run_shell")) return text;
  text += " run_shell is /bin/sh, ";
  if (options_.shell.sandbox == SandboxUse::kNever) return text + "without a sandbox: as the user.";
  return text +
         "in a sandbox unless its result says otherwise: commands write only in that folder and in /tmp, see the "
         "system but not the user's home, and have no network.";
}

std::vector<ToolServer> ToolCatalog::Servers() const {
  const MutexLock lock(mutex_);
  std::vector<ToolServer> servers;
  for (const Source& source : sources_) servers.push_back(source.server);
  return servers;
}

ToolCatalog::Offer ToolCatalog::ForeignOffer(std::shared_ptr<Tool> tool) const {
  const ToolTraits& traits = tool->traits();
  const bool asks = traits.requires_approval || traits.needs_consent || MustAsk(traits.spec.name);
  return {.spec = traits.spec,
          .requires_approval = asks,
          .tool = std::move(tool),
          .schema = std::make_shared<LazySchema>(CheckablePart(traits.spec.parameters, OptionalNulls::kNotGiven))};
}

void ToolCatalog::SetServer(ToolServer server, std::vector<std::shared_ptr<Tool>> tools, UnlistedTool unlisted) {
  std::vector<Offer> offers;
  for (std::shared_ptr<Tool>& tool : tools) {
    if (IsAllowed(tool->traits().spec.name)) offers.push_back(ForeignOffer(std::move(tool)));
  }
  server.tools = offers.size();
  const MutexLock lock(mutex_);
  auto source =
      std::ranges::find_if(sources_, [&](const Source& candidate) { return candidate.server.name == server.name; });
  if (source == sources_.end()) source = sources_.insert(sources_.end(), Source{});
  source->server = std::move(server);
  source->offers = std::move(offers);
  source->unlisted = std::move(unlisted);
  current_ = MakeSet();
}

void ToolCatalog::RemoveServer(const std::string& name) {
  const MutexLock lock(mutex_);
  std::erase_if(sources_, [&](const Source& source) { return source.server.name == name; });
  current_ = MakeSet();
}

}  // namespace reprise
