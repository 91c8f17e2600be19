// What the edited line can become: commands, their arguments, and files.
#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "base/terminal_text.h"
#include "base/text.h"
#include "client/run_stream.h"
#include "client/terminal_client.h"
#include "reprise/timestamp.h"
#include "terminal/question_text.h"
#include "tools/files/ignore_rules.h"
#include "tools/files/workspace.h"
#include "tools/files/workspace_walk.h"

namespace reprise {
namespace {

constexpr std::size_t kMostFiles = 20'000, kShownText = 500;
constexpr std::chrono::milliseconds kLongestWalk{300};

// "3 min ago"
std::string Ago(const Json& json, const char* name) {
  using namespace std::chrono;
  const auto time = ParseTimestamp(TextMember(json, name));
  if (!time) return "";
  const auto passed = duration_cast<minutes>(system_clock::now() - *time).count();
  if (passed < 1) return "now";
  if (passed < 60) return std::to_string(passed) + " min ago";
  return passed < 48 * 60 ? std::to_string(passed / 60) + " h ago" : std::to_string(passed / (24 * 60)) + " days ago";
}

// Of a file that is there; /export names one that is not.
bool TakesPath(std::string_view command) { return command == "/attach"; }

// Whether a number is the argument's first meaning.
bool TakesNumber(std::string_view command) { return command == "/resume" || command == "/branches"; }

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// The folder of a path that is listed by itself, because it may lie outside of this folder; empty if all files of this
// folder are offered.
std::string ListedFolder(const std::string& path) {
  const bool is_outside =
      path.starts_with('/') || path.starts_with("~/") || path.starts_with("./") || path.starts_with("../");
  return is_outside ? path.substr(0, path.rfind('/') + 1) : "";
}

// Whether a name can be shown as it is; emoji and scripts may hold joiners.
bool IsReadable(std::string_view name) {
  return name.find_first_of("\r\n\t") == std::string_view::npos && Indented(name, "") == name;
}

// The files here that a message can name, those of upper folders first; without what .gitignore names.
std::vector<std::string> FilesHere() {
  std::vector<std::string> files;
  std::error_code failed;
  const Workspace workspace(std::filesystem::current_path(failed).string(), {});
  const IgnoreFiles ignored(workspace);
  WorkspaceWalk walk(
      workspace, ignored,
      {.until = std::chrono::steady_clock::now() + kLongestWalk, .with_hidden = false, .accepts = IsReadable});
  const auto walked = walk.Through(".", Secrets::kClosed, [&](std::string path, int, const char*) {
    if (files.size() < kMostFiles) files.push_back(std::move(path));
  });
  static_cast<void>(walked);  // then there are no files to offer
  const auto order = [](const std::string& path) { return std::pair(std::ranges::count(path, '/'), path); };
  std::ranges::sort(files, {}, order);
  return files;
}

// The names in a folder; those of folders end with a slash.
std::vector<std::string> NamesInFolder(const std::string& folder, bool with_hidden) {
  std::vector<std::string> names;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if ((name.starts_with('.') && !with_hidden) || !IsReadable(name)) continue;
    std::error_code unknown;
    names.push_back(name + (entry->is_directory(unknown) ? "/" : ""));
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

// A file is named by the last word: @notes.txt, @"my notes.txt", or the argument of a command that takes a path.
std::optional<TerminalClient::NamedFile> TerminalClient::FileIn(const std::string& line) {
  const std::size_t space = line.find(' ');
  if (space != std::string::npos && TakesPath(line.substr(0, space))) {
    return NamedFile{.begin = space + 1, .path = line.substr(space + 1)};
  }
  if (const std::size_t quoted = line.rfind("@\""); quoted != std::string::npos) {
    const bool is_open = line.find_first_of("\"\n", quoted + 2) == std::string::npos;
    if (is_open) return NamedFile{.begin = quoted, .is_marked = true, .path = line.substr(quoted + 2)};
  }
  const std::size_t word = line.find_last_of(" \n") + 1;
  if (word == line.size() || line[word] != '@') return std::nullopt;
  return NamedFile{.begin = word, .is_marked = true, .path = line.substr(word + 1)};
}

// Puts a command into the line, whose argument is then chosen in a menu. On a plain terminal, lists what can be chosen.
void TerminalClient::OpenMenu(const std::string& command) {
  if (!screen_.is_plain()) {
    draft_ = command;
    return;
  }
  for (const MenuItem& item : MenuItems(command)) Tell(item.line + "  " + item.name + "  " + item.details);
}

std::optional<MenuPlace> TerminalClient::PlaceOfMenu(const std::string& line) const {
  if (!at_prompt_) return std::nullopt;
  if (searches_) return MenuPlace{.id = "history", .words = line, .takes_gaps = false};
  const std::size_t space = line.find(' ');
  const std::string word = line.substr(0, space);
  if (line.starts_with('/') && line.find('\n') == std::string::npos && !TakesPath(word)) {
    if (space == std::string::npos) return MenuPlace{.id = "/", .words = line, .takes_gaps = false};
    constexpr std::array kWithMenu = {"/resume", "/branches", "/model", "/mode", "/theme"};
    const std::string argument = line.substr(space + 1);
    if (word == "/export" || (TakesNumber(word) && IsNumber(argument))) return std::nullopt;
    if (std::ranges::find(kWithMenu, word) != kWithMenu.end()) {
      const bool is_this_chat = word == "/resume" && argument == chat_;
      return MenuPlace{.id = word + " ", .words = argument, .is_complete = is_this_chat};
    }
  }
  const auto file = FileIn(line);
  if (!file) return std::nullopt;
  const std::string folder = ListedFolder(file->path);
  std::error_code unknown;
  return MenuPlace{.id = "@" + std::to_string(file->begin) + folder,
                   .words = file->path.substr(folder.size()),
                   .is_complete = std::filesystem::is_regular_file(WithHome(file->path), unknown)};
}

std::vector<MenuItem> TerminalClient::MenuItems(const std::string& line) {
  if (searches_) return HistoryItems();
  const std::string word = line.substr(0, line.find(' '));
  if (!line.starts_with('/') || TakesPath(word)) return FileItems(line);
  if (word == line) return CommandItems();
  if (word == "/resume") return ChatItems();
  if (word == "/branches") return BranchItems();
  if (word == "/model") return ModelItems();
  if (word == "/theme") return ThemeItems();
  return word == "/mode" ? ModeItems() : FileItems(line);
}

std::vector<MenuItem> TerminalClient::CommandItems() {
  std::vector<MenuItem> items;
  for (const Command& command : Commands()) {
    const bool takes_arguments = !command.arguments.empty();
    items.push_back({.name = std::string(command.name),
                     .details = std::string(command.help),
                     .line = std::string(command.name) + (takes_arguments ? " " : ""),
                     .is_whole = !takes_arguments || command.arguments.starts_with('[')});
  }
  for (const Json& file : FolderCommands()) {
    const std::string word = "/" + TextMember(file, "name");
    if (IsOwnCommand(word)) continue;
    const std::string description = TextMember(file, "description");
    items.push_back({.name = word,
                     .details = description.empty() ? "the folder's " + TextMember(file, "kind") : description,
                     .line = word + " ",
                     .is_whole = false});
  }
  return items;
}

// Those of this folder first.
std::vector<MenuItem> TerminalClient::ChatItems() {
  std::vector<MenuItem> here, elsewhere;
  const auto list = server_.Call("GET", "/chats?limit=500");
  if (!list) return here;
  for (const Json& chat : ListedIn(*list, "chats")) {
    const std::string id = TextMember(chat, "id"), folder = TextMember(chat, "workspace"),
                      title = TextMember(chat, "title");
    if (id == chat_ || chat.contains("error")) continue;
    const bool works_here = link_.WorksHere(chat);
    const std::string status = TextMember(chat, "status");
    std::string details = Ago(chat, "updated_at");
    if (status == "running") details += ", runs";
    if (status == "waiting") details += ", waits for you";
    if (chat.contains("damaged")) details += ", something of it is damaged";
    if (!works_here && !folder.empty()) details += "  " + folder;
    (works_here ? here : elsewhere).push_back({title.empty() ? id : title, details + "  " + id, "/resume " + id});
  }
  std::ranges::move(elsewhere, std::back_inserter(here));
  return here;
}

std::vector<MenuItem> TerminalClient::BranchItems() {
  std::vector<MenuItem> items;
  const auto ends = BranchEnds();
  for (std::size_t i = 0; ends && i < ends->size(); ++i) {
    const Json& end = (*ends)[i];
    const std::string number = std::to_string(i + 1);
    items.push_back({.name = number + ". " + TextMember(end, "user_message"),
                     .details = std::string(end["is_head"] == Json(true) ? "this one, " : "") + Ago(end, "created_at") +
                                "  " + TextMember(end, "id"),
                     .line = "/branches " + number});
  }
  return items;
}

std::vector<MenuItem> TerminalClient::ModelItems() {
  std::vector<MenuItem> items;
  const auto models = server_.Call("GET", "/models");
  if (!models) return items;
  const std::string now = model_.empty() ? TextMember(*models, "default") : model_;
  for (const Json& model : ListedIn(*models, "models")) {
    const std::string name = TextMember(model, "name");
    items.push_back({.name = name, .details = name == now ? "in use" : "", .line = "/model " + name});
  }
  return items;
}

std::vector<MenuItem> TerminalClient::ModeItems() {
  return {{"ask", "every call that needs an approval asks you", "/mode ask"},
          {"plan", "nothing changes before you have approved a plan", "/mode plan"},
          {"edits", "files in the workspace are changed unasked", "/mode edits"},
          {"auto", "what /undo or the sandbox can hold runs unasked", "/mode auto"},
          {"all", "everything runs unasked", "/mode all"}};
}

std::vector<MenuItem> TerminalClient::ThemeItems() {
  return {{"terminal", "the 16 colours of your terminal", "/theme terminal"},
          {"dark", "for a dark background", "/theme dark"},
          {"light", "for a light background", "/theme light"},
          {"none", "no colours", "/theme none"}};
}

// Newest first, each once.
std::vector<MenuItem> TerminalClient::HistoryItems() const {
  std::vector<MenuItem> items;
  std::vector<std::string> texts = input_.editor()->Remembered();
  std::set<std::string> seen;
  for (auto text = texts.rbegin(); text != texts.rend(); ++text) {
    if (!seen.insert(*text).second) continue;
    items.push_back(
        {.name = Shortened(VisibleLine(*text), kShownText), .details = {}, .line = *text, .is_whole = false});
  }
  return items;
}

std::vector<MenuItem> TerminalClient::FileItems(const std::string& line) const {
  std::vector<MenuItem> items;
  const auto file = FileIn(line);
  if (!file) return items;
  const std::string folder = ListedFolder(file->path), before = line.substr(0, file->begin);
  const bool with_hidden = file->path.substr(folder.size()).starts_with('.');
  for (const std::string& name : folder.empty() ? FilesHere() : NamesInFolder(WithHome(folder), with_hidden)) {
    const std::string path = folder + name;
    const bool is_quoted = file->is_marked && path.find(' ') != std::string::npos;
    if (path.find('"') != std::string::npos && is_quoted) continue;  // it cannot be named
    // Of a folder the quote stays open, because a name in it follows.
    const std::string named = is_quoted ? "\"" + path + (path.ends_with('/') ? "" : "\"") : path;
    items.push_back(
        {.name = name, .details = {}, .line = before + (file->is_marked ? "@" : "") + named, .is_whole = false});
  }
  return items;
}

}  // namespace reprise
