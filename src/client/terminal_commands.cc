// The commands, which begin with a slash.
#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/private_file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "client/answers.h"
#include "client/server_access.h"
#include "client/terminal_client.h"
#include "domain/codec.h"
#include "domain/transcript/transcript.h"
#include "reprise/project_instructions.h"
#include "reprise/timestamp.h"
#include "terminal/diff_view.h"
#include "terminal/wrapped_text.h"

namespace reprise {
namespace {

constexpr std::size_t kListedChats = 20, kMostSearched = 500, kListedMatches = 50;
constexpr std::size_t kShownDiffLines = 1'000, kListedFiles = 50;
constexpr std::size_t kShownTitle = 50;
constexpr const char* kRuns = "this chat is running: wait, or cancel it by Ctrl-C";

// `text` as a number; 0 if it is none.
std::size_t NumberOf(std::string_view text) { return ParseNumber<std::size_t>(text).value_or(0); }

// 0 if it is no count.
std::uint64_t CountIn(const Json& json, const char* name) {
  const Json& count = MemberOf(json, name);
  return count.is_number_unsigned() ? count.get<std::uint64_t>() : 0;
}

std::string LocalTime(const Json& json, const char* name) {
  const auto time = ParseTimestamp(TextMember(json, name));
  return time ? FormatForReading(*time) : "";
}

// The cost; if some models have no price, the sum of the others, and the names of those without.
std::string Cost(const Json& usage) {
  if (const Json& cost = MemberOf(usage, "cost"); cost.is_number()) return ", cost " + DumpJson(cost);
  double sum = 0;
  std::string without;
  for (const Json& model : ListedIn(usage, "models")) {
    const Json& cost = MemberOf(model, "cost");
    if (cost.is_number()) sum += cost.get<double>();
    if (!cost.is_number()) without += (without.empty() ? "" : ", ") + VisibleLine(TextMember(model, "model"));
  }
  return sum > 0 ? ", cost " + DumpJson(Json(sum)) + " without " + without + " (no price)" : "";
}

// The reason why a file is not put back as it was.
std::string Conflict(const std::string& reason) {
  return "conflict: " + (reason == "changed"        ? "changed by someone else since"
                         : reason == "not_kept"     ? "what is there now is not kept, and would be lost"
                         : reason == "lost"         ? "what was there is not kept"
                         : reason == "out_of_reach" ? "out of reach for tools"
                         : reason == "not_empty"    ? "a folder there is not empty"
                         : reason == "link_outside" ? "an imported link that may lead out of the workspace"
                                                    : VisibleLine(reason));
}

// The first few names.
std::string Listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 5;
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) list += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kMost ? list + ", ..." : list;
}

// What a file that is put back is then without.
std::string Losses(const Json& file) {
  std::vector<std::string> names = file.value("loses", std::vector<std::string>());
  for (std::string& name : names) std::ranges::replace(name = VisibleLine(name), '_', ' ');
  return names.empty() ? "" : "; without its " + Listed(names);
}

}  // namespace

const std::vector<TerminalClient::Command>& TerminalClient::Commands() {
  static const std::vector<Command> commands = {
      {"/chats", "[all]", "lists the newest chats of this folder, or of all folders", &TerminalClient::ListChats},
      {"/new", "", "begins another chat", &TerminalClient::NewChat},
      {"/resume", "[N|CHAT]", "opens a chat by its number in /chats, its id or the beginning of it, or its title",
       &TerminalClient::Resume},
      {"/history", "", "shows all turns of this chat with their numbers", &TerminalClient::History},
      {"/edit", "[N] [TEXT]", "replaces the message of turn N or the last one; later turns are kept as a branch",
       &TerminalClient::Edit},
      {"/undo", "[files|force]",
       "undoes the last turn; files: also its changes of files; force: even over changes that others made since",
       &TerminalClient::Undo},
      {"/redo", "[files|force]", "redoes it", &TerminalClient::Redo},
      {"/diff", "[N]", "shows the workspace changes of turn N or the last one", &TerminalClient::ShowDiff},
      {"/branches", "[N]", "switches to branch N; alone: a menu of the ends of this chat", &TerminalClient::Branches},
      {"/fork", "[TITLE]", "copies this chat into a new one", &TerminalClient::Fork},
      {"/regenerate", "", "sends the last message again", &TerminalClient::Regenerate},
      {"/continue", "", "resumes a failed or cancelled turn", &TerminalClient::GoOn},
      {"/model", "[NAME]", "switches the model; a part of its name is enough; alone: a menu", &TerminalClient::Model},
      {"/mode", "[ask|plan|edits|auto|all]", "sets what this chat may do without asking; alone: shows it",
       &TerminalClient::Mode},
      {"/approvals", "[ID]", "asks what waits for you, in every chat, as one list", &TerminalClient::Approvals},
      {"/grants", "[revoke N]", "lists the grants of this chat and of every chat; revokes grant N",
       &TerminalClient::Grants},
      {"/tasks", "", "shows the agent's plan and tasks", &TerminalClient::Tasks},
      {"/jobs", "[stop ID | open ID PORT | close ID PORT]",
       "lists this chat's background jobs; stops one; opens a port of one to your browser", &TerminalClient::Jobs},
      {"/usage", "", "shows tokens and cost of this chat", &TerminalClient::Usage},
      {"/compact", "[MESSAGE]", "from the next message on, the model gets a summary in place of earlier messages",
       &TerminalClient::Compact},
      {"/instructions", "", "lists instructions for agents (AGENTS.md, skills, commands, agents); allows new ones",
       &TerminalClient::Instructions},
      {"/attach", "FILE", "attaches a file to the next message, like @FILE in it", &TerminalClient::Attach},
      {"/detach", "", "removes the attached files from the next message", &TerminalClient::Detach},
      {"/export", "FILE", "writes this chat to a file, as Markdown (.md) or JSON", &TerminalClient::Export},
      {"/search", "TEXT", "finds text in all chats", &TerminalClient::Search},
      {"/queue", "[TEXT]", "sends TEXT after the current run; alone: lists the queue", &TerminalClient::Queue},
      {"/decline", "", "declines a tool's question", &TerminalClient::Decline},
      {"/theme", "[terminal|dark|light|none]", "uses other colours until you leave", &TerminalClient::UseTheme},
      {"/help", "", "lists the commands", &TerminalClient::Help},
      {"/quit", "", "leaves, like Ctrl-D", &TerminalClient::Quit},
  };
  return commands;
}

void TerminalClient::RunCommand(const std::string& word, const std::string& arguments) {
  if (word == "/exit") return Quit(arguments);
  for (const Command& command : Commands()) {
    if (command.name != word) continue;
    const std::string given(Trimmed(arguments, " \n"));
    if (command.arguments.empty() && !given.empty()) return Complain(word + " takes no argument (" + given + ")");
    return (this->*command.run)(given);
  }
  RunFolderCommand(word, arguments);
}

void TerminalClient::RunFolderCommand(const std::string& word, const std::string& arguments) {
  const auto expanded = ExpandFolderCommand(link_, InFolder(""), {.command = word, .text = arguments});
  if (!expanded) {
    draft_ = word + (arguments.empty() ? "" : " " + arguments);
    return Failed(expanded.error());
  }
  if (*expanded) return Say((*expanded)->message, (*expanded)->model);
  std::vector<std::string> known;
  for (const Command& command : Commands()) known.emplace_back(command.name);
  for (const Json& file : FolderCommands()) known.push_back("/" + TextMember(file, "name"));
  Complain("there is no such command" + DidYouMean(word, known) + " (/help lists them; // before it sends it as text)");
}

bool TerminalClient::IsOwnCommand(std::string_view word) {
  return word == "/exit" || std::any_of(Commands().begin(), Commands().end(),
                                        [&](const Command& command) { return command.name == word; });
}

std::vector<Json> TerminalClient::FolderCommands() {
  std::vector<Json> commands;
  const auto listed = server_.Call("GET", InFolder("/instructions"));
  if (!listed) return commands;  // this user may not see them
  std::set<std::string> taken;
  for (const Json& file : ListedIn(*listed, "files")) {
    const std::string kind = TextMember(file, "kind");
    if (kind != "command" && kind != "skill") continue;
    taken.insert(TextMember(file, "name"));
    if (TextMember(file, "state") == "used") commands.push_back(file);
  }
  for (const BuiltInCommand& each : kBuiltInCommands) {
    if (!taken.contains(std::string(each.name))) {
      commands.push_back({{"name", each.name}, {"description", each.description}});
    }
  }
  return commands;
}

void TerminalClient::Help(const std::string&) {
  std::size_t widest = 0;
  for (const Command& command : Commands())
    widest = std::max(widest, command.name.size() + command.arguments.size() + 1);
  for (const Command& command : Commands()) {
    std::string name = std::string(command.name) + " " + std::string(command.arguments);
    name.resize(widest + 2, ' ');
    for (const std::string& line :
         Wrap(command.help, screen_.columns(), style_.Paint(Style::kBold, name), std::string(widest + 2, ' '))) {
      screen_.Add(line);
    }
  }
  for (const Json& file : FolderCommands()) {
    const std::string word = "/" + TextMember(file, "name");
    const std::string more = VisibleLine(TextMember(file, "description"));
    Tell(IsOwnCommand(word)
             ? word + " is a command of this client, so it does not run " + VisibleLine(TextMember(file, "path"))
             : word + (file.contains("kind") ? ", the folder's " + TextMember(file, "kind") : "") +
                   (more.empty() ? "" : ": " + more));
  }
  Tell("//TEXT is a message that begins with /, and @FILE in a message gives the file with it.");
  Tell("? at an empty line shows the keys. What is typed while a run goes on is sent when it has ended.");
}

void TerminalClient::Quit(const std::string&) { leaving_ = true; }

void TerminalClient::Decline(const std::string&) { Complain("no tool asks anything that could be declined"); }

// --- chats -------------------------------------------------------------------------------------------------------

void TerminalClient::ListChats(const std::string& arguments) {
  const bool all = arguments == "all";
  const auto list = Call("GET", "/chats?limit=" + std::to_string(all ? kListedChats : kMostSearched));
  if (!list) return Failed(list.error());
  listed_.clear();
  std::size_t others = 0;
  for (const Json& chat : ListedIn(*list, "chats")) {
    if (!all && !link_.WorksHere(chat)) {
      ++others;
      continue;
    }
    if (listed_.size() == kListedChats) break;
    const std::string id = TextMember(chat, "id"), status = TextMember(chat, "head_status");
    listed_.push_back(id);
    const auto error = chat.find("error");
    std::string line = std::to_string(listed_.size()) + ". " + VisibleLine(id) + (id == chat_ ? " *" : "") + "  ";
    if (error != chat.end() && error->is_object()) {
      screen_.Add(style_.Paint(Style::kError, line + VisibleLine(TextMember(*error, "message"))));
      continue;
    }
    line += LocalTime(chat, "updated_at") + "  " + Shortened(VisibleLine(TextMember(chat, "title")), kShownTitle);
    if (status == "RUNNING" || status.starts_with("WAITING")) line += "  (" + VisibleLine(status) + ")";
    screen_.Add(CutToWidth(line, screen_.columns()));
  }
  const std::string more = others > 0 ? "/chats all lists those of other folders too" : "`reprise ls` lists all";
  if (listed_.empty()) return Tell(others > 0 ? "no chat works here yet (" + more + ")" : "there is no chat yet");
  const bool is_more = others > 0 || (list->contains("next") && !(*list)["next"].is_null());
  Tell("(/resume N goes to one" + (is_more ? "; " + more : "") + ")");
}

void TerminalClient::SwitchTo(const std::string& chat) {
  if (running()) return Complain("this chat is running: press Ctrl-C first");
  if (!queued_.empty()) return Complain("a message waits in this chat: press Ctrl-C first");
  chat_ = chat;
  path_ = "/chats/" + chat_;
  attachments_.clear();
  uploaded_.clear();
  compact_ = false;
  allows_ = Allows::kNothing;
  is_mode_chosen_ = false;
  undone_chat_.reset();
  Tell("chat " + chat_);
  Attach();
}

void TerminalClient::NewChat(const std::string&) { SwitchTo(ChatId::Random().str()); }

void TerminalClient::Resume(const std::string& arguments) {
  if (arguments.empty()) return OpenMenu("/resume ");
  const std::size_t number = NumberOf(arguments);
  if (number != 0 && listed_.empty()) ListChats({});
  if (number >= 1 && number <= listed_.size()) return SwitchTo(listed_[number - 1]);
  ChatNames names = NamesAt([&](const std::string& path) { return Call("GET", path); }, server_.url());
  names.hint = "/chats lists them";
  names.takes_parts = true;
  const auto chat = FindChat(arguments, names);
  chat ? SwitchTo(chat->str()) : Failed(chat.error());
}

std::optional<std::vector<Json>> TerminalClient::Turns(std::string_view nothing_yet) {
  const auto chat = Call("GET", path_);
  std::vector<Json> turns;
  if (!chat && !chat.error().Is(Reason::kNotFound)) {
    Failed(chat.error());
    return std::nullopt;
  }
  if (chat) {
    for (const Json& interaction : ListedIn(*chat, "interactions")) {
      if (!TextMember(interaction, "user_message").empty()) turns.push_back(interaction);
    }
  }
  if (!turns.empty()) return turns;
  Complain(std::string(nothing_yet));
  return std::nullopt;
}

void TerminalClient::History(const std::string&) {
  const auto turns = Turns("nothing was said in this chat yet");
  if (!turns) return;
  for (std::size_t i = 0; i < turns->size(); ++i) ShowTurn((*turns)[i], i + 1);
}

// --- changing earlier turns --------------------------------------------------------------------------------------

void TerminalClient::Edit(const std::string& arguments) {
  if (running()) return Complain(kRuns);
  const auto turns = Turns("there is no message to edit yet: say something first");
  if (!turns) return;
  const std::string word = arguments.substr(0, arguments.find_first_of(" \n"));
  const bool is_number = !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
  std::size_t number = NumberOf(word);
  std::string text(is_number ? Trimmed(std::string_view(arguments).substr(word.size()), " \n") : arguments);
  if (is_number && (number == 0 || number > turns->size()))
    return Complain("there is no turn " + word + " (/history shows them)");
  if (number == 0) number = turns->size();
  const Json& turn = (*turns)[number - 1];
  const std::string path = path_ + "/interactions/" + TextMember(turn, "id") + "/edit";
  const auto typed = [&](const std::string& words) { return "/edit " + std::to_string(number) + " " + words; };
  if (text.empty()) {
    text = AsTyped(TextMember(turn, "user_message"));
    const std::string before = text;
    const auto came = screen_.ReadMessage("edit> ", meanwhile_, text);
    if (came == Came::kWithdrawn) draft_ = typed(text);
    if ((came == Came::kEscape || came == Came::kInterrupt) && text != before) input_.editor()->Remember(typed(text));
    if (came != Came::kLine || text.empty() || text == before) return Tell("(not changed)");
    if (IsOrder(text)) return Obey(text);
    text = ParseTyped(text).text;
  }
  // Tells the effects of the edit. Of the tools' side effects only changed files can be undone.
  Json files = Json::object();
  if (const auto preview = Call("POST", path, {{"new_user_message", text}, {"dry_run", true}}); preview) {
    const std::size_t taken_back = ListedIn(*preview, "superseded").size();
    if (taken_back > 1) Tell("(" + std::to_string(taken_back) + " turns are a branch of their own now: /branches)");
    for (const Json& effect : ListedIn(*preview, "side_effects")) {
      const std::string on = TextMember(effect, "path");
      Tell("(not undone: " + TextMember(effect, "tool_name") + (on.empty() ? "" : " " + on) + ")");
    }
    auto choice = FilesOfEdit(*preview);
    if (!choice) {
      draft_ = Joined(typed(text), draft_);
      return Tell("(not changed)");
    }
    files = *std::move(choice);
  }
  Json body = RunOptions(model_);
  body.update(files);
  body["new_user_message"] = text;
  const std::vector<std::string> named = FilesIn(text);
  auto attachments = Attachments(named);
  if (!attachments) {
    draft_ = typed(text);
    return;
  }
  for (const std::string& id : KeptAttachments(turn, text, named)) AddOnce(*attachments, id);
  body["attachments"] = *std::move(attachments);
  Start(path, std::move(body), text, typed(text));
}

// Asks whether to put files back with the edit, if there are any; nullopt: no edit.
std::optional<Json> TerminalClient::FilesOfEdit(const Json& preview) {
  const Json& files = ListedIn(preview, "files");
  if (files.empty()) return Json::object();
  TellOfEach(preview, "can be put back: ");
  const bool conflict = preview.contains("omitted") || preview.contains("unseen") ||
                        std::ranges::any_of(files, [](const Json& file) { return file.contains("reason"); });
  std::string answer;
  Json chosen = {{"files", "restore"}};
  const std::string prompt = conflict ? "put files back? [y]es, [f]orce, [N]o> " : "put files back? [y]es, [N]o> ";
  if (Answer(Choice(prompt, conflict ? "yfnN" : "ynN"), answer, Besides::kGoingBack) != Answered::kLine) {
    return std::nullopt;
  }
  KeepQuestion(prompt + VisibleLine(answer));
  const bool force = answer == "f" || answer == "force";
  if (!force && answer != "y" && answer != "yes") return Json::object();
  if (force) chosen["force"] = true;
  if (!AgreesToImported(files, chosen)) return std::nullopt;
  return chosen;
}

// Asks about files that an imported chat would write into the workspace, shown before. False: do nothing.
bool TerminalClient::AgreesToImported(const Json& files, Json& choice) {
  const bool is_any = std::ranges::any_of(files, [](const Json& file) { return file.contains("imported"); });
  if (!is_any) return true;
  std::string answer;
  const std::string prompt = "some of it comes from an imported chat and was not seen here: write it? [y]es, [N]o> ";
  if (Answer(Choice(prompt, "ynN"), answer, Besides::kGoingBack) != Answered::kLine) return false;
  KeepQuestion(prompt + VisibleLine(answer));
  choice["allow_imported"] = answer == "y" || answer == "yes";
  return choice["allow_imported"] == Json(true);
}

void TerminalClient::ShowDiff(const std::string& arguments) {
  const auto turns = Turns("nothing was said in this chat yet");
  if (!turns) return;
  const std::size_t number = arguments.empty() ? turns->size() : NumberOf(arguments);
  if (number < 1 || number > turns->size()) {
    return Complain("there is no turn " + arguments + " (/history shows them)");
  }
  const std::string id = TextMember((*turns)[number - 1], "id");
  const auto changed = Call("GET", path_ + "/interactions/" + id + "/diff");
  if (!changed) return Failed(changed.error());
  const Json& files = ListedIn(*changed, "files");
  if (changed->contains("unseen")) Tell("(what a call of this turn changed is not recorded)");
  if (files.empty() && !changed->contains("omitted") && !changed->contains("unseen"))
    return Tell("turn " + std::to_string(number) + " has changed no file that is recorded");
  ShowLines(DrawUnified(files, style_, screen_.columns()), "GET " + path_ + "/interactions/" + id + "/diff");
  if (const auto omitted = CountIn(*changed, "omitted"); omitted > 0) {
    Tell("(and " + Counted(omitted, "more file") + ", not recorded)");
  }
}

// Shows the first lines; `rest` says where to find the others.
void TerminalClient::ShowLines(std::vector<std::string> lines, const std::string& rest) {
  const std::size_t left = lines.size() - std::min(lines.size(), kShownDiffLines);
  lines.resize(lines.size() - left);
  if (!lines.empty()) screen_.Add(lines);
  if (left > 0) Tell("(" + Counted(left, "more line") + ": " + rest + ")");
}

// The request members for the argument of /undo and /redo; nullopt if it is invalid: the person is told.
std::optional<Json> TerminalClient::FilesChoice(const std::string& arguments) {
  if (arguments.empty()) return Json::object();
  if (arguments == "files") return Json{{"files", "restore"}};
  if (arguments == "force") return Json{{"files", "restore"}, {"force", true}};
  Complain("only \"files\" or \"force\" can stand behind it");
  return std::nullopt;
}

// Lists the conflicts that prevent restoring files. False if `error` is another one.
bool TerminalClient::TellsOfConflicts(const Error& error) {
  if (!error.Is(Reason::kWorkspaceConflict)) return false;
  const auto details = ParseJson(error.details_json);
  const Json files = details ? ListedIn(*details, "files") : Json::array();
  for (std::size_t i = 0; i < std::min(files.size(), kListedFiles); ++i) {
    Tell("(" + VisibleLine(TextMember(files[i], "path")) + ": " + Conflict(TextMember(files[i], "reason")) + ")");
  }
  Complain("files cannot be put back because of conflicts; with \"force\" all that can be is put back");
  return true;
}

std::optional<Json> TerminalClient::FilesToPutBack(const std::string& route, Json body) {
  if (!body.contains("files")) return std::nullopt;
  body.erase("force");
  if (TextMember(body, "files") != "only") body.erase("files");
  body["dry_run"] = true;
  const auto preview = Call("POST", path_ + route, body);
  if (!preview) return std::nullopt;  // the request itself will report the reason
  TellOfEach(*preview, "to put back: ");
  return ListedIn(*preview, "files");
}

// Lists the previewed changes of files, up to a limit.
void TerminalClient::TellOfEach(const Json& preview, const std::string& how) {
  const Json& files = ListedIn(preview, "files");
  for (std::size_t i = 0; i < std::min(files.size(), kListedFiles); ++i) {
    const std::string reason = TextMember(files[i], "reason");
    Tell("(" + how + VisibleLine(TextMember(files[i], "path")) + ", " + TextMember(files[i], "change") +
         (reason.empty() ? "" : "; " + Conflict(reason)) + Losses(files[i]) + ")");
  }
  Json imported = Json::array();
  for (const Json& file : files) {
    if (file.contains("diff")) imported.push_back(file);
  }
  ShowLines(DrawUnified(imported, style_, screen_.columns()), "ask for a dry run over HTTP");
  if (files.size() > kListedFiles) Tell("(and " + Counted(files.size() - kListedFiles, "more file") + ")");
  if (const auto omitted = CountIn(preview, "omitted"); omitted > 0) {
    Tell("(" + Counted(omitted, "more changed file") + " cannot be put back: too many changed for all to be recorded)");
  }
  if (preview.contains("unseen")) Tell("(what a call changed was not recorded, and stays as it is)");
}

// Lists the files that were put back, and those that were left.
void TerminalClient::TellOfFiles(const std::optional<Json>& files) {
  if (!files) return;
  std::vector<std::string> done, left;
  for (const Json& file : *files) {
    const std::string reason = TextMember(file, "reason");
    const bool is_left =
        reason == "lost" || reason == "out_of_reach" || reason == "not_empty" || reason == "link_outside";
    (is_left ? left : done).push_back(VisibleLine(TextMember(file, "path")));
  }
  Tell(done.empty() ? "no file was put back" : "put back: " + Listed(done));
  if (!left.empty()) Tell("left as it is: " + Listed(left));
}

// The chat ends at another turn now.
void TerminalClient::TellOfEnd(const std::string& more) {
  if (const auto turns = Turns("nothing was said in this chat yet")) {
    shown_.insert(head_ = TextMember(turns->back(), "id"));  // this change's event is no other client's
    Tell("turn " + std::to_string(turns->size()) + " is the last one now: " +
         Shortened(VisibleLine(TextMember(turns->back(), "user_message")), kShownTitle) + more);
  }
}

void TerminalClient::Undo(const std::string& arguments) {
  if (running()) return Complain(kRuns);
  auto files = FilesChoice(arguments);
  if (!files) return;
  const auto before = Call("GET", path_);
  std::string message;
  bool is_first = false;
  if (before) {
    for (const Json& turn : ListedIn(*before, "interactions")) {
      message = TextMember(turn, "user_message");
      is_first = TextMember(turn, "parent_id").empty();
    }
  }
  // A chat keeps its first message. Undoing it opens a new chat instead, and puts only the files back.
  const bool only_files = is_first && files->contains("files");
  if (only_files) (*files)["files"] = "only";
  const auto put_back = FilesToPutBack("/undo", *files);
  if (put_back && !AgreesToImported(*put_back, *files)) return Tell("(nothing has changed)");
  const auto undone = Call("POST", path_ + "/undo", *std::move(files));
  if (!undone && TellsOfConflicts(undone.error())) return;
  const std::string refusal = undone ? "" : undone.error().reason;
  if (refusal == "not_found" || (refusal == "nothing_to_undo" && (!before || TextMember(*before, "head").empty()))) {
    return Complain("there is nothing to undo yet: say something first");
  }
  if (refusal == "nothing_to_undo" || (undone && only_files)) {
    const std::string old = chat_;
    auto undone_there = undone_;
    NewChat({});
    if (chat_ == old) return;
    undone_chat_.emplace(old, std::move(undone_there));
    Tell("(chat " + old + " is kept: /redo" + (only_files ? " files" : "") + ", or /resume " + old +
         ", goes back to it)");
    if (only_files) TellOfFiles(put_back);
    return GiveBack(message);
  }
  if (!undone) return Failed(undone.error());
  if (before) undone_.push_back(TextMember(*before, "head"));
  TellOfEnd(" (/redo goes forward again)");
  TellOfFiles(put_back);
  GiveBack(message);
}

void TerminalClient::Redo(const std::string& arguments) {
  if (running()) return Complain(kRuns);
  auto files = FilesChoice(arguments);
  if (!files) return;
  if (undone_chat_) {
    auto [chat, undone] = *std::exchange(undone_chat_, std::nullopt);
    SwitchTo(chat);
    if (chat_ != chat) return;
    undone_ = std::move(undone);
    GiveBack({});
    if (!files->contains("files")) return;
    const auto there = Call("GET", path_);
    if (!there) return Failed(there.error());
    return GoForward(TextMember(*there, "head"), *std::move(files));
  }
  std::string head = undone_.empty() ? "" : undone_.back();
  if (head.empty()) {
    // Undone on an earlier visit: take the newest child of the present head.
    const auto chat = Call("GET", path_ + "?branches=all&state=none");
    if (!chat) return chat.error().Is(Reason::kNotFound) ? Complain("there is nothing to redo") : Failed(chat.error());
    const std::string now = TextMember(*chat, "head");
    for (const Json& interaction : ListedIn(*chat, "interactions")) {
      if (TextMember(interaction, "parent_id") == now) head = std::max(head, TextMember(interaction, "id"));
    }
  }
  if (head.empty()) return Complain("there is nothing to redo");
  GoForward(head, *std::move(files));
}

void TerminalClient::GoForward(const std::string& head, Json files) {
  files["interaction_id"] = head;
  const auto put_back = FilesToPutBack("/head", files);
  if (put_back && !AgreesToImported(*put_back, files)) return Tell("(nothing has changed)");
  const auto moved = Call("POST", path_ + "/head", std::move(files));
  if (!moved && TellsOfConflicts(moved.error())) return;
  if (!moved) return Failed(moved.error());
  if (!undone_.empty() && undone_.back() == head) undone_.pop_back();
  GiveBack({});
  TellOfEnd();
  TellOfFiles(put_back);
}

std::optional<std::vector<Json>> TerminalClient::BranchEnds() {
  const auto chat = Call("GET", path_ + "?branches=all&state=none");
  if (!chat && chat.error().Is(Reason::kNotFound)) return std::vector<Json>();
  if (!chat) return Failed(chat.error()), std::nullopt;
  const std::string head = TextMember(*chat, "head");
  std::set<std::string> parents;
  for (const Json& interaction : ListedIn(*chat, "interactions")) {
    parents.insert(TextMember(interaction, "parent_id"));
  }
  std::vector<Json> ends;
  for (Json interaction : ListedIn(*chat, "interactions")) {
    interaction["is_head"] = TextMember(interaction, "id") == head;
    if (!parents.contains(TextMember(interaction, "id")) || interaction["is_head"] == Json(true)) {
      ends.push_back(std::move(interaction));
    }
  }
  return ends;
}

void TerminalClient::Branches(const std::string& arguments) {
  const auto ends = BranchEnds();
  if (!ends) return;
  if (ends->empty()) return Complain("nothing was said in this chat yet");
  if (arguments.empty()) return OpenMenu("/branches ");
  const std::size_t number = NumberOf(arguments);
  if (number < 1 || number > ends->size())
    return Complain("there is no branch " + arguments + " (/branches lists them)");
  if (running()) return Complain(kRuns);
  const auto moved = Call("POST", path_ + "/head", {{"interaction_id", TextMember((*ends)[number - 1], "id")}});
  if (!moved) return Failed(moved.error());
  undone_.clear();
  TellOfEnd();
}

void TerminalClient::Fork(const std::string& arguments) {
  if (running()) return Complain(kRuns);
  const auto chat = Call("GET", path_);
  const std::string head = chat ? TextMember(*chat, "head") : "";
  if (head.empty()) return Complain("there is nothing to copy yet: say something first");
  Json body = {{"interaction_id", head}};
  if (!arguments.empty()) body["title"] = arguments;
  const auto forked = Call("POST", path_ + "/fork", body);
  if (!forked) return Failed(forked.error());
  SwitchTo(TextMember(*forked, "id"));
}

void TerminalClient::Regenerate(const std::string&) {
  if (running()) return Complain(kRuns);
  const auto turns = Turns("there is no message to send again yet");
  if (turns) Start(path_ + "/interactions/" + TextMember(turns->back(), "id") + "/regenerate", RunOptions(model_));
}

void TerminalClient::GoOn(const std::string&) {
  if (running()) return Complain("this chat is running");
  const auto turns = Turns("there is nothing to go on with yet");
  if (turns) Start(path_ + "/interactions/" + TextMember(turns->back(), "id") + "/resume", RunOptions(model_));
}

// --- the agent's settings and state ------------------------------------------------------------------------------

void TerminalClient::Model(const std::string& arguments) {
  if (arguments.empty()) return OpenMenu("/model ");
  const auto models = Call("GET", "/models");
  if (!models) return Failed(models.error());
  auto named = FindModel(arguments, *models, "/model lists them");
  if (!named) return Complain(named.error().message);
  model_ = *std::move(named);
  Tell("the next messages go to " + model_);
}

// A chat's own mode, which an approved plan sets, would hold in place of that of the messages.
bool TerminalClient::SetChatsMode() {
  const auto chat = server_.Call("GET", path_ + "?limit=1&state=none");
  if (chat) TakeMode(*chat);
  if (!chat || chats_mode_.empty()) return true;
  const ApprovalMode mode = allows_ == Allows::kPlan   ? ApprovalMode::kPlan
                            : allows_ == Allows::kAuto ? ApprovalMode::kAuto
                                                       : ApprovalMode::kAsk;
  const auto changed = Call("PATCH", path_, {{"approval_mode", ToString(mode)}});
  if (!changed) return Failed(changed.error()), false;
  chats_mode_ = ToString(mode);
  return true;
}

void TerminalClient::Mode(const std::string& arguments) {
  static const std::vector<std::string> names(kModeNames.begin(), kModeNames.end());
  const auto chosen = std::ranges::find(names, arguments);
  if (!arguments.empty() && chosen == names.end()) {
    return Complain("no mode is called " + arguments + DidYouMean(arguments, names) +
                    " (ask, plan, edits, auto or all)");
  }
  if (!arguments.empty()) {
    allows_ = static_cast<Allows>(chosen - names.begin());
    is_mode_chosen_ = true;
    if (!SetChatsMode()) return;
    return Tell(
        allows_ == Allows::kPlan      ? "from the next message on, nothing is changed before you have approved a plan"
        : allows_ == Allows::kNothing ? "every call that needs an approval is asked about"
        : allows_ == Allows::kAuto
            ? "from the next message on, changes of files that /undo can restore and commands in the sandbox are "
              "not asked about until you leave this chat; the rest is"
        : allows_ == Allows::kEdits ? "file edits here are allowed and shown until you leave; anything else still asks"
                                    : "everything that your turns ask is shown and allowed until you leave this chat");
  }
  Tell("here: " + ShownMode() + " (/mode ask, plan, edits, auto or all changes it)");
  const auto tools = Call("GET", "/tools");
  if (!tools) return Failed(tools.error());
  Tell("the server: " + TextMember(*tools, "approval_mode") +
       " (--approval-mode or \"approval_mode\" in the configuration)");
  const auto chat = server_.Call("GET", path_ + "?limit=1&state=none");
  const std::string own = chat ? TextMember(*chat, "approval_mode") : "";
  if (!own.empty()) Tell("this chat: " + own + ", in place of the server's");
  std::string asking;
  for (const Json& tool : ListedIn(*tools, "tools")) {
    const auto asks = tool.find("requires_approval");
    if (asks != tool.end() && asks->is_boolean() && asks->get<bool>()) {
      asking += (asking.empty() ? "" : ", ") + TextMember(tool, "name");
    }
  }
  Tell("asks before: " + (asking.empty() ? "nothing" : asking));
  ListGrants();
}

// Lists the grants of this chat and of all chats, numbered.
void TerminalClient::ListGrants() {
  grants_.clear();
  for (const std::string& path : {path_ + "/grants", std::string("/grants")}) {
    const auto grants = server_.Call("GET", path);
    if (!grants) continue;
    for (const Json& grant : ListedIn(*grants, "grants")) {
      const std::string pattern = TextMember(grant, "pattern"), until = LocalTime(grant, "expires_at");
      grants_.push_back(path + "/" + TextMember(grant, "id"));
      Tell(std::to_string(grants_.size()) + ". allowed " +
           std::string(path == "/grants" ? "in every chat" : "in this chat") + ": " + TextMember(grant, "tool_name") +
           (pattern.empty() ? ", with the very arguments that you allowed" : " " + pattern) + ", used " +
           Counted(CountIn(grant, "uses"), "time") + (until.empty() ? "" : ", until " + until));
      if (grant.contains("outdated")) {
        Tell("   it covers nothing any more: this version reads the pattern in another way than you allowed (" +
             TextMember(grant, "means") + ")");
      }
    }
  }
  if (!grants_.empty()) Tell("(/grants revoke N takes one back)");
}

void TerminalClient::Grants(const std::string& arguments) {
  if (arguments.empty()) {
    ListGrants();
    if (grants_.empty()) Tell("no call is allowed without asking, beside what the mode allows (/mode)");
    return;
  }
  const std::string word = arguments.substr(0, arguments.find(' '));
  if (word != "revoke") return Complain("/grants lists them, and /grants revoke N takes one back");
  if (grants_.empty()) ListGrants();
  const std::string given(Trimmed(std::string_view(arguments).substr(word.size()), " \n"));
  const std::size_t number = NumberOf(given);
  if (number < 1 || number > grants_.size()) return Complain("there is no grant " + given + " (/grants lists them)");
  if (const auto revoked = Call("DELETE", grants_[number - 1]); !revoked) return Failed(revoked.error());
  Tell("grant " + std::to_string(number) + " is taken back: such calls ask again");
  grants_.clear();  // the remaining ones get new numbers
}

void TerminalClient::Tasks(const std::string&) {
  const auto agenda = Call("GET", path_ + "/tasks");
  if (!agenda && agenda.error().Is(Reason::kNotFound)) return Tell("no plan and no tasks yet");
  if (!agenda) return Failed(agenda.error());
  const auto known = AgendaFromJson(*agenda);
  if (!known || (known->plan.empty() && known->tasks.empty())) return Tell("no plan and no tasks");
  if (!known->plan.empty()) view_.ShowPlan(known->plan);
  if (!known->tasks.empty()) view_.ShowTasks(known->tasks);
}

void TerminalClient::Jobs(const std::string& arguments) {
  constexpr std::string_view kStop = "stop ";
  if (arguments.starts_with(kStop)) {
    const auto stopped = Call("POST", path_ + "/jobs/" + arguments.substr(kStop.size()) + "/stop");
    return stopped ? Tell("stopped") : Failed(stopped.error());
  }
  for (const std::string_view verb : {"open", "close"}) {
    if (!arguments.starts_with(std::string(verb) + " ")) continue;
    std::istringstream words(arguments.substr(verb.size()));
    std::string id, port, more;
    if (!(words >> id >> port) || words >> more) return Complain("/jobs " + std::string(verb) + " takes ID and PORT");
    const auto changed = Call("POST", path_ + "/jobs/" + id + "/ports/" + port + "/" + std::string(verb));
    if (!changed) return Failed(changed.error());
    const std::string url = TextMember(*changed, "url");
    return Tell(url.empty() ? "port " + port + " is closed" : url);
  }
  const auto listed = Call("GET", path_ + "/jobs");
  if (!listed && listed.error().Is(Reason::kNotFound)) return Tell("no background jobs");
  if (!listed) return Failed(listed.error());
  const Json& jobs = ListedIn(*listed, "jobs");
  if (jobs.empty()) return Tell("no background jobs");
  for (const Json& job : jobs) {
    const std::string end = TextMember(job, "end");
    const std::string status = job.contains("status") ? " " + DumpJson(job["status"]) : "";
    Tell(TextMember(job, "id") + "  " + (end.empty() ? "runs" : end + status) + "  " +
         VisibleLine(TextMember(job, "command")));
    for (const Json& port : ListedIn(job, "ports")) {
      const std::string url = TextMember(port, "url");
      Tell("  listens on port " + DumpJson(MemberOf(port, "port")) +
           (url.empty() ? ": /jobs open ID PORT shows it to your browser" : ": " + url));
    }
  }
}

void TerminalClient::Usage(const std::string&) {
  const auto usage = Call("GET", path_ + "/usage");
  if (!usage && usage.error().Is(Reason::kNotFound)) return Tell("nothing was used in this chat yet");
  if (!usage) return Failed(usage.error());
  const auto number = [](const Json& json, const char* name) { return Grouped(CountIn(json, name)); };
  bool is_priced = false;
  for (const auto& [name, words] : {std::pair("branch", "this branch: "), std::pair("all", "all branches: ")}) {
    const Json& part = MemberOf(*usage, name);
    Tell(words + number(part, "input_tokens") + " tokens in, " + number(part, "output_tokens") + " out" + Cost(part));
    if (std::string_view(name) == "branch") continue;
    for (const Json& model : ListedIn(part, "models")) {
      Tell("  " + TextMember(model, "model") + ": " + number(model, "input_tokens") + " in, " +
           number(model, "output_tokens") + " out" + Cost(model));
      is_priced = is_priced || !Cost(model).empty();
    }
  }
  if (is_priced) Tell("(costs are in the currency of the prices in the configuration)");
}

void TerminalClient::Compact(const std::string& arguments) {
  if (running()) {
    if (!arguments.empty()) draft_ = "/compact " + arguments;
    return Complain(kRuns);
  }
  if (!Turns("there is nothing to summarise yet")) return;
  compact_ = true;
  if (!arguments.empty()) return Say(arguments);
  if (view_.context_tokens() != 0) Tell(Grouped(view_.context_tokens()) + " tokens were in the last request");
  Tell("(the chat keeps all of it; only the model gets the summary)");
}

void TerminalClient::Instructions(const std::string&) {
  if (running()) return Complain(kRuns);
  const auto listed = Call("GET", InFolder("/instructions"));
  if (!listed) return Failed(listed.error());
  const Json& files = ListedIn(*listed, "files");
  if (files.empty()) return Tell("no AGENTS.md, skills, commands or agents here");
  for (const Json& file : files) {
    const std::string path = VisibleLine(TextMember(file, "path")), state = TextMember(file, "state");
    if (state == "used") {
      const std::string word = "/" + TextMember(file, "name");
      Tell(path + ": used" +
           (word == "/" ? ""
                        : ", as the " + TextMember(file, "kind") + " " + word.substr(1) + ": " +
                              VisibleLine(TextMember(file, "description"))) +
           (word != "/" && TextMember(file, "kind") != "agent" && IsOwnCommand(word)
                ? " (" + word + " is a command of this client)"
                : ""));
    } else if (state == "unusable") {
      Tell(path + " is not used: " + VisibleLine(TextMember(file, "problem")));
    } else if (!AskToTrust(file)) {
      return;
    }
  }
}

void TerminalClient::UseTheme(const std::string& name) {
  if (name.empty()) return OpenMenu("/theme ");
  const auto theme = ThemeNamed(name);
  if (!theme && name != "none") {
    static const std::vector<std::string> names = {"terminal", "dark", "light", "none"};
    return Complain("no theme is called " + name + DidYouMean(name, names) + " (terminal, dark, light or none)");
  }
  style_ = Style(theme && has_colour_ ? Colour::kAlways : Colour::kNever, theme.value_or(Theme::kTerminal));
  if (theme && !has_colour_) return Complain("colours are off (NO_COLOR, or --color never)");
  Tell(settings_file_.empty() ? "until you leave"
                              : "until you leave; {\"theme\": \"" + name + "\"} in " + settings_file_ + " keeps it");
}

// --- files -------------------------------------------------------------------------------------------------------

void TerminalClient::Export(const std::string& file) {
  if (file.empty()) return Complain("/export FILE needs the file to write: chat.md is Markdown, chat.json is JSON");
  std::error_code unknown;
  if (std::filesystem::exists(file, unknown)) {
    return Complain("there is a file " + file + " already; choose another name");
  }
  const auto chat = Call("GET", path_);
  if (!chat && chat.error().Is(Reason::kNotFound)) return Complain("nothing was said in this chat yet");
  if (!chat) return Failed(chat.error());
  const auto text = file.ends_with(".md") ? server_.Text(path_ + "/export?format=markdown") : DumpJson(*chat) + "\n";
  if (!text) return Failed(text.error());
  if (auto written = WriteOutputFile(file, *text, /*replace=*/false); !written) return Failed(written.error());
  Tell("written to " + file);
}

void TerminalClient::Search(const std::string& text) {
  if (text.empty()) return Complain("/search TEXT needs the text");
  const auto found = Call("GET", "/search?limit=" + std::to_string(kListedMatches) + "&q=" + PercentEncoded(text));
  if (!found) return Failed(found.error());
  const Json& matches = ListedIn(*found, "matches");
  for (const Json& match : matches) {
    Tell(TextMember(match, "chat_id") + "/" + TextMember(match, "interaction_id") + "  " + TextMember(match, "where") +
         (ListedIn(match, "superseded") == true ? " (superseded)" : "") + "  " +
         VisibleLine(TextMember(match, "snippet")));
  }
  if (matches.empty()) return Tell("no chat has this text");
  const bool is_more = MemberOf(*found, "truncated") == true;
  Tell("(/resume CHAT goes to one" + std::string(is_more ? "; there are more: `reprise search` lists them)" : ")"));
}

void TerminalClient::Queue(const std::string& text) {
  if (!text.empty()) return Say(text);
  const auto queue = Call("GET", path_ + "/queue");
  if (!queue && !queue.error().Is(Reason::kNotFound)) return Failed(queue.error());
  const Json waiting = queue ? ListedIn(*queue, "queue") : Json::array();
  if (waiting.empty()) return Tell("no message is queued in this chat");
  for (const Json& each : waiting) Tell("queued: " + VisibleLine(TextMember(each, "user_message")));
}

}  // namespace reprise
