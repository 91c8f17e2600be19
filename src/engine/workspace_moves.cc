#include "engine/workspace_moves.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <variant>

#include "approval/decision.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "domain/codec.h"
#include "domain/json_reader.h"

namespace reprise {

namespace {

Result<const WorkspaceReader*> ReaderOf(const WorkspaceParts& workspace) {
  if (workspace.reader != nullptr) return workspace.reader;
  return Fail(Reason::kNoWorkspace, "this server has no workspace whose files could be named");
}

constexpr std::string_view kReadingTool = "read_file";

Error NotReadable(std::string why) { return Refused(Reason::kNotReadable, std::move(why)); }

}  // namespace

// In the mode that asks, whatever the server's mode: there is nobody to ask, and no chat's grants count.
Result<void> NamedFiles::CheckReadable(const WorkspaceParts& workspace, const std::string& path) const {
  const auto tools = workspace.tools.Current();
  Tool* const tool = tools->Find(kReadingTool);
  if (tool == nullptr) return Fail(NotReadable("the configuration of this server does not let files be read"));
  const ReviewedCall call{
      .call = {.id = {}, .name = std::string(kReadingTool), .arguments = DumpJson({{"path", path}})},
      .offered = {.tools = tools, .tool = tool}};
  const ApprovalPolicy policy{.nobody_to_ask = true, .rules = services_.RulesIn(workspace)};
  if (Decide(call, AgentState{}, policy).run() != nullptr) return {};
  return Fail(
      NotReadable("the agent may not read this file without a question (the configuration says so, or you keep secrets "
                  "there); what you upload yourself it may"));
}

Result<WorkspaceReader::Listing> NamedFiles::Find(const WorkspaceParts& workspace, std::string_view text,
                                                  std::size_t limit) const {
  const auto* const reader = TRY(ReaderOf(workspace));
  const auto accepts = [&](const std::string& path) { return CheckReadable(workspace, path).has_value(); };
  return reader->Find({.text = std::string(text), .limit = limit, .accepts = accepts});
}

Result<StoredFile> NamedFiles::Read(const WorkspaceParts& workspace, std::string_view path) const {
  const auto* const reader = TRY(ReaderOf(workspace));
  TRY(CheckReadable(workspace, std::string(path)));
  auto content = reader->Read(path);
  if (!content) {
    Error error = std::move(content.error());
    if (error.code == ErrorCode::kNotFound) error.reason = NameOf(Reason::kNoSuchFile);
    if (error.code == ErrorCode::kTooLarge) error.reason = NameOf(Reason::kFileTooLarge);
    error.detail.clear();  // the person's mistake, so nothing for the server's log
    return Fail(std::move(error));
  }
  // Redacted like the output of tools.
  const auto rules = services_.TextRulesOf(workspace);
  if (!rules->redactor.empty() && IsText(*content)) content = rules->redactor.Redacted(*std::move(content));
  return MakeFile(path, "", *std::move(content));
}

namespace {

using Kind = FileVersion::Kind;
using State = WorkspaceMoves::State;

bool IsDirectory(const std::optional<FileVersion>& version) { return version && version->kind == Kind::kDirectory; }

bool IsLink(const std::optional<FileVersion>& version) { return version && version->kind == Kind::kLink; }

// Older records do not have all bits of a directory.
bool IsSame(const std::optional<FileVersion>& recorded, const std::optional<FileVersion>& now) {
  if (!IsDirectory(recorded) || !IsDirectory(now) || recorded->mode > kFileBits) return recorded == now;
  return recorded->mode == (now->mode & kFileBits);
}

// Whether a symbolic link at `path` may lead out of the workspace. After a name, ".." may lead anywhere, because the
// name may be a link itself.
bool MayLeadOut(std::string_view path, std::string_view link_target) {
  if (link_target.starts_with('/')) return true;
  auto depth = std::ranges::count(path, '/');
  bool below = false;
  for (std::size_t at = 0; at <= link_target.size();) {
    const std::size_t end = std::min(link_target.find('/', at), link_target.size());
    const std::string_view name = link_target.substr(at, end - at);
    at = end + 1;
    if (name.empty() || name == ".") continue;
    if (name == ".." && (below || --depth < 0)) return true;
    below = below || name != "..";
  }
  return false;
}

// The limits of the diffs shown for imported files.
constexpr std::size_t kShownOfFile = 64 << 10, kShownOfAll = 1 << 20;
constexpr std::size_t kMostMade = 32 << 20;  // of diffs, before they are cut

std::string Cut(std::string diff, std::size_t most) {
  if (diff.size() <= most) return diff;
  const std::size_t left = diff.size() - diff.substr(0, most).rfind('\n') - 1;
  diff.resize(diff.size() - std::min(left, diff.size()));
  return diff + "# " + Counted(left, "more byte") + "\n";
}

std::vector<std::string> DirectoriesAbove(const std::string& path) {
  std::vector<std::string> above;
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    above.push_back(path.substr(0, slash));
  }
  return above;
}

std::string ChangeName(const std::optional<FileVersion>& before, const std::optional<FileVersion>& after) {
  return !before ? "created" : !after ? "deleted" : "modified";
}

// The first `before` and the last `after` of each path; with `call_id`, of that call's changes only.
std::map<std::string, WorkspaceChange> ChangesOf(const Interaction& interaction,
                                                 const std::optional<std::string>& call_id = std::nullopt) {
  std::map<std::string, WorkspaceChange> changes;
  for (const AgentEvent& event : interaction.events) {
    const auto* const changed = std::get_if<event::FilesChanged>(&event.payload);
    if (changed == nullptr || (call_id && changed->call_id != call_id)) continue;
    for (const WorkspaceChange& each : changed->changes) {
      const auto [found, is_new] = changes.try_emplace(each.path, each);
      if (!is_new) found->second.after = each.after;
    }
  }
  return changes;
}

// Adds the changes that were not recorded.
void AddMissed(auto& to, const Interaction& interaction, const std::optional<std::string>& call_id = std::nullopt) {
  constexpr std::int64_t kMost = 1'000'000'000;  // an imported interaction may hold any number
  for (const AgentEvent& event : interaction.events) {
    const auto* const changed = std::get_if<event::FilesChanged>(&event.payload);
    if (changed == nullptr || (call_id && changed->call_id != call_id)) continue;
    to.omitted += static_cast<std::uint64_t>(std::clamp<std::int64_t>(changed->omitted, 0, kMost));
    to.unseen = to.unseen || changed->unseen;
  }
}

Json OrNull(State state) { return state ? Json(state->str()) : Json(); }

State StateIn(JsonReader& reader, const char* name) {
  const auto text = reader.OptionalString(name);
  if (!text) return std::nullopt;
  const auto id = InteractionId::Parse(*text);
  if (!id) reader.Reject(name);
  return id ? State(*id) : std::nullopt;
}

std::string PositionText(State at, State head) { return DumpJson({{"at", OrNull(at)}, {"head", OrNull(head)}}); }

// A file is made anew, with the group and attributes of one in place; a directory stays if it is there.
FileExtras LostBy(const RestoreStep& step) {
  if (!step.to || IsLink(step.to) || (IsDirectory(step.to) && IsDirectory(step.from))) return {};
  FileExtras lost = step.to->extras;
  if (!step.from || step.from->kind != Kind::kFile) return lost;
  lost.group = lost.group && !step.from->extras.group;
  lost.attributes = lost.attributes && !step.from->extras.attributes;
  lost.hard_links = lost.hard_links || step.from->extras.hard_links;
  return lost;
}

// All files, and those directories that are worth showing by themselves.
std::set<std::string> Shown(const std::vector<WorkspaceChange>& changes) {
  const auto paths = ShownPaths(changes);
  return {paths.begin(), paths.end()};
}

}  // namespace

// --- where it stands -------------------------------------------------------------------------------------------------

State WorkspaceMoves::StandsAt(const ChatId& chat, State head) const {
  const auto text = is_on() ? kept().Position(chat) : std::nullopt;
  if (!text) return head;
  const auto json = ParseJson(*text);
  if (!json) return head;
  JsonReader reader(*json, "position");
  const State at = StateIn(reader, "at"), while_at = StateIn(reader, "head");
  return reader.error() || while_at != head ? head : at;
}

State WorkspaceMoves::StandsAt(const ChatId& chat, State head, std::optional<std::int64_t> version) const {
  {
    const MutexLock lock(at_head_mutex_);
    const auto known = at_head_.find(chat.str());
    if (version && known != at_head_.end() && known->second == *version) return head;
  }
  return StandsAt(chat, head);
}

// A move of the head, which may leave the workspace elsewhere, makes another version.
void WorkspaceMoves::RunEnded(const ChatId& chat, std::int64_t version) {
  constexpr std::size_t kMostChats = 10'000;
  const MutexLock lock(at_head_mutex_);
  if (at_head_.size() >= kMostChats) at_head_.clear();
  at_head_[chat.str()] = version;
}

Result<void> WorkspaceMoves::Stand(const ChatId& chat, State at, State head) {
  if (at != head) return kept().SetPosition(chat, PositionText(at, head));
  return kept().Position(chat) ? kept().SetPosition(chat, "") : Result<void>();
}

void WorkspaceMoves::HeadMoved(const ChatId& chat, State at, State head) {
  if (!is_on()) return;
  if (auto stands = Stand(chat, at, head); !stands) {
    LogWarning("a chat's workspace position could not be stored",
               {{"chat", chat.str()}, {"detail", stands.error().detail}});
  }
}

void WorkspaceMoves::HeadGrew(const ChatId& chat, State before, State head) {
  if (!is_on()) return;
  if (const State at = StandsAt(chat, before); at != before) HeadMoved(chat, at, head);
}

// --- from one state to another ---------------------------------------------------------------------------------------

// Parents have lower numbers, so the two paths meet at their first common state.
Result<WorkspaceMoves::Way> WorkspaceMoves::Between(const ChatId& chat, const std::string& folder, State from,
                                                    State to) const {
  Way way;
  const auto changes_of = [&](const Interaction& interaction) -> Result<std::map<std::string, WorkspaceChange>> {
    auto changes = ChangesOf(interaction);
    const std::string& worked_in = interaction.workspace.empty() ? services_.home->path : interaction.workspace;
    if (changes.empty() || interaction.imported || worked_in == folder) return changes;
    return Fail(Reason::kWorkspaceMoved, "files cannot be put back across a move: the chat worked in " +
                                             VisibleLine(worked_in) + " then, and works in " + VisibleLine(folder) +
                                             " now; leave out \"files\", or move the chat back first");
  };
  struct Done {
    std::map<std::string, WorkspaceChange> changes;
    bool imported;
  };
  std::vector<Done> down;  // newest first
  const auto before = [&](const Interaction& interaction) -> State {
    const State kept = interaction.record ? interaction.record->files_from : std::nullopt;
    const bool there = kept && *kept < interaction.id && interactions_.FindFinished(chat, *kept);
    return there ? kept : interaction.parent_id;
  };
  while (from != to) {
    if (!to || (from && *from > *to)) {
      const Interaction undone = TRY(interactions_.FindFinished(chat, *from));
      AddMissed(way, undone);
      for (auto& [path, change] : TRY(changes_of(undone))) {
        if (IsOfGit(path)) continue;
        const auto [found, is_new] =
            way.targets.try_emplace(path, Target{.expected = change.after, .expected_imported = undone.imported});
        found->second.wanted = std::move(change.before);
        found->second.imported = undone.imported;
      }
      from = before(undone);
    } else {
      const Interaction done = TRY(interactions_.FindFinished(chat, *to));
      AddMissed(way, done);
      down.push_back({TRY(changes_of(done)), done.imported});
      to = before(done);
    }
  }
  for (auto done = down.rbegin(); done != down.rend(); ++done) {
    for (auto& [path, change] : done->changes) {
      if (IsOfGit(path)) continue;
      const auto [found, is_new] =
          way.targets.try_emplace(path, Target{.expected = change.before, .expected_imported = done->imported});
      found->second.wanted = std::move(change.after);
      found->second.imported = done->imported;
    }
  }
  return way;
}

Result<WorkspaceMoves::Plans> WorkspaceMoves::PlanFor(const ChatId& chat, State head, State target) const {
  Plans plans;
  if (!is_on()) return plans;
  const auto workspace = TRY(services_.WorkspaceOf(chat));
  WorkspaceHistory& history = *workspace->history;
  const auto [targets, omitted, unseen] = TRY(Between(chat, workspace->path, StandsAt(chat, head), target));
  plans.omitted = omitted, plans.unseen = unseen;
  std::set<std::string> paths;
  std::vector<std::string> removed;
  for (const auto& [path, each] : targets) {
    paths.insert(path);
    if (!each.wanted) removed.push_back(path);
    for (const std::string& above : each.wanted ? DirectoriesAbove(path) : std::vector<std::string>())
      paths.insert(above);
  }
  const auto seen = history.Look(chat, {paths.begin(), paths.end()}, /*keep=*/false);
  // Whether a file or link stands where a directory must be, and no step makes a directory of it.
  const auto is_blocked = [&, &targets = targets](const std::string& above) {
    const auto known = targets.find(above);
    if (known != targets.end() && IsDirectory(known->second.wanted)) return false;
    const auto& now = seen.at(above).version;
    return !now || (*now && !IsDirectory(*now));
  };
  for (const auto& [path, each] : targets) {
    const auto& now = seen.at(path).version;
    const auto standing = now ? *now : std::nullopt;
    const bool are_bits_known = IsDirectory(each.expected) && each.expected->mode > kFileBits;
    if (now && (are_bits_known ? standing == each.wanted : IsSame(each.wanted, standing))) continue;
    Planned plan{.step = {.path = path, .from = standing, .to = each.wanted},
                 .expected = each.expected,
                 .imported = each.imported,
                 .expected_imported = each.expected_imported};
    const auto above = each.wanted ? DirectoriesAbove(path) : std::vector<std::string>();
    if (!now || std::ranges::any_of(above, is_blocked)) {
      plan.conflict = "out_of_reach", plan.can_be_forced = false;
    } else if (each.wanted && !history.ContentOf(chat, *each.wanted)) {
      plan.conflict = "lost", plan.can_be_forced = false;
    } else if (each.imported && IsLink(each.wanted) && MayLeadOut(path, TRY(history.ContentOf(chat, *each.wanted)))) {
      plan.conflict = "link_outside", plan.can_be_forced = false;
    } else if (IsDirectory(standing) && !IsDirectory(each.wanted) && history.HoldsMore(path, removed)) {
      if (!each.wanted) continue;  // holds files of others, so it stays
      plan.conflict = "not_empty", plan.can_be_forced = false;
    } else if (!IsSame(each.expected, standing)) {
      plan.conflict = "changed";
    } else if (standing && !standing->is_kept()) {
      plan.conflict = "not_kept";
    }
    plans.files.push_back(std::move(plan));
  }
  return plans;
}

Result<FilesPreview> WorkspaceMoves::Preview(const ChatId& chat, State head, State target) const {
  const Plans plans = TRY(PlanFor(chat, head, target));
  std::vector<WorkspaceChange> changes;
  for (const Planned& each : plans.files) changes.push_back({each.step.path, each.step.from, each.step.to});
  const std::set<std::string> shown = Shown(changes);
  FilesPreview preview{.omitted = plans.omitted, .unseen = plans.unseen};
  std::size_t shown_bytes = 0, made_bytes = 0;
  for (const Planned& each : plans.files) {
    std::string path = ToValidUtf8(each.step.path);
    if (!shown.contains(path)) path += '/';
    if (!shown.contains(path)) continue;
    FilePreview file{std::move(path), ChangeName(each.step.from, each.step.to), each.conflict, each.imported,
                     LostBy(each.step)};
    if (each.imported) {
      const WorkspaceChange change{each.step.path, each.step.from, each.step.to};
      std::string diff = "# not shown: there are too many changes\n";
      if (made_bytes < kMostMade) diff = TRY(kept().DiffOf(chat, change));
      made_bytes += diff.size();
      file.diff = Cut(ToValidUtf8(diff), std::min(kShownOfFile, kShownOfAll - shown_bytes));
      shown_bytes += std::min(file.diff.size(), kShownOfAll - shown_bytes);
    }
    preview.files.push_back(std::move(file));
  }
  return preview;
}

Result<WorkspaceMoves::Plan> WorkspaceMoves::Prepare(const ChatId& chat, State head, State target,
                                                     const FilesChoice& choice) const {
  if (!is_on()) {
    return Fail(Reason::kNoWorkspaceHistory,
                "\"files\": \"restore\": this server does not record what changes in a workspace");
  }
  Plan plan;
  Json conflicts = Json::array(), imported = Json::array();
  Plans plans = TRY(PlanFor(chat, head, target));
  for (Planned& each : plans.files) {
    const bool forced = choice.force && each.can_be_forced;
    const bool is_left = !each.conflict.empty() && !forced;
    Json named = {{"path", ToValidUtf8(each.step.path)},
                  {"change", ChangeName(each.step.from, each.step.to)},
                  {"conflict", is_left}};
    if (is_left) named["reason"] = each.conflict;
    if (each.imported && each.can_be_forced) imported.push_back(named);
    if (is_left) {
      conflicts.push_back(std::move(named));
      continue;  // a forced restore skips what it cannot restore
    }
    if (each.conflict == "changed") {
      plan.foreign.push_back({each.step.path, each.expected, each.step.from});
      plan.foreign_of_imported = plan.foreign_of_imported || each.expected_imported;
    }
    plan.steps.push_back(std::move(each.step));
  }
  if (!imported.empty() && !choice.allow_imported) {
    Error error = Refused(Reason::kImportedFiles,
                          Counted(imported.size(), "file") +
                              " would become what an imported chat says, which was not seen here: look at it with "
                              "\"dry_run\": true; \"allow_imported\": true restores it");
    error.details_json = DumpJson({{"files", std::move(imported)}});
    return Fail(std::move(error));
  }
  if (choice.force || (conflicts.empty() && plans.omitted == 0 && !plans.unseen)) return plan;
  std::string message;
  if (!conflicts.empty()) {
    message = Counted(conflicts.size(), "file") + " cannot be put back: changed by someone else since, or not kept; ";
  }
  if (plans.omitted > 0) {
    message +=
        Counted(plans.omitted, "changed file") + " cannot be put back: too many changed for all to be recorded; ";
  }
  if (plans.unseen) message += "what a call changed was not recorded, and stays as it is; ";
  Error error = Refused(Reason::kWorkspaceConflict, message + "\"force\": true restores what can be");
  Json details = {{"files", std::move(conflicts)}};
  if (plans.omitted > 0) details["omitted"] = plans.omitted;
  if (plans.unseen) details["unseen"] = true;
  error.details_json = DumpJson(details);
  return Fail(std::move(error));
}

Result<void> WorkspaceMoves::Restore(const ChatId& chat, const Plan& plan, Then then,
                                     const std::function<Result<void>()>& commit) {
  if (plan.steps.empty()) return commit();
  const auto workspace = TRY(services_.WorkspaceOf(chat));
  WorkspaceHistory& history = *workspace->history;
  std::vector<std::string> paths;
  for (const RestoreStep& step : plan.steps) paths.push_back(step.path);
  history.Look(chat, paths, /*keep=*/true);  // allows the present content to be put back
  if (!plan.foreign.empty()) then.while_at = TRY(SaveForeign(chat, plan.foreign, plan.foreign_of_imported));
  Json next = Json::object();
  if (then.head) next["head"] = then.head->str();
  if (then.stands) next["position"] = PositionText(then.at, then.while_at);
  TRY(history.Restore(chat, plan.steps, DumpJson(next), commit));
  LogInfo("files of the workspace were put back", {{"chat", chat.str()}, {"files", plan.steps.size()}});
  return {};
}

// Saved at the head, so that going back to it also restores the changes by others.
Result<InteractionId> WorkspaceMoves::SaveForeign(const ChatId& chat, std::vector<WorkspaceChange> foreign,
                                                  bool of_imported) {
  Beginning head = TRY(start_points_.AtHead(chat));
  const State at = StandsAt(chat, head.parent);
  const auto hold = TRY(services_.parts.runs.Begin({.chat = chat, .expected_head = head.expected_head}));
  Interaction saved{.id = hold->id(), .chat_id = chat};
  saved.workspace = head.workspace().empty() ? services_.home->path : head.workspace();
  saved.parent_id = head.parent;
  saved.imported = of_imported;  // its earlier contents were not seen here
  saved.status = InteractionStatus::kCompleted;
  saved.created_at = saved.completed_at.emplace(Now());
  saved.record = RunRecord{.first_message = head.state.messages.size()};
  if (at != head.parent) saved.record->files_from = at;
  for (auto& changed : InEvents(std::nullopt, {.recorded = std::move(foreign)})) {
    const std::uint64_t seq = saved.events.size() + 2;  // interaction_started is 1
    saved.events.push_back({.seq = seq, .at = saved.created_at, .payload = std::move(changed)});
  }
  saved.final_agent_state = std::move(head.state);
  TRY(hold->Finish(saved));
  services_.changes.Add(ChatChange::Kind::kHeadMoved, chat);
  return saved.id;
}

void WorkspaceMoves::Recover() {
  if (!is_on()) return;
  const auto commit = [&](const ChatId& chat, const std::string& then) -> Result<void> {
    const Json json = TRY(ParseJson(then));
    JsonReader reader(json, "intent");
    const State head = StateIn(reader, "head");
    const auto position = reader.OptionalString("position");
    if (reader.error()) return Fail(*reader.error());
    if (head) {
      auto moved = services_.parts.store.MoveHead(chat, *head);
      if (!moved && IsNotFound(moved.error())) return {};  // the chat is gone
      if (!moved) return Fail(moved.error());
      return Stand(chat, *head, *head);
    }
    return position ? kept().SetPosition(chat, *position) : Result<void>();
  };
  for (const std::string& path : kept().Recover(commit)) {
    const auto workspace = services_.parts.workspaces ? services_.WorkspaceAt(path)
                                                      : Fail(Reason::kNoSuchWorkspace, "it is not this server's");
    if (workspace) {
      (*workspace)->history->Recover(commit);
    } else {
      LogWarning("files of another workspace were being put back; they are left as they are",
                 {{"workspace", path}, {"error", workspace.error().message}});
    }
  }
}

// --- what an interaction did -----------------------------------------------------------------------------------------

Result<InteractionDiff> WorkspaceMoves::DiffOf(const ChatId& chat, InteractionId interaction,
                                               const std::optional<std::string>& call_id) const {
  constexpr std::size_t kMostBytes = 32 << 20;  // of an answer
  const auto found = interactions_.Find(chat, interaction);
  if (found && !call_id && !interactions_.FindFinished(chat, interaction)) {
    return Fail(Reason::kNotFinished, "the interaction has not come to its end yet");
  }
  if (!found) return Fail(found.error());
  std::vector<WorkspaceChange> changes;
  for (auto& [path, change] : ChangesOf(*found, call_id)) {
    if (change.before != change.after) changes.push_back(std::move(change));
  }
  const std::set<std::string> shown = Shown(changes);
  InteractionDiff diffs;
  AddMissed(diffs, *found, call_id);
  std::size_t bytes = 0;
  for (WorkspaceChange& change : changes) {
    std::string path = ToValidUtf8(change.path);
    if (!shown.contains(path)) path += '/';
    if (!shown.contains(path)) continue;
    FileDiff diff{.change = change, .path = std::move(path), .change_name = ChangeName(change.before, change.after)};
    if (is_on() && bytes < kMostBytes) diff.unified = TRY(kept().DiffOf(chat, change));
    bytes += diff.unified.size();
    diffs.files.push_back(std::move(diff));
  }
  return diffs;
}

}  // namespace reprise
