#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/readable_size.h"
#include "client/archive/chat_reader.h"
#include "client/chat_writer.h"
#include "domain/transcript/transcript.h"
#include "terminal/console.h"

namespace reprise {
namespace {

constexpr std::size_t kTitle = 60;

std::string LocalTime(const std::string& utc) {
  const auto time = ParseTimestamp(utc);
  return time ? FormatForReading(*time) : utc;
}

// A checked entry of the trash, because a foreign server may send anything.
struct Deleted {
  std::string id, chat, deleted_at;
  std::optional<std::string> title;
  std::uint64_t bytes = 0;
};
std::vector<Deleted> EntriesOf(const Json& trash) {
  std::vector<Deleted> entries;
  const auto list = trash.find("entries");
  if (list == trash.end() || !list->is_array()) return entries;
  for (const Json& each : *list) {
    Deleted entry{.id = TextMember(each, "id"),
                  .chat = TextMember(each, "chat_id"),
                  .deleted_at = TextMember(each, "deleted_at"),
                  .title = {}};
    if (each.contains("title") && each["title"].is_string()) entry.title = each["title"].get<std::string>();
    if (each.contains("bytes") && each["bytes"].is_number_unsigned()) entry.bytes = each["bytes"].get<std::uint64_t>();
    entries.push_back(std::move(entry));
  }
  return entries;
}

int PrintTrash(const std::vector<Deleted>& entries) {
  if (entries.empty()) Print("the trash is empty\n");
  std::size_t chats = 0, sizes = 0, ids = 0;
  for (const Deleted& entry : entries) {
    chats = std::max(chats, entry.chat.size());
    sizes = std::max(sizes, ReadableSize(entry.bytes).size());
    ids = std::max(ids, entry.id.size());
  }
  for (const Deleted& entry : entries) {
    Print(Padded(VisibleLine(entry.chat), chats) + "  " + VisibleLine(LocalTime(entry.deleted_at)) + "  " +
          Padded(ReadableSize(entry.bytes), sizes) + "  " + Padded(VisibleLine(entry.id), ids) + "  " +
          (entry.title ? VisibleLine(Shortened(*entry.title, kTitle)) : "(its title cannot be read)") + "\n");
  }
  return kExitOk;
}

// The entry whose id or chat `wanted` names; for a chat, the one deleted last.
Result<Deleted> FindEntry(const std::vector<Deleted>& entries, const std::string& wanted, const std::string& where) {
  std::map<std::string, const Deleted*> newest;  // by chat
  std::vector<NamedChat> chats;
  for (const Deleted& entry : entries) {
    if (entry.id == wanted) return entry;
    if (newest.emplace(entry.chat, &entry).second) chats.push_back({entry.chat, entry.title.value_or("")});
  }
  auto chat = FindChat(wanted, {.has = [&](const ChatId& id) -> Result<bool> { return newest.contains(id.str()); },
                                .all = [&]() -> Result<std::vector<NamedChat>> { return chats; },
                                .where = "in the trash of " + where,
                                .hint = "`reprise restore` lists it"});
  if (!chat && chat.error().code == ErrorCode::kInvalidArgument) {  // it may have been meant as an entry's id
    chat.error().message = "there is no chat " + wanted + " in the trash of " + where + " (`reprise restore` lists it)";
  }
  if (!chat) return Fail(chat.error());
  return *newest.at(chat->str());
}

Error NotRestored(Error error, const Deleted& entry) {
  const std::string& chat = entry.chat;
  if (error.Is(Reason::kChatExists)) {
    error.message = "there is a chat " + chat +
                    " already, and the one in the trash can only come back under this name: `reprise fork " + chat +
                    " --as OTHER` and `reprise rm " + chat + "` make room for it; then `reprise restore " + entry.id +
                    "` brings it back";
  } else if (error.reason.starts_with("integrity_")) {
    error.message = entry.id + " cannot be read and stays in the trash: " + error.message;
  }
  return error;
}

}  // namespace

Exited RunRm(const CommandLine& line, const Environment& environment) {
  const auto writer = TRY(OfUse(ChatWriter::Open(line.flags, line.url, environment)));
  // All names are looked up first: a chat that goes must not make the name of another unique.
  std::vector<ChatId> chats;
  for (const std::string& argument : line.arguments) {
    const auto chat = FindChat(argument, writer->names()), exact = ChatId::Parse(argument);
    const bool is_missing = !chat && chat.error().code == ErrorCode::kNotFound && exact;
    if (!chat && !is_missing) return ComplainOfUse(chat.error());
    chats.push_back(is_missing ? *exact : *chat);  // a missing chat does not stop the others
  }
  Json deleted = Json::array(), failed = Json::array();
  for (const ChatId& chat : chats) {
    const auto done = writer->Delete(chat);
    if (!done) {
      Complain(done.error());
      failed.push_back({{"chat_id", chat.str()}, {"message", done.error().message}});
      continue;
    }
    deleted.push_back(chat.str());
    if (!line.json) Print(chat.str() + " is in the trash (`reprise restore " + chat.str() + "` brings it back)\n");
  }
  const bool all = failed.empty();
  if (line.json) Print(DumpJson(Json{{"deleted", std::move(deleted)}, {"failed", std::move(failed)}}) + "\n");
  return all ? kExitOk : kExitFailure;
}

Exited RunRestore(const CommandLine& line, const Environment& environment) {
  const auto writer = TRY(OfUse(ChatWriter::Open(line.flags, line.url, environment)));
  const auto trash = TRY(writer->ListTrash());
  if (line.argument.empty() && line.json) return Print(DumpJson(trash) + "\n"), kExitOk;
  const std::vector<Deleted> entries = EntriesOf(trash);
  if (line.argument.empty()) return PrintTrash(entries);

  const auto entry = TRY(FindEntry(entries, line.argument, writer->where()));
  const auto restored = writer->Restore(entry.id);
  if (!restored) return Complain(NotRestored(restored.error(), entry));
  if (line.json) return Print(DumpJson(*restored) + "\n"), kExitOk;
  Print(VisibleLine(entry.chat) + " is back as it was on " + VisibleLine(LocalTime(entry.deleted_at)) + "\n");
  const auto same = std::ranges::count_if(entries, [&](const auto& each) { return each.chat == entry.chat; });
  if (same > 1) Print("others of that name are still in the trash (`reprise restore` lists them)\n");
  return kExitOk;
}

Exited RunMv(const CommandLine& line, const Environment& environment) {
  std::string title;
  for (const std::string& word : line.arguments) title += (title.empty() ? "" : " ") + word;
  if (title.empty()) return Misused("the title is empty");
  if (ToValidUtf8(title) != title) return Misused("the title is not UTF-8");
  const auto writer = TRY(OfUse(ChatWriter::Open(line.flags, line.url, environment)));
  const auto chat = TRY(OfUse(FindChat(line.argument, writer->names())));
  const auto renamed = writer->Rename(chat, title);
  if (!renamed && renamed.error().Is(Reason::kInvalidMember)) return Misused(renamed.error().message);
  if (!renamed) return Complain(renamed.error());
  Print(line.json ? DumpJson(*renamed) + "\n"
                  : chat.str() + " has the title \"" + VisibleLine(TextMember(*renamed, "title")) + "\" now\n");
  return kExitOk;
}

Exited RunFork(const CommandLine& line, const Environment& environment) {
  if (!line.as.empty() && !ChatId::Parse(line.as)) {
    return Misused("--as: \"" + line.as + "\" cannot be a chat's name: " + ChatId::Parse(line.as).error().message);
  }
  const auto writer = TRY(OfUse(ChatWriter::Open(line.flags, line.url, environment)));
  const auto what = TRY(OfUse(FindRecord(line.argument, writer->names())));
  auto copy = writer->Fork(what.chat, what.interaction, line.as);
  if (!copy && copy.error().Is(Reason::kChatExists)) {
    copy.error().message = "there is a chat " + line.as + " already (--as gives the copy another name)";
  }
  if (!copy && copy.error().Is(Reason::kNotFinished)) {
    copy.error().message += " (CHAT/INTERACTION names an earlier one; `reprise ls " + what.chat.str() + "` lists them)";
  }
  if (!copy) return Complain(copy.error());
  const Json origin = copy->contains("forked_from") ? (*copy)["forked_from"] : Json();
  Print(line.json ? DumpJson(*copy) + "\n"
                  : VisibleLine(TextMember(*copy, "id") + " is a copy of " + TextMember(origin, "chat_id") + " up to " +
                                TextMember(origin, "interaction_id")) +
                        "\n");
  return kExitOk;
}

}  // namespace reprise
