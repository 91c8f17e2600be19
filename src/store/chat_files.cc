#include "store/chat_files.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/logging.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "crypto/jwe.h"
#include "domain/codec.h"
#include "store/file_interaction_store.h"
#include "store/file_journal.h"
#include "store/file_names.h"
#include "store/store_errors.h"

namespace reprise {

Result<void> CheckSame(const Interaction& stored, const Interaction& meant) {
  // Compared in their written form, because text that is not UTF-8 changes when it is written.
  if (DumpJson(ToJson(stored)) == DumpJson(ToJson(meant))) return {};
  return Fail(Reason::kInteractionExists, "another interaction is stored under this id");
}

Result<RecordLinks> LinksTo(const std::optional<InteractionId>& parent, const ChatIndex& index,
                            const std::function<Result<std::optional<std::string>>(InteractionId)>& read) {
  RecordLinks links{.parent = parent, .parent_digest = std::nullopt};
  if (!parent) return links;
  const auto leaf = index.leaves.find(parent->number());
  links.parent_digest = leaf != index.leaves.end() ? leaf->second : TRY(read(*parent));
  return links;
}

std::map<InteractionId, Error> CompareRecords(const ChatId& chat, const ChatIndex* index,
                                              const std::map<InteractionId, FoundRecord>& found, bool authenticated,
                                              bool compares_parents) {
  std::map<InteractionId, Error> defects;
  const auto expect = [&](InteractionId id, const std::optional<std::string>& digest) {
    const auto there = found.find(id);
    if (there == found.end()) {
      defects.emplace(id, MissingFile(chat, id));
    } else if (digest && authenticated && *digest != there->second.digest) {
      defects.emplace(id, NotLastVersion(chat, id));
    }
  };
  if (index != nullptr) {
    for (const auto& [number, digest] : index->leaves) expect(InteractionId::FromNumber(number), digest);
    if (index->summary.head) expect(*index->summary.head, std::nullopt);
  }
  // From the newest down, so that a replaced file is not believed about its own parent.
  for (auto one = found.rbegin(); compares_parents && one != found.rend(); ++one) {
    const RecordLinks& links = one->second.links;
    if (links.parent && !defects.contains(one->first)) expect(*links.parent, links.parent_digest);
  }
  return defects;
}

namespace {

// Provider extras may be as deep as the wire allows, and lie a few levels down in the record.
constexpr int kMaxRecordDepth = kMaxJsonDepth + 16;

constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

Result<Interaction> ParseInteraction(const RecordPlace& place, std::string_view plaintext,
                                     std::optional<StateLink>& state_link) {
  auto json = ParseJson(plaintext, kMaxRecordDepth);
  if (!json) return Fail(IntegrityError("auth", place, "its content is not JSON"));
  auto link = UnlinkState(*json);
  if (!link) return Fail(IntegrityError("auth", place, link.error().message));
  state_link = *std::move(link);
  auto interaction = InteractionFromJson(*json);
  if (interaction) return interaction;
  const bool version = interaction.error().Is(Reason::kIntegrityVersion);
  return Fail(IntegrityError(version ? "version" : "auth", place, interaction.error().message));
}

// Parses an interaction without its events and state, which are most of it; notes the position of the state.
Result<Interaction> ReadRest(const RecordPlace& place, StoredJson& json) {
  std::string rest = "{";
  for (const RawJsonMember& member : RawMembers(json.text)) {
    const bool is_state = member.name == "\"final_agent_state\"";
    if (is_state) {
      json.state_begin = static_cast<std::size_t>(member.value.data() - json.text.data());
      json.state_size = member.value.size();
    }
    if (rest.size() > 1) rest += ',';
    rest.append(member.name).append(":");
    rest.append(is_state ? "null" : member.name == "\"agent_events\"" ? "[]" : member.value);
  }
  rest += '}';
  std::optional<StateLink> none;
  return ParseInteraction(place, rest, none);
}

StoredJson JsonOf(StoredInteraction stored) {
  StoredJson json{.text = {},
                  .state_linked = stored.state_link.has_value(),
                  .digest = std::move(stored.digest),
                  .model = stored.interaction.model,
                  .usage = stored.interaction.usage};
  AppendJson(json.text, stored.interaction);
  const std::string_view state = RawMember(json.text, "final_agent_state");
  json.state_begin = static_cast<std::size_t>(state.data() - json.text.data());
  json.state_size = state.size();
  return json;
}

// Whether the final state may be too long to be written in full; cheaper than its exact size.
bool IsLong(const Interaction& interaction) {
  constexpr std::size_t kAround = 40;  // member names and such
  if (!interaction.final_agent_state) return false;
  std::size_t bytes = 0;
  for (const Message& message : interaction.final_agent_state->messages) {
    bytes += kAround + message.extras.size() + (message.content ? message.content->size() : 0);
    for (const ToolCall& call : message.tool_calls) bytes += kAround + call.arguments.size();
    if (bytes > kFullStateBytes - kFullStateBytes / 8) return true;
  }
  return false;
}

// What a record's digest does not cover, the wrapped key, lies before the ciphertext.
std::size_t HashOfRest(std::string_view text) {
  constexpr std::size_t kBeforeCiphertext = 4096;
  return std::hash<std::string_view>()(text.substr(0, kBeforeCiphertext)) + text.size();
}

bool EndsInsideString(std::string_view json) {
  bool inside = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '"') inside = !inside;
    if (inside && json[i] == '\\') ++i;
  }
  return inside;
}

// Whether an unreadable file was cut off by a power loss: it is JSON up to its end, perhaps with zeros in place of the
// rest. A changed byte does not look like that, even near the end.
bool IsCutOff(std::string_view text, bool sealed) {
  text = text.substr(0, text.find_last_not_of('\0') + 1);
  if (sealed && text.ends_with('}') && EndsInsideString(text))
    return false;  // there is no such text in a sealed record
  try {
    [[maybe_unused]] const Json whole = Json::parse(text);
    return false;
  } catch (const Json::parse_error& error) {
    return error.byte > text.size();  // the text ended too early
  } catch (const Json::out_of_range&) {
    return false;  // a number that is too large
  }
}

}  // namespace

Result<OpenedRecord> ChatFiles::OpenInteraction(const ChatId& chat, InteractionId id) const {
  const RecordPlace place{.chat = chat, .interaction = id};
  return ReadRecordText(file_system_, InteractionFile(root_, chat, id), place).and_then([&](const std::string& text) {
    return format_->Open(place, text);
  });
}

Result<StoredInteraction> ChatFiles::ReadInteraction(const ChatId& chat, InteractionId id) const {
  auto record = TRY(OpenInteraction(chat, id));
  const RecordPlace place{.chat = chat, .interaction = id};
  std::optional<StateLink> state_link;
  auto interaction = TRY(ParseInteraction(place, record.plaintext, state_link));
  const RecordLinks links = record.links.value_or(RecordLinks{.parent = interaction.parent_id, .parent_digest = {}});
  if (interaction.chat_id != chat || interaction.id != id || interaction.parent_id != links.parent) {
    return Fail(IntegrityError("swap", place, "its content belongs to another place"));
  }
  return StoredInteraction{.interaction = std::move(interaction),
                           .links = links,
                           .digest = std::move(record.digest),
                           .state_link = std::move(state_link)};
}

Result<StoredJson> ChatFiles::ReadJson(const ChatId& chat, InteractionId id) const {
  // Anybody may have written a plain file, so the JSON is made from the parsed interaction.
  if (!format_->authenticated()) return ReadInteraction(chat, id).map(JsonOf);
  auto record = TRY(OpenInteraction(chat, id));
  const RecordPlace place{.chat = chat, .interaction = id};
  StoredJson json{.text = std::move(record.plaintext), .digest = std::move(record.digest)};
  Interaction rest = TRY(ReadRest(place, json));
  const auto parent = record.links ? record.links->parent : rest.parent_id;
  if (rest.chat_id != chat || rest.id != id || rest.parent_id != parent) {
    return Fail(IntegrityError("swap", place, "its content belongs to another place"));
  }
  json.model = std::move(rest.model);
  json.usage = rest.usage;
  return json;
}

Result<ChatFiles::Header> ChatFiles::ReadHeader(const ChatId& chat, InteractionId id) const {
  auto record = TRY(OpenInteraction(chat, id));
  if (record.links) return Header{*std::move(record.links), std::move(record.digest)};
  return ReadInteraction(chat, id).map([](StoredInteraction stored) {
    return Header{std::move(stored.links), std::move(stored.digest)};
  });
}

Result<RecordLinks> ChatFiles::ReadLinks(const ChatId& chat, InteractionId id) const {
  return ReadHeader(chat, id).map([](Header header) { return std::move(header.links); });
}

Result<RecordLinks> ChatFiles::ReadLinks(const ChatId& chat, InteractionId id, std::string_view digest) const {
  const RecordPlace place{.chat = chat, .interaction = id};
  return ReadRecordText(file_system_, InteractionFile(root_, chat, id), place).and_then([&](const std::string& text) {
    return format_->ReadLinks(place, text, digest);
  });
}

std::optional<InteractionId> ChatFiles::ClaimedParent(const ChatId& chat, InteractionId id) const {
  const auto text = file_system_.ReadFile(InteractionFile(root_, chat, id), kMaxRecordBytes);
  if (!text) return std::nullopt;
  const auto header = ReadJweHeader(*text);
  if (!header) return std::nullopt;
  const auto parent = header->find("parent_id");
  if (parent == header->end() || !parent->is_string()) return std::nullopt;
  const auto parsed = InteractionId::Parse(parent->get_ref<const std::string&>());
  return parsed ? std::optional(*parsed) : std::nullopt;
}

Result<std::string> ChatFiles::ReadDigest(const ChatId& chat, InteractionId id) const {
  return OpenInteraction(chat, id).map([](OpenedRecord record) { return record.digest; });
}

std::optional<KnownState> ChatFiles::ReadParentState(const ChatId& chat, const RecordLinks& links) const {
  if (!links.parent || !links.parent_digest) return std::nullopt;
  auto parent = ReadInteraction(chat, *links.parent);
  if (!parent || parent->digest != *links.parent_digest || !parent->interaction.final_agent_state) return std::nullopt;
  if (parent->state_link) return KnownState{.totals = std::move(parent->state_link->totals), .state = nullptr};
  auto state = std::make_shared<const AgentState>(*std::move(parent->interaction.final_agent_state));
  return KnownState{.totals = TotalsOf(*state), .state = std::move(state)};
}

bool ChatFiles::IsAsWritten(const ChatId& chat, InteractionId id, std::string_view digest,
                            std::size_t file_hash) const {
  const auto text = file_system_.ReadFile(InteractionFile(root_, chat, id), kMaxRecordBytes);
  return text && HashOfRest(*text) == file_hash && format_->DigestOf(*text) == digest;
}

Result<InteractionFiles> ChatFiles::ListInteractions(const ChatId& chat) const {
  InteractionFiles files;
  for (const DirectoryEntry& entry :
       TRY(ListFolder(file_system_, InteractionsDirectory(root_, chat), InteractionsName(chat)))) {
    if (entry.is_directory) continue;
    if (const auto id = ParseInteractionFile(entry.name)) files.checkpoints.insert(id->number());
    if (const auto id = ParseJournalFile(entry.name)) files.journals.insert(id->number());
  }
  return files;
}

Result<std::optional<ChatIndex>> ChatFiles::ReadIndex(const ChatId& chat, bool& cut_off) const {
  const auto text = ReadRecordText(file_system_, ChatFile(root_, chat), {.chat = chat});
  if (!text && IsNotFound(text.error())) return std::nullopt;
  if (!text) return Fail(text.error());
  auto index = OpenIndex(chat, *text);
  if (index) return *std::move(index);
  cut_off = IsCutOff(*text, format_->authenticated());
  return Fail(std::move(index.error()));
}

Result<ChatOnDisk> ChatFiles::ReadChat(const ChatId& chat) const {
  // The index first: a running server writes an interaction before the index that names it, so the listing then has
  // every interaction that the index names.
  bool cut_off = false;
  auto read = ReadIndex(chat, cut_off);
  if (!read && !cut_off) return Fail(std::move(read.error()));
  auto index = read ? *std::move(read) : std::nullopt;
  auto files = TRY(ListInteractions(chat));
  if (!index && files.checkpoints.empty() && files.journals.empty()) {
    if (!cut_off) return NoSuchChat();
    return Fail(IntegrityError("auth", {.chat = chat, .interaction = std::nullopt}, "it is cut off"));
  }
  ChatOnDisk result{.index = {.summary = {.id = chat, .title = {}, .created_at = Timestamp::max(), .head = {}}},
                    .numbers = std::move(files.checkpoints),
                    .journals = std::move(files.journals),
                    .has_index = index || cut_off,
                    .index_unreadable = cut_off};
  if (index) {
    result.index = *std::move(index);
  } else if (!result.numbers.empty()) {
    LogWarning("a chat's index is missing or cut off; its interactions are read instead", {{"chat", chat.str()}});
  }
  TRY(AddNewer(result));
  ChatSummary& summary = result.index.summary;
  if (summary.created_at == Timestamp::max()) summary.created_at = summary.updated_at;  // nothing could be read
  return result;
}

Result<void> ChatFiles::AddNewer(ChatOnDisk& chat) const {
  const ChatId& id = chat.index.summary.id;
  const std::vector<std::uint32_t> newer(chat.numbers.upper_bound(chat.index.last), chat.numbers.end());
  for (const std::uint32_t number : newer) {
    const auto interaction = InteractionId::FromNumber(number);
    auto stored = ReadInteraction(id, interaction);
    const bool unproven = number == newer.back() && chat.journals.contains(number);
    if (unproven && (stored || MayBeUnsynced(stored.error()))) {
      chat.unproven = {.id = interaction, .readable = stored.has_value()};
    }
    if (stored) {
      AddToIndex(chat.index, stored->interaction, std::move(stored->digest));
    } else if (chat.unproven) {
      chat.numbers.erase(number);
    } else if (stored.error().code == ErrorCode::kCorruption) {
      LogError("an interaction cannot be read", {{"kind", stored.error().reason}, {"file", stored.error().detail}});
    } else {
      return Fail(std::move(stored.error()));
    }
  }
  return {};
}

Result<JournalContent> ChatFiles::ReadJournal(const RecordPlace& place, std::string_view text,
                                              const KeySet* keys) const {
  auto content = ReadJournalText(text, place, keys);
  if (content || !content.error().Is(Reason::kIntegritySwap)) return content;
  // The file served another interaction before, and nothing of this one had reached the disk when the power failed.
  const auto served = JournalCipher::ClaimedPlace(text.substr(0, text.find('\n')));
  if (!served || !served->interaction || !ReadInteraction(served->chat, *served->interaction)) return content;
  return JournalContent{.records = {}, .cut_off = true};
}

Result<std::vector<ChatId>> ChatFiles::ListChats() const {
  const auto entries = TRY(file_system_.ListDirectory(root_));
  std::vector<ChatId> chats;
  for (const DirectoryEntry& entry : entries) {
    auto chat = ParseChatDirectory(entry.name);
    // A link in a chat's place is not followed; whoever reads the chat is told so.
    if (chat && (entry.is_directory || entry.is_link)) chats.push_back(*std::move(chat));
  }
  return chats;
}

Result<bool> ChatFiles::CreateDirectories(const ChatId& chat) const {
  return file_system_.CreateDirectory(ChatDirectory(root_, chat)).and_then([&](bool created) {
    return file_system_.CreateDirectory(InteractionsDirectory(root_, chat)).map([&](bool) { return created; });
  });
}

void ChatFiles::RemoveLeftovers(const ChatId& chat) const {
  RemoveTemporaryFiles(file_system_, ChatDirectory(root_, chat));
  RemoveTemporaryFiles(file_system_, InteractionsDirectory(root_, chat));
}

Result<void> ChatFiles::SyncInteractionNames(const ChatId& chat) const {
  return file_system_.SyncDirectory(InteractionsDirectory(root_, chat));
}

Result<void> ChatFiles::SyncNames(const ChatId& chat) const {
  return SyncInteractionNames(chat).and_then([&] { return SyncChatDirectory(chat); }).and_then([&] {
    return SyncRoot();
  });
}

Result<void> ChatFiles::SyncRoot() const { return file_system_.SyncDirectory(root_); }

Result<void> ChatFiles::WriteAgain(const ChatId& chat, InteractionId id) const {
  const std::string path = InteractionFile(root_, chat, id);
  return ReplaceFile(file_system_, path, TRY(ReadRecordText(file_system_, path, {.chat = chat, .interaction = id})));
}

Result<AtomicFile> ChatFiles::CreateInteractionFile(const ChatId& chat, InteractionId id) const {
  return AtomicFile::Create(file_system_, InteractionFile(root_, chat, id));
}

Result<SealedInteraction> ChatFiles::SealInteraction(const Interaction& interaction, const RecordLinks& links,
                                                     const ParentState& parent_state) const {
  const RecordPlace place{.chat = interaction.chat_id, .interaction = interaction.id};
  const auto parent = parent_state && IsLong(interaction) ? parent_state() : std::nullopt;
  auto state_link = parent ? LinkTo(*parent, *interaction.final_agent_state) : std::nullopt;
  constexpr std::size_t kUsual = std::size_t{32} << 10;  // a first request takes half of it
  std::string text;
  if (state_link) {
    text = DumpJson(ToLinkedJson(interaction, *state_link));
  } else {
    text.reserve(kUsual);
    AppendJson(text, interaction);
  }
  return Sealed(place, links, text, std::move(state_link));
}

Result<SealedInteraction> ChatFiles::Sealed(const RecordPlace& place, const RecordLinks& links, const std::string& text,
                                            std::optional<StateLink> state_link) const {
  auto record = TRY(format_->Seal(place, links, text));
  return SealedInteraction{.text = std::move(record.text),
                           .digest = std::move(record.digest),
                           .bytes = text.size(),
                           .verbatim = text.find(kReplacementCharacter) == std::string::npos,
                           .state_link = std::move(state_link)};
}

Result<WrittenInteraction> ChatFiles::WriteInteraction(const Interaction& interaction, const RecordLinks& links,
                                                       AtomicFile file, const ParentState& parent_state,
                                                       Durability durability) const {
  return WriteSealed(TRY(SealInteraction(interaction, links, parent_state)), std::move(file), durability);
}

Result<WrittenInteraction> ChatFiles::WriteAdded(const Interaction& added, const StateLink& state_link,
                                                 const RecordLinks& links, AtomicFile file,
                                                 Durability durability) const {
  const RecordPlace place{.chat = added.chat_id, .interaction = added.id};
  auto sealed = TRY(Sealed(place, links, DumpJson(ToStoredJson(added, state_link)), state_link));
  return WriteSealed(std::move(sealed), std::move(file), durability);
}

Result<WrittenInteraction> ChatFiles::WriteSealed(SealedInteraction sealed, AtomicFile file, Durability durability) {
  TRY(file.Commit(sealed.text, durability));
  return WrittenInteraction{.digest = std::move(sealed.digest),
                            .file_hash = HashOfRest(sealed.text),
                            .bytes = sealed.bytes,
                            .verbatim = sealed.verbatim,
                            .state_link = std::move(sealed.state_link)};
}

Result<std::string> ChatFiles::SealIndex(const ChatIndex& index) const {
  return format_->Seal({.chat = index.summary.id}, {}, ChatIndexToJson(index)).map([](SealedRecord record) {
    return std::move(record.text);
  });
}

Result<ChatIndex> ChatFiles::OpenIndex(const ChatId& chat, std::string_view text) const {
  const auto record = TRY(format_->Open({.chat = chat}, text));
  return ChatIndexFromJson(chat, record.plaintext);
}

Result<std::string> ChatFiles::DigestOf(const ChatId& chat, InteractionId id, std::string_view text) const {
  return format_->Open({.chat = chat, .interaction = id}, text).map([](OpenedRecord record) { return record.digest; });
}

Result<void> ChatFiles::WriteIndex(const ChatIndex& index, Durability durability) const {
  const ChatId& chat = index.summary.id;
  const std::string record = TRY(SealIndex(index));
  return ReplaceFile(file_system_, ChatFile(root_, chat), record, durability);
}

Result<void> ChatFiles::SyncChatDirectory(const ChatId& chat) const {
  return file_system_.SyncDirectory(ChatDirectory(root_, chat));
}

Result<void> ChatFiles::SetIndexAside(const ChatId& chat) const {
  return file_system_.Rename(ChatFile(root_, chat), DamagedChatFile(root_, chat, Now()));
}

Result<void> ChatFiles::MoveToTrash(const ChatId& chat, const std::vector<InteractionId>& interactions) const {
  const std::string folder = TrashedBranch(root_, chat, Now());
  for (const std::string& made : {TrashDirectory(root_), TrashedBranches(root_), folder}) {
    TRY(file_system_.CreateDirectory(made));
  }
  TRY(SyncRoot());
  TRY(file_system_.SyncDirectory(TrashDirectory(root_)));
  TRY(file_system_.SyncDirectory(TrashedBranches(root_)));
  // The newest first: one whose parent is gone would be damaged if the others are not moved any more.
  for (auto id = interactions.rbegin(); id != interactions.rend(); ++id) {
    TRY(file_system_.Rename(InteractionFile(root_, chat, *id), folder + "/" + id->str() + ".json"));
  }
  // The new names become durable before the old ones are gone for good.
  TRY(file_system_.SyncDirectory(folder));
  return file_system_.SyncDirectory(InteractionsDirectory(root_, chat));
}

Result<void> ChatFiles::MoveToTrash(const ChatId& chat) const {
  const std::string trash = TrashDirectory(root_);
  const std::string from = ChatDirectory(root_, chat), to = TrashedChat(root_, chat, Now());
  // The trash itself first (the process that made it may have ended before it was durable), then the chat's new name:
  // between two syncs the chat may be found in both places, never in none.
  TRY(file_system_.CreateDirectory(trash).and_then([&](bool) { return SyncRoot(); }).and_then([&] {
    return file_system_.Rename(from, to);
  }));
  if (auto synced = file_system_.SyncDirectory(trash); !synced) {
    static_cast<void>(file_system_.Rename(to, from));  // or the next sync could leave it in neither
    return synced;
  }
  return SyncRoot();
}

Result<void> ChatFiles::RemoveInteraction(const ChatId& chat, InteractionId id) const {
  return file_system_.RemoveFile(InteractionFile(root_, chat, id));
}

namespace {

constexpr int kQueueSchema = 1;

}  // namespace

Result<std::vector<QueuedMessage>> ChatFiles::ReadQueue(const ChatId& chat) const {
  std::vector<QueuedMessage> messages;
  const auto text = ReadRecordText(file_system_, QueueFile(root_, chat), {.chat = chat, .queue = true});
  if (!text && IsNotFound(text.error())) return messages;
  if (!text) return Fail(text.error());
  std::string_view rest = *text;
  do {
    const std::string_view record = rest.substr(0, rest.find(kQueueRecordEnd));
    rest.remove_prefix(std::min(rest.size(), record.size() + 1));
    auto some = TRY(OpenQueue(chat, record));
    std::move(some.begin(), some.end(), std::back_inserter(messages));
  } while (!rest.empty());
  return messages;
}

Result<std::vector<QueuedMessage>> ChatFiles::OpenQueue(const ChatId& chat, std::string_view text) const {
  std::vector<QueuedMessage> messages;
  const RecordPlace place{.chat = chat, .interaction = std::nullopt, .queue = true};
  const auto record = TRY(format_->Open(place, text));
  const auto malformed = [&] { return Fail(IntegrityError("auth", place, "its content is not what it should be")); };
  const auto json = ParseJson(record.plaintext);
  if (!json || !json->is_object()) return malformed();
  if (const auto schema = json->find("schema"); schema == json->end() || *schema != kQueueSchema) {
    return Fail(IntegrityError("version", place, "its schema is not known to this version"));
  }
  if (const auto id = json->find("chat_id"); id == json->end() || *id != chat.str()) {
    return Fail(IntegrityError("swap", place, "it describes another chat"));
  }
  const auto listed = json->find("messages");
  if (listed == json->end() || !listed->is_array()) return malformed();
  for (const Json& each : *listed) {
    auto message = QueuedMessageFromJson(each);
    if (!message) return malformed();
    messages.push_back(*std::move(message));
  }
  return messages;
}

Result<std::string> ChatFiles::SealQueue(const ChatId& chat, const std::vector<QueuedMessage>& messages) const {
  Json listed = Json::array();
  for (const QueuedMessage& message : messages) listed.push_back(ToJson(message));
  const Json json = {{"schema", kQueueSchema}, {"chat_id", chat.str()}, {"messages", std::move(listed)}};
  return format_->Seal({.chat = chat, .interaction = std::nullopt, .queue = true}, {}, DumpJson(json))
      .map([](SealedRecord record) { return std::move(record.text); });
}

Result<void> ChatFiles::WriteQueue(const ChatId& chat, const std::vector<QueuedMessage>& messages) const {
  const std::string path = QueueFile(root_, chat);
  if (messages.empty()) {
    auto removed = file_system_.RemoveFile(path);
    if (!removed && IsNotFound(removed.error())) return {};
    return removed.and_then([&] { return SyncChatDirectory(chat); });
  }
  const std::string record = TRY(SealQueue(chat, messages));
  // The chat may be so new that nothing of it is durable yet.
  return ReplaceFile(file_system_, path, record).and_then([&] { return SyncNames(chat); });
}

Result<std::vector<ChatId>> ChatFiles::ListQueues() const {
  auto chats = TRY(ListChats());
  std::erase_if(chats, [&](const ChatId& chat) {
    const auto there = file_system_.ReadFile(QueueFile(root_, chat), kMaxRecordBytes);
    return !there && IsNotFound(there.error());
  });
  return chats;
}

}  // namespace reprise
