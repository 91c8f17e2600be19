#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/path.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "client/archive/chat_reader.h"
#include "domain/codec.h"
#include "domain/transcript/transcript.h"
#include "engine/attachments.h"
#include "engine/request_body.h"
#include "engine/run_journal.h"
#include "terminal/console.h"

namespace reprise {
namespace {

constexpr std::size_t kTitleCharacters = 60;

struct Unreadable {
  ChatId chat;
  Error error;
};

// Until a chat's first interaction has ended, there is only its journal.
void FillFromJournal(InteractionStore& store, ChatSummary& chat) {
  const InteractionId first = InteractionId::FromNumber(1);
  const auto journal = store.ReadJournal(chat.id, first);
  const auto run = journal ? ReadRun({chat.id, first}, *journal) : Fail(journal.error());
  if (run && *run) FillFromBegun(chat, (*run)->interaction);
}

Exited ListChats(ChatReader& reader, bool json) {
  const auto ids = TRY(reader.AllChats());
  std::vector<ChatSummary> chats;
  std::vector<Unreadable> unreadable;
  for (const ChatId& id : ids) {
    auto summary = reader.store().LoadSummary(id);
    if (summary) {
      if (!summary->head) FillFromJournal(reader.store(), *summary);
      chats.push_back(*std::move(summary));
    } else if (summary.error().code != ErrorCode::kNotFound) {  // an empty folder, or deleted meanwhile
      unreadable.push_back({id, std::move(summary.error())});
    }
  }
  std::ranges::stable_sort(chats,
                           [](const ChatSummary& a, const ChatSummary& b) { return a.updated_at > b.updated_at; });
  const int status = unreadable.empty() ? kExitOk : kExitFailure;
  if (json) {
    Json list = Json::array();
    for (const ChatSummary& chat : chats) list.push_back(ToJson(chat));
    for (const Unreadable& one : unreadable) {
      list.push_back({{"id", one.chat.str()}, {"error", {{"code", one.error.reason}, {"message", one.error.message}}}});
    }
    PrintDocument({{"chats", std::move(list)}});
    return status;
  }
  std::size_t width = 0;
  for (const ChatSummary& chat : chats) width = std::max(width, chat.id.str().size());
  for (const Unreadable& one : unreadable) width = std::max(width, one.chat.str().size());
  // This folder's come first; those of others say where they work.
  const std::string here = Resolved(reader.options().workspace).string();
  const auto works_here = [&](const ChatSummary& chat) { return chat.workspace == here; };
  std::stable_partition(chats.begin(), chats.end(), works_here);
  for (const ChatSummary& chat : chats) {
    const bool is_elsewhere = !chat.workspace.empty() && !works_here(chat);
    Print(Padded(chat.id.str(), width) + "  " + FormatForReading(chat.updated_at) + "  " +
          (chat.head ? chat.head->str() : "-      ") + "  " + VisibleLine(Shortened(chat.title, kTitleCharacters)) +
          (is_elsewhere ? "  " + VisibleLine(chat.workspace) : "") + "\n");
  }
  for (const Unreadable& one : unreadable) {
    Print(Padded(one.chat.str(), width) + "  cannot be read: " + VisibleLine(one.error.message) + "\n");
  }
  return status;
}

void PrintInteractions(const Chat& chat, bool all) {
  const auto branch = HeadBranch(chat);
  for (const Interaction& interaction : chat.interactions) {
    const bool superseded = !branch.contains(interaction.id);
    if (superseded && !all) continue;
    Print(interaction.id.str() + "  " + Padded(std::string(ToString(interaction.status)), 9) + "  " +
          FormatForReading(interaction.created_at) + "  " + (superseded ? "(superseded) " : "") +
          VisibleLine(Shortened(interaction.user_message, kTitleCharacters)) + "\n");
  }
}

Json InteractionsToJson(const Chat& chat, bool all) {
  const auto branch = HeadBranch(chat);
  Json list = Json::array();
  for (const Interaction& interaction : chat.interactions) {
    const bool superseded = !branch.contains(interaction.id);
    if (superseded && !all) continue;
    list.push_back({{"id", interaction.id.str()},
                    {"parent_id", interaction.parent_id ? Json(interaction.parent_id->str()) : Json()},
                    {"status", ToString(interaction.status)},
                    {"created_at", FormatTimestamp(interaction.created_at)},
                    {"superseded", superseded},
                    {"user_message", interaction.user_message}});
  }
  return {{"chat", ToJson(chat.summary)}, {"interactions", std::move(list)}};
}

int ListInteractions(ChatReader& reader, const ChatId& id, const CommandLine& line) {
  const auto chat = reader.store().LoadChat(id);
  if (!chat) return Complain(NotThere(chat.error(), {id, std::nullopt}, reader.options().data_dir));
  line.json ? PrintDocument(InteractionsToJson(*chat, line.all_branches)) : PrintInteractions(*chat, line.all_branches);
  ComplainOfDamage(*chat);
  return chat->damaged.empty() ? kExitOk : kExitFailure;
}

}  // namespace

Exited RunLs(const CommandLine& line, const Environment& environment) {
  auto reader = TRY(OfUse(ChatReader::Open(line.flags, environment)));
  if (line.argument.empty()) return ListChats(reader, line.json);
  const auto chat = FindChat(line.argument, reader.names());
  return chat ? ListInteractions(reader, *chat, line) : ComplainOfUse(chat.error());
}

namespace {

int CatRecord(ChatReader& reader, const RecordReference& what) {
  InteractionStore& store = reader.store();
  const std::string& folder = reader.options().data_dir;
  if (what.interaction) {
    const auto interaction = store.LoadInteraction(what.chat, *what.interaction);
    if (!interaction) return Complain(NotThere(interaction.error(), what, folder));
    PrintDocument(ToJson(*interaction));
    return kExitOk;
  }
  const auto chat = store.LoadChat(what.chat);
  if (!chat) return Complain(NotThere(chat.error(), what, folder));
  PrintDocument(ChatToJson(*chat, /*all_branches=*/true));
  ComplainOfDamage(*chat);
  return chat->damaged.empty() ? kExitOk : kExitFailure;
}

Exited CatFile(const CommandLine& line, const Environment& environment) {
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  const auto file = TRY(ReadLoneFile(line.argument, options));
  Print(file.text);
  if (file.is_part) Warn("the final state is only what was added to the interaction before, whose file is elsewhere");
  if (file.cut_off) Warn("the last record was not written to its end, and is left out");
  return kExitOk;
}

}  // namespace

namespace {

// What a model was told: the body of a request, as it was sent.
Exited CatRequest(StoredRecord& stored, std::uint64_t index) {
  auto& [reader, what] = stored;
  const auto asked = reader.store().LoadInteraction(what.chat, *what.interaction);
  if (!asked) return Complain(NotThere(asked.error(), what, reader.options().data_dir));
  FilesInStore files(reader.files(), what.chat);
  Print(TRY(RequestBodies(reader.store(), &files).Of(*asked, index)));
  return kExitOk;
}

}  // namespace

Exited RunCat(const CommandLine& line, const Environment& environment) {
  constexpr std::string_view kRequests = "/requests/";
  if (const std::size_t at = line.argument.rfind(kRequests); at != std::string::npos) {
    const std::string_view text = line.argument;
    const auto index = ParseNumber<std::uint64_t>(text.substr(at + kRequests.size()));
    auto of = TRY(OfUse(FindStored(line.argument.substr(0, at), line.flags, environment)));
    if (index && of && of->what.interaction) return CatRequest(*of, *index);
  }
  auto stored = TRY(OfUse(FindStored(line.argument, line.flags, environment)));
  return stored ? CatRecord(stored->reader, stored->what) : CatFile(line, environment);
}

namespace {

// "stop, 812 ms to the first token, 2,345 ms, 1,200 + 34 tokens, req_123"
std::string Describe(const SentResponse& response) {
  std::string text = response.error.empty() ? std::string(ToString(response.finish)) : "failed: " + response.error;
  if (response.first_token_ms) text += ", " + std::to_string(*response.first_token_ms) + " ms to the first token";
  text += ", " + std::to_string(response.ms) + " ms";
  if (const TokenUsage& usage = response.usage; usage != TokenUsage{}) {
    text += ", " + std::to_string(usage.input_tokens) + " + " + std::to_string(usage.output_tokens) + " tokens";
  }
  for (const std::string& more : {response.model, response.request_id}) {
    if (!more.empty()) text += ", " + more;
  }
  return VisibleLine(text);
}

// "MCP server docs (Docs 1.2, protocol 2025-11-25): docs__find docs__read", a line for each origin.
std::string DescribeTools(const std::vector<ToldTool>& tools) {
  std::string text;
  const ToolOrigin* last = nullptr;
  for (const auto& [name, origin] : tools) {
    const bool is_same = last != nullptr && last->kind == origin.kind && last->name == origin.name;
    last = &origin;
    if (!is_same) {
      text += std::string("\n   ") + (origin.kind == ToolOrigin::Kind::kClient ? "client: " : "MCP server ") +
              VisibleLine(origin.name);
      if (!origin.version.empty()) text += " (" + VisibleLine(origin.version + ", protocol " + origin.revision) + ")";
      text += ":";
    }
    text += " " + VisibleLine(name);
  }
  return text.empty() ? text : text.substr(1) + "\n";
}

int ShowRequests(const RequestsOnRecord& found) {
  if (!found.requests) {
    Warn(kRequestsNotOnRecord);
    return kExitFailure;
  }
  std::size_t index = 0;
  std::string tools;  // of the request before
  for (const SentRequest& each : *found.requests) {
    Print(std::to_string(index++) + "  " + std::string(ToString(each.purpose)) + "  " + FormatTimestamp(each.at) +
          "  " + VisibleLine(each.model) + "  " + std::to_string(each.body.bytes) + " bytes  " +
          VisibleLine(each.body.digest) + "\n");
    if (each.response) Print("   " + Describe(*each.response) + "\n");
    if (const std::string now = DescribeTools(each.tools); now != tools) Print(tools = now);
  }
  return kExitOk;
}

Exited ShowInteraction(ChatReader& reader, const RecordReference& what, const CommandLine& line) {
  const auto interaction = reader.store().LoadInteraction(what.chat, *what.interaction);
  if (!interaction) return Complain(NotThere(interaction.error(), what, reader.options().data_dir));
  if (line.requests) return ShowRequests(TRY(RequestBodies(reader.store(), nullptr).AllOf(*interaction)));
  Print(line.json ? DumpJson(ToJson(*interaction)) + "\n" : FormatInteraction(*interaction, /*superseded=*/false));
  return kExitOk;
}

int ShowChat(ChatReader& reader, const RecordReference& what, const CommandLine& line) {
  const auto chat = reader.store().LoadChat(what.chat);
  if (!chat) return Complain(NotThere(chat.error(), what, reader.options().data_dir));
  if (line.json) {
    PrintDocument(ChatToJson(*chat, line.all_branches));
  } else {
    const auto branch = HeadBranch(*chat);
    Print(FormatHeading(chat->summary));
    for (const Interaction& interaction : chat->interactions) {
      const bool superseded = !branch.contains(interaction.id);
      if (!superseded || line.all_branches) Print("\n" + FormatInteraction(interaction, superseded));
    }
  }
  ComplainOfDamage(*chat);
  return chat->damaged.empty() ? kExitOk : kExitFailure;
}

// Without the lists that another interaction's requests have.
RequestsOnRecord OwnRequests(const Interaction& interaction) {
  if (!interaction.record) return {};
  return {.requests = interaction.record->requests, .program = interaction.record->program};
}

Exited ShowFile(const CommandLine& line, const Environment& environment) {
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  const auto interaction = TRY(ReadLoneInteraction(line.argument, options));
  if (line.requests) return ShowRequests(OwnRequests(interaction));
  Print(line.json ? DumpJson(ToJson(interaction)) + "\n" : FormatInteraction(interaction, /*superseded=*/false));
  return kExitOk;
}

}  // namespace

Exited RunShow(const CommandLine& line, const Environment& environment) {
  auto stored = TRY(OfUse(FindStored(line.argument, line.flags, environment)));
  if (!stored) return ShowFile(line, environment);
  auto& [reader, what] = *stored;
  if (line.requests && !what.interaction) return Misused("--requests is for one interaction, CHAT/INTERACTION");
  if (what.interaction) return ShowInteraction(reader, what, line);
  return ShowChat(reader, what, line);
}

}  // namespace reprise
