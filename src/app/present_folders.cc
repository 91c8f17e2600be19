#include "app/present_folders.h"

#include <unistd.h>

#include <utility>

#include "app/factories.h"
#include "app/secrets.h"
#include "base/logging.h"
#include "base/path.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "engine/run_guard.h"
#include "tools/documents/sandboxed_reader.h"

namespace reprise {

namespace {

// Commands that repeat recorded runs are silent about failures, but not about files that are left out of the prompt.
void NameFaultsOf(const PromptSource& prompt) {
  const bool is_silent = !IsLogged(LogLevel::kWarning);
  if (is_silent) SetLogLevel(LogLevel::kWarning);
  if (prompt) prompt();
  if (is_silent) SetLogLevel(LogLevel::kError);
}

}  // namespace

struct PresentFolders::Opened {
  std::shared_ptr<WorkspaceFolder> folder;
  WorkspaceParts parts;
  EngineOptions options;
  Redactor redactor;
  Guardrails guards;
};

PresentFolders::PresentFolders(const Options& options, ToolRules rules, Transport* transport)
    : options_(options),
      rules_(std::move(rules)),
      own_transport_(transport == nullptr ? std::make_unique<CurlTransport>() : nullptr),
      transport_(transport == nullptr ? *own_transport_ : *transport),
      documents_(MakeDocumentReader(options)) {}

PresentFolders::~PresentFolders() = default;

Result<std::unique_ptr<PresentFolders>> PresentFolders::Open(const Options& options, ToolRules rules,
                                                             Transport* transport) {
  if (!options.prompt_dir.empty() && !IsDirectory(options.prompt_dir)) {
    return Fail(ErrorCode::kInvalidArgument,
                "there is no folder " + VisibleLine(options.prompt_dir) + ", where the prompt should be (prompt_dir)");
  }
  std::unique_ptr<PresentFolders> folders(new PresentFolders(options, std::move(rules), transport));
  folders->models_ = TRY(MakeModelDirectory(folders->transport_, folders->options_));
  return folders;
}

Result<PresentAgent> PresentFolders::At(const std::string& path) {
  const std::string own = options_.has_workspace() ? Resolved(options_.workspace).string() : std::string();
  const std::string& place = path.empty() ? own : path;
  if (const auto known = opened_.find(place); known != opened_.end()) return AgentIn(*known->second);
  if (!place.empty() && !IsDirectory(place)) {
    return Fail(Reason::kNoSuchWorkspace, "there is no folder " + VisibleLine(place) + ", where this chat works");
  }
  Options options = options_;
  bool is_own = false;
  if (place != own && options_.of_folder) {
    const auto configured = TRY(options_.of_folder(place));
    options = TRY(configured.options());
    is_own = configured.digest != options_.folder_digest;
  }
  const WorkspaceFolder::Shared shared{
      .options = options_,
      .transport = transport_,
      .disk = disk_,
      .own_tools = no_tools_,
      .keys = nullptr,
      .make_models = [this](const Options& chosen) { return MakeModelDirectory(transport_, chosen); }};
  auto folder = TRY(WorkspaceFolder::Open(shared, std::move(options), place, is_own));
  for (const McpServerOptions& server : folder->options().mcp_servers) {
    folder->tools().SetServer({.name = server.name, .message = "not connected"}, {});
  }
  EngineOptions of_engine = EngineOptionsOf(folder->options(), place);
  if (rules_ != nullptr) {
    TRY(CheckRules(*rules_, *folder->tools().Current(), NamesOfServers(folder->options())));
    of_engine.rules = rules_;
  }
  WorkspaceParts parts = folder->PartsFor(/*is_operator=*/true, nullptr);
  NameFaultsOf(parts.prompt);
  WorkspaceFolder& working = *folder;
  auto opened = std::unique_ptr<Opened>(new Opened{.folder = std::move(folder),
                                                   .parts = std::move(parts),
                                                   .options = std::move(of_engine),
                                                   .redactor = Redactor(SecretsOf(working.options(), environ)),
                                                   .guards = Guardrails(working.options().guardrails)});
  return AgentIn(*opened_.emplace(place, std::move(opened)).first->second);
}

PresentAgent PresentFolders::AgentIn(const Opened& opened) const {
  const FolderSettings* const settings = opened.parts.settings;
  return {.workspace = opened.parts,
          .options = opened.options,
          .models = settings != nullptr ? settings->models : *models_,
          .documents = documents_.get(),
          .redactor = &opened.redactor,
          .guards = &opened.guards,
          .is_denied = [&tools = opened.folder->options().tools](const std::string& name) {
            return !MatchesAny(tools.allow, name) || MatchesAny(tools.deny, name);
          }};
}

}  // namespace reprise
