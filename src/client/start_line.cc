#include "client/start_line.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/terminal_text.h"
#include "client/run_stream.h"
#include "terminal/question_text.h"
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
  const Json& turns = MemberOf(KnownOf(beginning), "interactions");
  if (std::string own = TextMember(KnownOf(beginning), "model"); !own.empty()) return own;
  if (turns.is_array() && !turns.empty()) {
    if (std::string last = TextMember(turns.back(), "model"); !last.empty()) return last;
  }
  return TextMember(link.Models(), "default");
}

std::string ModeOf(ServerLink& link, const ConversationStart& beginning) {
  const std::string own = TextMember(KnownOf(beginning), "approval_mode");
  const bool is_said = link.RunOptions({}).contains("approval_mode");  // with each message
  return is_said || own.empty() ? link.approval_mode() : own;
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
  const auto* const approval = std::get_if<PendingApproval>(&questions.front());
  const std::string asked = approval != nullptr ? CallLabel(approval->request.tool_name, approval->request.tool_input)
                                                : std::get<PendingInput>(questions.front()).request.question;
  return "another chat asks: " + Shortened(VisibleLine(asked), kShownQuestion) + " (/approvals)";
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

  const std::size_t name = folder.rfind('/');
  const std::string last_folder = name == std::string::npos || name < 2 ? folder : "…" + folder.substr(name);
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

}  // namespace reprise
