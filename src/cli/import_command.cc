#include "cli/import_command.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/chat_reader.h"
#include "cli/console.h"
#include "cli/foreign_chat.h"
#include "cli/terminal_text.h"
#include "domain/codec.h"
#include "store/incoming_chats.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxChatId = 64;

struct Imported {
  ChatId chat;
  std::size_t interactions;
  std::vector<std::string> notes;
};

Result<ChatId> FreeName(const std::string& name, const IncomingChats& folder) {
  const auto own = ChatId::Parse(name);
  if (!own) {
    return Fail(ErrorCode::kInvalidArgument, "\"" + name + "\" cannot be a chat's name here; give it one with --as");
  }
  ChatId chat = *own;
  for (int number = 2; folder.Has(chat); ++number) {
    const std::string suffix = "-" + std::to_string(number);
    chat = ChatId::Parse(name.substr(0, kMaxChatId - suffix.size()) + suffix).value();
  }
  return chat;
}

// As this folder keeps it.
IncomingChat Incoming(const ChatId& name, ForeignChat foreign) {
  IncomingChat chat{
      .summary = {.id = name, .title = std::move(foreign.title), .head = foreign.head}, .interactions = {}, .load = {}};
  auto held = std::make_shared<std::map<InteractionId, Interaction>>();
  Timestamp first = Now(), last{};
  for (Interaction& interaction : foreign.interactions) {
    interaction.chat_id = name;
    chat.interactions.push_back(interaction.id);
    first = std::min(first, interaction.created_at);
    last = std::max(last, interaction.completed_at.value_or(interaction.created_at));
    if (interaction.id == foreign.head) chat.summary.head_status = interaction.status;
    if (chat.summary.title.empty()) chat.summary.title = TitleFromMessage(interaction.user_message);
    held->emplace(interaction.id, std::move(interaction));
  }
  chat.summary.created_at = foreign.created_at.value_or(first);
  chat.summary.updated_at = foreign.updated_at.value_or(std::max(last, chat.summary.created_at));
  auto files = std::make_shared<std::map<FileId, StoredFile>>();
  for (StoredFile& file : foreign.files) {
    chat.files.push_back(file.info.id);
    files->emplace(file.info.id, std::move(file));
  }
  chat.load_file = [files](const FileId& id) -> Result<StoredFile> { return files->at(id); };
  chat.load = [held](InteractionId id) -> Result<Interaction> { return held->at(id); };
  return chat;
}

Result<Imported> Import(const std::string& path, const std::string& as, IncomingChats& folder) {
  auto foreign = ReadForeignChat(path);
  if (!foreign) return Fail(std::move(foreign.error()));
  const auto name = as.empty() ? FreeName(foreign->name, folder) : ChatId::Parse(as);
  if (!name) return Fail(name.error());
  std::vector<std::string> notes = std::move(foreign->notes);
  const IncomingChat chat = Incoming(*name, *std::move(foreign));
  return folder.Add(chat).map([&] { return Imported{*name, chat.interactions.size(), std::move(notes)}; });
}

class Report {
 public:
  explicit Report(bool json) : json_(json) {}

  void Add(const std::string& source, const Imported& imported) {
    list_.push_back({{"source", source},
                     {"chat_id", imported.chat.str()},
                     {"interactions", imported.interactions},
                     {"notes", imported.notes}});
    if (json_) return;
    Print(imported.chat.str() + "  " + std::to_string(imported.interactions) +
          (imported.interactions == 1 ? " interaction" : " interactions") + " from " + VisibleLine(source) + "\n");
    for (const std::string& note : imported.notes) Print("  " + VisibleLine(note) + "\n");
  }
  void Fail(const std::string& source, const Error& error) {
    failed_.push_back({{"source", source}, {"message", error.message}});
    Complain(error);
  }
  int Finish() const {
    if (json_) Print(DumpJson(Json{{"imported", list_}, {"failed", failed_}}) + "\n");
    return failed_.empty() ? kExitOk : kExitFailure;
  }

 private:
  const bool json_;
  Json list_ = Json::array(), failed_ = Json::array();
};

}  // namespace

int RunImport(const CommandLine& line, const Environment& environment) {
  if (!line.as.empty() && !ChatId::Parse(line.as)) return Misused("--as: \"" + line.as + "\" cannot be a chat's name");
  const auto options = LoadOptions(line.flags, environment);
  if (!options) return ComplainOfUse(options.error());
  Report report(line.json);
  std::vector<std::string> sources;
  for (const std::string& path : line.arguments) {
    const auto found = FindForeignChats(path);
    if (found) {
      sources.insert(sources.end(), found->begin(), found->end());
    } else {
      report.Fail(path, found.error());
    }
  }
  if (!line.as.empty() && sources.size() > 1) return Misused("--as is for one chat, and there are several");
  if (sources.empty()) return report.Finish();
  const auto keys = KeysForWriting(*options, options->data_dir);
  if (!keys) return Complain(keys.error());
  auto folder = IncomingChats::Open({.root = options->data_dir, .keys = *keys, .file_system = Disk()});
  if (!folder) {
    if (folder.error().code == ErrorCode::kConflict)
      folder.error().message += "; chats can be brought in when it has ended";
    return Complain(folder.error());
  }
  NoteKeysOf(options->data_dir, keys->get());
  for (const std::string& source : sources) {
    const auto imported = Import(source, line.as, *folder);
    imported ? report.Add(source, *imported) : report.Fail(source, imported.error());
  }
  return report.Finish();
}

}  // namespace reprise
