// Files that go with a message: named in it by @FILE, or attached by /attach.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/private_file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "client/answers.h"
#include "client/terminal_client.h"
#include "crypto/digest.h"
#include "terminal/own_programs.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxUpload = 64 << 20, kMaxPicture = 4 << 20;

// The files that a message names: @notes.txt, or, if the name has blanks, @"my notes.txt".
std::vector<std::string> PathsIn(std::string_view text) {
  std::vector<std::string> paths;
  for (std::size_t at = text.find('@'); at != std::string_view::npos; at = text.find('@', at)) {
    const bool begins_word = at == 0 || text[at - 1] == ' ' || text[at - 1] == '\n';
    ++at;
    if (!begins_word) continue;
    const bool is_quoted = text.substr(at).starts_with('"');
    if (is_quoted) ++at;
    const std::size_t end = std::min(text.find_first_of(is_quoted ? "\"\n" : " \n", at), text.size());
    if (end > at) paths.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return paths;
}

// The words of a shell's line; nullopt if a quote is open.
std::optional<std::vector<std::string>> ShellWords(std::string_view text) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quote == 0 && (c == ' ' || c == '\n')) {
      in_word = false;
      continue;
    }
    if (!std::exchange(in_word, true)) words.emplace_back();
    if (quote == 0 ? c == '\'' || c == '"' : c == quote) {
      quote = quote == 0 ? c : '\0';
      continue;
    }
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) c = text[++i];
    words.back() += c;
  }
  return quote == 0 ? std::optional(words) : std::nullopt;
}

// Whether a model sees such a file other than as text, so that its place alone says nothing.
bool IsPictureOrDocument(const std::filesystem::path& path) {
  constexpr std::string_view kKinds[] = {".png",  ".jpg", ".jpeg", ".gif", ".webp", ".pdf", ".docx", ".xlsx",
                                         ".pptx", ".odt", ".ods",  ".odp", ".rtf",  ".wav", ".mp3"};
  return std::ranges::find(kKinds, LowerCase(path.extension().string())) != std::end(kKinds);
}

}  // namespace

// Terminals name a file that is dropped on them as a shell would, or by its URI (RFC 8089).
std::string NamesOfDropped(const std::string& before, const std::string& pasted) {
  constexpr std::string_view kUri = "file://";
  if (before.starts_with('/') || before.starts_with('!')) return pasted;  // it is no message
  std::string names;
  for (std::string path : ShellWords(pasted).value_or(std::vector<std::string>())) {
    if (path.starts_with(kUri)) path = PercentDecoded(path.substr(kUri.size())).value_or("");
    std::error_code unknown;
    const bool is_dropped = path.starts_with('/') && path.find_first_of("\"\n") == std::string::npos &&
                            IsPictureOrDocument(path) && std::filesystem::is_regular_file(path, unknown);
    if (!is_dropped) return pasted;
    names += path.find(' ') == std::string::npos ? "@" + path + " " : "@\"" + path + "\" ";
  }
  const bool begins_word = before.empty() || before.ends_with(' ') || before.ends_with('\n');
  return names.empty() ? pasted : (begins_word ? "" : " ") + names;
}

// The files here that the message names.
std::vector<std::string> TerminalClient::FilesIn(const std::string& text) {
  std::vector<std::string> files;
  for (const std::string& named : PathsIn(text)) {
    const std::string path = WithHome(named);
    std::error_code unknown;
    if (std::filesystem::is_regular_file(path, unknown)) {
      files.push_back(path);
    } else if (!std::filesystem::exists(path, unknown) && path.find_first_of("./") != std::string::npos) {
      Tell("(there is no file " + path + " here: it goes as text)");
    }
  }
  return files;
}

// The ids of all files that go with a message; nullopt if one cannot be uploaded.
std::optional<std::vector<std::string>> TerminalClient::Attachments(const std::vector<std::string>& files) {
  std::vector<std::string> all = attachments_;
  for (const std::string& path : files) {
    const auto id = Upload(path);
    if (!id) return std::nullopt;
    AddOnce(all, *id);
  }
  return all;
}

// Those of the edited turn that its message did not name, or that the new one names and that are no longer here.
std::vector<std::string> TerminalClient::KeptAttachments(const Json& turn, const std::string& text,
                                                         const std::vector<std::string>& files) {
  const auto name = [](const std::string& path) { return std::filesystem::path(path).filename().string(); };
  const auto has = [&](const std::vector<std::string>& paths, const std::string& file) {
    return std::ranges::find(paths, file, name) != paths.end();
  };
  const std::vector<std::string> named_before = PathsIn(TextMember(turn, "user_message")), named = PathsIn(text);
  std::vector<std::string> kept;
  for (const Json& each : ListedIn(turn, "attachments")) {
    const std::string file = TextMember(each, "filename");
    if (!has(named_before, file) || (has(named, file) && !has(files, file))) kept.push_back(TextMember(each, "id"));
  }
  return kept;
}

void TerminalClient::AddOnce(std::vector<std::string>& ids, const std::string& id) {
  if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
}

std::optional<std::string> TerminalClient::Upload(const std::string& path) {
  auto bytes = ReadSmallFile(path, kMaxUpload);
  if (!bytes) return Failed(bytes.error()), std::nullopt;
  return Upload(std::filesystem::path(path).filename().string(), *std::move(bytes));
}

std::optional<std::string> TerminalClient::Upload(const std::string& name, std::string bytes) {
  std::string& id = uploaded_[{name, Sha256Digest({bytes})}];
  if (id.empty()) {
    const auto stored = server_.Upload(path_ + "/files", name, std::move(bytes));
    if (!stored) return Failed(stored.error()), std::nullopt;
    id = TextMember(*stored, "id");
  }
  Tell("(with " + name + ")");
  return id;
}

// The clipboard's programs print it, or nothing; over ssh they find no clipboard.
void TerminalClient::AttachPicture() {
  constexpr const char* kRead =
      "exec < /dev/null 2> /dev/null; for type in png jpeg; do if [ -n \"$WAYLAND_DISPLAY\" ]; "
      "then timeout 5 wl-paste --type image/$type; else timeout 5 xclip -selection clipboard -target image/$type -out; "
      "fi > \"$1\"; [ -s \"$1\" ] && exit 0; done; exit 1";
  const auto file = LentFile::Make("");
  const bool is_there = file && RunAtTerminal(kRead, file->path()) == 0;
  auto bytes = is_there ? file->Read(kMaxUpload) : std::nullopt;
  if (!bytes) {
    return Complain("there is no picture in the clipboard, or neither wl-paste (Wayland) nor xclip (X11) can read it");
  }
  const std::string name = bytes->starts_with("\x89PNG") ? "picture.png" : "picture.jpg";
  if (const auto id = Upload(name, *std::move(bytes))) AddOnce(attachments_, *id);
}

// Where the terminal shows pictures.
void TerminalClient::ShowPicture(const Attachment& file) {
  if (file.size_bytes > kMaxPicture || !screen_.ShowsPictures()) return;
  if (const auto bytes = server_.Text(path_ + "/files/" + file.id.str())) screen_.AddPicture(*bytes);
}

std::string TerminalClient::WithHome(const std::string& path) const {
  return path.starts_with("~/") && !home_.empty() ? home_ + path.substr(1) : path;
}

void TerminalClient::Detach(const std::string&) {
  if (attachments_.empty()) return Tell("no file goes with the next message");
  Tell(Counted(attachments_.size(), "file") + (attachments_.size() == 1 ? " does" : " do") +
       " not go with the next message");
  attachments_.clear();
}

void TerminalClient::Attach(const std::string& named) {
  const std::string path = WithHome(named);
  if (path.empty()) return Complain("/attach FILE needs the file");
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return Complain("there is no file " + path + " here");
  if (std::filesystem::is_directory(path, failed)) return Complain(path + " is a folder; /attach takes a file");
  if (const auto id = Upload(path)) AddOnce(attachments_, *id);
}

}  // namespace reprise
