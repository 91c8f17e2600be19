#include "client/start_line.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/private_file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "client/run_stream.h"
#include "terminal/wrapped_text.h"

namespace reprise {
namespace {

constexpr std::size_t kShownQuestion = 40;  // characters
constexpr std::string_view kBetween = " · ";

enum Part { kModel, kFolder, kMode, kAddress, kChat, kWaiting, kRunning, kHint, kParts };
using Parts = std::array<std::string, kParts>;

const Json& KnownOf(const ConversationStart& beginning) {
  static const Json nothing(nullptr);
  return beginning.known == nullptr ? nothing : *beginning.known;
}

std::string ModelOf(ServerLink& link, const ConversationStart& beginning) {
  if (!beginning.model.empty()) return beginning.model;
  const Json& turns = ListedIn(KnownOf(beginning), "interactions");
  if (std::string own = TextMember(KnownOf(beginning), "model"); !own.empty()) return own;
  if (std::string last = turns.empty() ? "" : TextMember(turns.back(), "model"); !last.empty()) return last;
  return TextMember(link.Models(), "default");
}

std::string ModeOf(ServerLink& link, const ConversationStart& beginning) {
  const std::string own = TextMember(KnownOf(beginning), "approval_mode");
  return own.empty() ? link.approval_mode() : own;
}

std::string MeaningOf(const std::string& mode) {
  if (mode == "approve_all") return "no call asks you";
  if (mode == "read_only") return "tools that only read never ask";
  if (mode == "plan") return "nothing is changed before you have approved a plan";
  if (mode == "auto") return "what the sandbox or /undo can hold does not ask you";
  return mode == "deny_all" ? "calls that would ask you are refused" : "";
}

std::string FolderOf(ServerLink& link, const ConversationStart& beginning) {
  std::string folder = TextMember(KnownOf(beginning), "workspace");
  if (folder.empty()) folder = link.folder().empty() ? link.workspace() : link.folder();
  const std::string& home = beginning.home;
  const bool is_below =
      !home.empty() && folder.starts_with(home) && (folder.size() == home.size() || folder[home.size()] == '/');
  return is_below ? "~" + folder.substr(home.size()) : folder;
}

// What waits for the person in other chats.
std::string WaitingIn(ServerClient& server, const std::string& chat) {
  const auto answer = server.Call("GET", "/approvals");
  if (!answer) return {};
  std::vector<PendingQuestion> questions = QuestionsIn(*answer);
  std::erase_if(questions, [&](const PendingQuestion& each) { return QuestionRun(each).chat_id.str() == chat; });
  if (questions.empty()) return {};
  if (questions.size() > 1) return Counted(questions.size(), "question") + " wait in other chats (/approvals)";
  return "another chat asks: " + Shortened(VisibleLine(AskedBy(questions.front())), kShownQuestion) + " (/approvals)";
}

// Looks at the newest chats only: those that run have just changed.
std::string RunningBeside(ServerClient& server, const std::string& chat) {
  const auto answer = server.Call("GET", "/chats?limit=50");
  if (!answer) return {};
  const Json& chats = MemberOf(*answer, "chats");
  const auto running = std::ranges::count_if(chats, [&](const Json& each) {
    return TextMember(each, "head_status") == "RUNNING" && TextMember(each, "id") != chat;
  });
  return running == 0 ? ""
                      : Counted(static_cast<std::uint64_t>(running), "other chat") + (running == 1 ? " runs" : " run");
}

// "…/project"
std::string LastOf(const std::string& folder) {
  const std::size_t name = folder.rfind('/');
  return name == std::string::npos || name < 2 ? folder : "…" + folder.substr(name);
}

int WidthOf(const Parts& parts) {
  int width = 0;
  for (const std::string& part : parts) {
    if (!part.empty()) width += DisplayWidth(part) + (width == 0 ? 0 : DisplayWidth(kBetween));
  }
  return width;
}

}  // namespace

std::string StartLine(ServerLink& link, const ConversationStart& beginning, int columns, const Style& style) {
  const std::string mode = VisibleLine(ModeOf(link, beginning)), means = MeaningOf(mode);
  const std::string folder = VisibleLine(FolderOf(link, beginning));
  Parts parts;
  parts[kModel] = VisibleLine(ModelOf(link, beginning));
  parts[kFolder] = folder;
  parts[kMode] = "mode " + mode + (means.empty() ? "" : ": " + means);
  parts[kAddress] = VisibleLine(link.server().url());
  if (beginning.names_chat) parts[kChat] = "chat " + VisibleLine(beginning.chat);
  parts[kWaiting] = WaitingIn(link.server(), beginning.chat);
  parts[kRunning] = RunningBeside(link.server(), beginning.chat);
  parts[kHint] = "/help lists the commands";

  const std::string last_folder = LastOf(folder);
  // From the least important on.
  const std::pair<Part, std::string> shorter[] = {{kHint, "/help"},
                                                  {kFolder, last_folder},
                                                  {kMode, "mode " + mode},
                                                  {kRunning, ""},
                                                  {kHint, ""},
                                                  {kChat, ""},
                                                  {kAddress, ""},
                                                  {kFolder, ""},
                                                  {kMode, means.empty() ? "" : mode},
                                                  {kWaiting, ""}};
  for (const auto& [part, text] : shorter) {
    if (columns == 0 || WidthOf(parts) <= columns) break;
    parts[part] = parts[part].empty() ? "" : text;
  }
  std::string line;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].empty()) continue;
    if (!line.empty()) line += style.Paint(Style::kDim, kBetween);
    const bool is_warning = i == kWaiting || (i == kMode && !means.empty());
    line += style.Paint(is_warning ? Style::kWarning : i == kModel ? Style::kBold : Style::kDim, parts[i]);
  }
  return columns == 0 ? line : CutToWidth(line, columns);
}

Status StatusOf(ServerLink& link, const ConversationStart& beginning) {
  return {.model = VisibleLine(ModelOf(link, beginning)),
          .folder = VisibleLine(FolderOf(link, beginning)),
          .branch = {},
          .mode = VisibleLine(ModeOf(link, beginning)),
          .cost = {},
          .context = {}};
}

std::string GitBranch(const std::string& folder) {
  constexpr std::size_t kMost = 4096, kCommit = 8;
  constexpr std::string_view kBranch = "ref: refs/heads/", kElsewhere = "gitdir: ";
  for (std::filesystem::path at = folder; !at.empty(); at = at.parent_path()) {
    std::filesystem::path git = at / ".git";
    std::error_code unknown;
    // In another work tree, and in a submodule, it is a file that names the folder.
    if (std::filesystem::is_regular_file(git, unknown)) {
      const auto file = ReadSmallFile(git.string(), kMost);
      if (file && file->starts_with(kElsewhere)) git = at / Trimmed(file->substr(kElsewhere.size()), " \n");
    }
    if (const auto head = ReadSmallFile((git / "HEAD").string(), kMost)) {
      const std::string text(Trimmed(*head, " \n"));
      return text.starts_with(kBranch) ? text.substr(kBranch.size()) : text.substr(0, kCommit);
    }
    if (at == at.root_path()) break;
  }
  return {};
}

std::string StatusLine(const Status& status, int columns, const Style& style) {
  const bool is_warning = status.mode != "ask";
  const auto lines = [&](const Status& shown) {
    const std::string branch = shown.branch.empty() ? "" : " (" + shown.branch + ")";
    std::string line, plain;
    for (const std::string& part :
         {shown.model, shown.folder + branch, "mode " + shown.mode, shown.cost, shown.context}) {
      if (part.empty()) continue;
      const bool is_mode = part.starts_with("mode ");
      line += style.Paint(Style::kDim, plain.empty() ? "" : kBetween);
      line += style.Paint(is_mode && is_warning ? Style::kWarning : Style::kDim, part);
      plain += (plain.empty() ? "" : std::string(kBetween)) + part;
    }
    return line;
  };
  Status shown = status;
  const auto name = status.model.rfind('/');
  const auto clear = [](std::string& part) { part.clear(); };
  const std::function<void()> shorter[] = {[&] { shown.folder = LastOf(shown.folder); },
                                           [&] { clear(shown.cost); },
                                           [&] { shown.model = status.model.substr(name + 1); },
                                           [&] { clear(shown.branch); },
                                           [&] { clear(shown.folder); },
                                           [&] { clear(shown.model); },
                                           [&] { clear(shown.context); }};
  for (const auto& leave_out : shorter) {
    if (DisplayWidth(lines(shown)) <= columns) break;
    leave_out();
  }
  return CutToWidth(lines(shown), columns);
}

}  // namespace reprise
