#include <unistd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/embedded.h"
#include "base/json.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "blame/blamed_lines.h"
#include "blame/file_changes.h"
#include "cli/commands.h"
#include "client/archive/chat_reader.h"
#include "crypto/digest.h"
#include "domain/transcript/transcript.h"
#include "store/audit_file.h"
#include "terminal/console.h"
#include "terminal/progress.h"
#include "terminal/terminal_style.h"

namespace reprise {
namespace {

constexpr std::string_view kOthers = "you or others";

// A file, or some of its lines, as people name them: FILE, FILE:12 or FILE:3-7.
struct Place {
  std::string path;
  std::optional<std::pair<std::size_t, std::size_t>> lines{};  // from, to; from 1
};

Result<Place> ParsePlace(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || IsThere(text)) return Place{text};
  const std::string_view range = std::string_view(text).substr(colon + 1);
  const std::size_t dash = range.find('-');
  const auto from = ParseNumber<std::size_t>(range.substr(0, dash));
  const auto to = dash == std::string_view::npos ? from : ParseNumber<std::size_t>(range.substr(dash + 1));
  if (from && to && *from >= 1 && *from <= *to) return Place{text.substr(0, colon), std::pair(*from, *to)};
  const bool is_range = !range.empty() && range.find_first_not_of("0123456789-") == std::string_view::npos;
  if (!is_range) return Place{text};
  return Fail(ErrorCode::kInvalidArgument,
              "\"" + std::string(range) + "\" is no range of lines: FILE:3-7, and the first line is 1");
}

// The file that is blamed.
struct Blamed {
  std::string path;
  std::string text{};
  std::vector<std::string> lines{};
  std::size_t from = 0, to = 0;  // the lines [from, to) that are asked for
};

Result<Blamed> ReadBlamed(const Place& place) {
  constexpr std::uint64_t kMostBytes = 10 << 20;  // larger versions are not kept
  if (!IsThere(place.path)) return Fail(ErrorCode::kNotFound, "there is no file " + place.path);
  Blamed file{.path = Resolved(place.path).string()};
  if (!IsFile(file.path)) return Fail(ErrorCode::kInvalidArgument, place.path + " is not a regular file");
  auto text = Disk().ReadFile(file.path, kMostBytes);
  if (!text && text.error().code == ErrorCode::kTooLarge) {
    return Fail(ErrorCode::kTooLarge, place.path + " has more than 10 MiB, and such files are not recorded");
  }
  file.text = TRY(std::move(text));
  if (file.text.find('\0') != std::string::npos) {
    return Fail(ErrorCode::kInvalidArgument, place.path + " is a binary file, which has no lines");
  }
  file.lines = LinesOf(file.text);
  file.to = file.lines.size();
  if (!place.lines) return file;
  if (place.lines->second > file.lines.size()) {
    return Fail(ErrorCode::kInvalidArgument, place.path + " has only " + Counted(file.lines.size(), "line"));
  }
  file.from = place.lines->first - 1, file.to = place.lines->second;
  return file;
}

using Origins = std::vector<const ChangingCall*>;

// --- the forms of output ---------------------------------------------------------------------------------------------

void PrintLines(const Blamed& file, const Origins& origins, const Environment& environment) {
  const Style style(DecideColour("auto", environment, ::isatty(STDOUT_FILENO) != 0));
  using Row = std::vector<std::string>;
  std::vector<Row> rows;
  Row widest(5);
  for (std::size_t i = file.from; i < file.to; ++i) {
    const ChangingCall* const call = origins[i];
    Row row{std::string(kOthers), "", "", "", std::to_string(i + 1)};
    if (call != nullptr) {
      row = {call->turn(), VisibleLine(call->tool), FormatForReading(call->at), VisibleLine(AllowedBy(*call)), row[4]};
    }
    for (std::size_t column = 0; column < row.size(); ++column) {
      if (row[column].size() > widest[column].size()) widest[column] = row[column];
    }
    rows.push_back(std::move(row));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string origin;
    for (std::size_t column = 0; column + 1 < widest.size(); ++column) {
      if (!widest[column].empty()) origin += Padded(std::move(rows[i][column]), widest[column].size()) + "  ";
    }
    std::string text;
    std::string_view line = file.lines[file.from + i];
    if (line.ends_with('\r')) line.remove_suffix(1);
    for (const char c : line) text += c == '\t' ? "    " : std::string(1, c);
    const std::string& number = rows[i].back();
    Print(style.Paint(origins[file.from + i] != nullptr ? Style::kAccent : Style::kDim, origin) +
          std::string(widest.back().size() - number.size(), ' ') + number + "  " + VisibleLine(text) + "\n");
  }
}

void PrintNote(const Blamed& file, const std::string& name, const std::vector<BlamedLines>& ranges) {
  Print("Reprise: who wrote " + VisibleLine(name) + " (" + Sha256Digest({file.text}) + ")\n");
  for (const BlamedLines& range : ranges) {
    Print(std::to_string(range.from) + (range.from == range.to ? "" : "-" + std::to_string(range.to)) + "  ");
    if (range.call == nullptr) {
      Print(std::string(kOthers) + "\n");
    } else {
      Print(VisibleLine(range.call->turn() + "  " + range.call->tool + "  " + FormatTimestamp(range.call->at) +
                        "  allowed by " + AllowedBy(*range.call) + "  " + range.call->model) +
            "\n");
    }
  }
}

// A random UUID, version 4 (RFC 9562).
std::string RandomUuid() {
  std::string hex = RandomHex(16);
  hex[12] = '4';
  hex[16] = "89ab"[HexDigit(hex[16]) % 4];
  for (const std::size_t at : {20, 16, 12, 8}) hex.insert(at, "-");
  return hex;
}

// A trace record of Agent Trace 0.1.0 (https://agent-trace.dev). A turn is what it calls a conversation.
Json TraceRecord(const Blamed& file, const std::string& name, const std::vector<BlamedLines>& ranges) {
  constexpr std::size_t kMostOfModel = 250;  // characters
  Json conversations = Json::array();
  std::map<std::string, std::size_t> places;  // by turn; "": others
  for (const BlamedLines& range : ranges) {
    const std::string turn = range.call == nullptr ? "" : range.call->turn();
    const auto [place, is_new] = places.try_emplace(turn, conversations.size());
    if (is_new) {
      Json contributor = {{"type", turn.empty() ? "unknown" : "ai"}};
      if (range.call != nullptr && !range.call->model.empty()) {
        contributor["model_id"] = std::string(Utf8Prefix(ToValidUtf8(range.call->model), kMostOfModel));
      }
      Json conversation = Json::object();
      if (!turn.empty()) conversation["url"] = "reprise:" + turn;
      conversation["contributor"] = std::move(contributor);
      conversation["ranges"] = Json::array();
      conversations.push_back(std::move(conversation));
    }
    std::string text;
    for (std::size_t i = range.from - 1; i < range.to; ++i) text += file.lines[i] + "\n";
    conversations[place->second]["ranges"].push_back(
        {{"start_line", range.from}, {"end_line", range.to}, {"content_hash", Sha256Digest({text})}});
  }
  return {{"version", "0.1.0"},
          {"id", RandomUuid()},
          {"timestamp", FormatTimestamp(Now())},
          {"tool", {{"name", "reprise"}, {"version", std::string(Version())}}},
          {"files", Json::array({{{"path", name}, {"conversations", std::move(conversations)}}})},
          {"metadata", {{"reprise", {{"content", Sha256Digest({file.text})}}}}}};
}

// --- the chats of its folders ----------------------------------------------------------------------------------------

// Loads the chats that worked in a folder above the file.
class Folders {
 public:
  Folders(ChatReader& reader, std::string path)
      : reader_(reader),
        path_(std::move(path)),
        home_(Resolved(reader.options().workspace).string()),
        changes_(home_) {}

  // False if the chat was unreadable, or a part of it.
  bool Add(const ChatId& id) {
    const auto summary = reader_.store().LoadSummary(id);
    if (!summary && IsNotFound(summary.error())) return true;  // empty, or deleted meanwhile
    if (!summary) return Complain(summary.error()) == kExitOk;
    // A chat may have been moved. Its first turn says where it began.
    if (!Holds(summary->workspace)) {
      const auto first = reader_.store().LoadInteraction(id, InteractionId::FromNumber(1));
      if (!first || !Holds(first->workspace)) return true;
    }
    const auto chat = reader_.store().LoadChat(id);
    if (!chat && IsNotFound(chat.error())) return true;
    if (!chat) return Complain(chat.error()) == kExitOk;
    changes_.Add(*chat);
    ComplainOfDamage(*chat);
    return chat->damaged.empty();
  }

  // The longest of the folders; empty: there is none.
  const std::string& nearest() const { return nearest_; }
  FileChanges& changes() { return changes_; }

 private:
  bool Holds(const std::string& workspace) {
    const std::string& folder = FolderOf(workspace, home_);
    if (!LiesBeneath(path_, folder)) return false;
    if (folder.size() > nearest_.size()) nearest_ = folder;
    return true;
  }
  ChatReader& reader_;
  const std::string path_, home_;
  std::string nearest_;
  FileChanges changes_;
};

// The file's path in its git work tree, else in the folder.
std::string NameIn(const std::string& folder, const std::filesystem::path& path) {
  for (auto above = path.parent_path(); above != above.parent_path(); above = above.parent_path()) {
    if (IsThere(above / ".git")) return path.lexically_relative(above).string();
  }
  return path.lexically_relative(folder).string();
}

}  // namespace

Exited RunBlame(const CommandLine& line, const Environment& environment) {
  const Place place = TRY(OfUse(ParsePlace(line.argument)));
  const Blamed file = TRY(ReadBlamed(place));
  WorkCounter counter;
  auto reader = TRY(OfUse(ChatReader::Open(line.flags, environment, &counter)));
  const auto chats = TRY(reader.AllChats());
  Folders folders(reader, file.path);
  bool is_whole = true;
  Progress progress(counter, environment);
  progress.Begin({.doing = "reading", .things = "interactions"});
  for (const ChatId& chat : chats) {
    is_whole = folders.Add(chat) && is_whole;
    if (progress.interrupted()) break;
  }
  progress.End();
  if (folders.nearest().empty()) {
    return Fail(MakeError(ErrorCode::kNotFound, "no chat in " + FullPath(reader.options().data_dir) +
                                                    " worked in a folder that holds " + file.path +
                                                    " (`reprise ls` shows their folders)"));
  }
  FileChanges& changes = folders.changes();
  const Origins origins = changes.OriginsOf(file.path, file.text, [&](const ChatId& chat, const FileVersion& version) {
    return reader.blobs().Get(chat, version.digest);
  });
  const ChatSource& source = reader.source();
  changes.ReadPermissions(origins, AuditFile(source.root(), nullptr, source.file_system()));
  if (!changes.lost().empty()) {
    Warn(Counted(changes.lost().size(), "recorded content") +
         " cannot be read, so lines of the agent may count as those of others");
  }
  const auto ranges = LinesInARow(origins, file.from, file.to);
  const std::string name = NameIn(folders.nearest(), file.path);
  if (line.format == "agent-trace") {
    PrintDocument(TraceRecord(file, name, ranges));
  } else if (line.notes) {
    PrintNote(file, name, ranges);
  } else if (line.json) {
    for (const BlamedLines& range : ranges) PrintDocument(ToJson(range));
  } else {
    PrintLines(file, origins, environment);
  }
  return is_whole ? kExitOk : kExitFailure;
}

}  // namespace reprise
