#include "remote/postgres/postgres_store.h"

#include <algorithm>
#include <future>
#include <map>
#include <utility>

#include "base/logging.h"
#include "base/try.h"
#include "domain/codec.h"
#include "store/chat_index.h"
#include "store/file_names.h"
#include "store/incoming_chats.h"
#include "store/store_errors.h"

namespace reprise {
namespace {

// The memory for remembering chats until their next turns.
constexpr std::size_t kKnownBytes = 64u << 20, kEntryBytes = 1024, kLeafBytes = 160;

std::int64_t Number(InteractionId id) { return id.number(); }
std::optional<std::int64_t> Number(const std::optional<InteractionId>& id) {
  return id ? std::optional<std::int64_t>(id->number()) : std::nullopt;
}

SqlValue Numbers(const std::vector<InteractionId>& list) {
  std::vector<std::int64_t> numbers;
  for (const InteractionId id : list) numbers.push_back(Number(id));
  return SqlValue::Ints(numbers);
}

// Adds a whole chat if its name has no index and no run; `c` then has a row.
#define REPRISE_ADD_CHAT                                                                                         \
  "with c as (insert into reprise.chats as c (tenant, id, next_number, head, index_record) "                     \
  "  values ($1, $2, $3::int, $4::int, $5) on conflict (tenant, id) do update set next_number = "                \
  "  excluded.next_number, head = excluded.head, index_record = excluded.index_record, version = c.version + 1 " \
  "  where c.index_record is null and c.running is null returning 1), "

// The SQLSTATE of end_turn for a run with another token.
constexpr std::string_view kFencedState = "RP001";

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

PostgresStore::PostgresStore(Options options)
    : FilesOfDatabase{.database_files_{options.database, options.tenant}},
      FileInteractionStore({.root = DatabaseFiles::kRoot,
                            .keys = options.keys,
                            .file_system = database_files_,
                            .access = Access::kReadOnly,
                            .bucket = options.bucket}),
      options_(std::move(options)),
      database_(options_.database, options_.tenant),
      finishes_(options_.finishes ? *options_.finishes : options_.database, options_.tenant),
      format_(MakeRecordFormat(options_.keys)),
      queue_({.database = options_.database,
              .files = records(),
              .tenant = options_.tenant,
              .instance = options_.instance}),
      known_(kKnownBytes),
      list_(std::make_shared<ChatList>(
          ChatList::Source{.list = [this] { return ListVersions(); },
                           .load = [this](const ChatId& chat) { return LoadListed(chat); }})) {}

Result<std::string> PostgresStore::Seal(const RecordPlace& place, std::string_view plaintext) const {
  return format_->Seal(place, {}, plaintext).map([](SealedRecord record) { return std::move(record.text); });
}

Result<std::string> PostgresStore::Open(const RecordPlace& place, std::string_view record) const {
  return format_->Open(place, record).map([](OpenedRecord opened) { return std::move(opened.plaintext); });
}

// --- interactions ----------------------------------------------------------------------------------------------------

Result<InteractionId> PostgresStore::ReserveInteraction(const ChatId& chat) {
  const std::string record = TRY(records().SealIndex(NewIndex(chat)));
  const Rows rows = TRY(database_.Execute(
      {.sql = "insert into reprise.chats as c (tenant, id, next_number, index_record) values ($1, $2, 2, $3) on "
              "conflict (tenant, id) "
              "do update set next_number = c.next_number + 1, version = c.version + 1, "
              "index_record = coalesce(c.index_record, excluded.index_record) returning next_number - 1",
       .values = {tenant(), chat.str(), SqlValue::Bytes(record)}}));
  Forget(chat);
  const std::int64_t number = rows.number(0, 0);
  if (number > InteractionId::kMaxNumber) return ChatIsFull();
  return NumberedId(number);
}

Result<std::optional<PostgresStore::ChatRow>> PostgresStore::ReadRow(const ChatId& chat, bool is_patient) {
  const Rows rows =
      TRY(database_.Execute({.sql = "select version, index_record, next_number, running from reprise.chats "
                                    "where tenant = $1 and id = $2",
                             .values = {tenant(), chat.str()},
                             .is_patient = is_patient}));
  if (rows.empty()) return std::optional<ChatRow>();
  ChatRow row{.index = NewIndex(chat),
              .has_index = !rows.is_null(0, 1),
              .version = rows.number(0, 0),
              .next_number = rows.number(0, 2)};
  if (!rows.is_null(0, 3)) row.running = rows.number(0, 3);
  if (row.has_index) {
    row.index = TRY(records().OpenIndex(chat, rows.text(0, 1)));
  }
  return std::optional(std::move(row));
}

// --- remembered chats ------------------------------------------------------------------------------------------------

ChatHead PostgresStore::HeadOf(const KnownChat& known) {
  ChatHead head{.summary = known.row.index.summary, .version = known.row.version};
  if (known.state) head.state = *known.state;
  return head;
}

// A chat that is not remembered is usually a new one.
Result<ChatHead> PostgresStore::LoadKnownHead(const ChatId& chat) {
  const auto known = known_.Find(chat.str());
  if (!known || !(*known)->row.has_index) return NoSuchChat();
  return HeadOf(**known);
}

Result<ChatHead> PostgresStore::LoadHead(const ChatId& chat) {
  auto row = TRY(ReadRow(chat));
  if (!row) return NoSuchChat();
  if (!row->has_index) return InteractionStore::LoadHead(chat);  // its first run may have begun
  auto known = std::make_shared<KnownChat>(KnownChat{.row = *std::move(row), .state = nullptr});
  std::size_t bytes = kEntryBytes + kLeafBytes * known->row.index.leaves.size();
  if (const auto head = known->row.index.summary.head) {
    auto state = TRY(LoadFinalState(chat, *head));
    if (state) {
      bytes += MemoryOf(*state);
      known->state = std::make_shared<const AgentState>(*std::move(state));
    }
    const auto leaf = known->row.index.leaves.find(head->number());
    if (leaf != known->row.index.leaves.end()) known->digest = leaf->second;
  }
  known_.Put(chat.str(), known, bytes);
  return HeadOf(*known);
}

void PostgresStore::RememberFirst(const ChatId& chat, std::int64_t version) {
  auto known = std::make_shared<KnownChat>(
      KnownChat{.row = {.index = NewIndex(chat), .version = version, .next_number = 2}, .state = nullptr});
  known_.Put(chat.str(), std::move(known), kEntryBytes);
}

// The state is a part of the saved interaction, which it keeps alive.
void PostgresStore::Remember(const Finishing& finishing) {
  const Interaction& saved = *finishing.interaction;
  auto known = std::make_shared<KnownChat>(KnownChat{.row = {.index = finishing.index,
                                                             .has_index = true,
                                                             .version = finishing.version + 1,
                                                             .next_number = Number(saved.id) + 1},
                                                     .state = nullptr});
  std::size_t bytes = kEntryBytes + kLeafBytes * finishing.index.leaves.size() + finishing.sealed.bytes;
  if (finishing.sealed.state_link) known->totals = finishing.sealed.state_link->totals;
  if (saved.final_agent_state) {
    known->state = {finishing.interaction, &*saved.final_agent_state};
    const auto& totals = known->totals;
    bytes += totals ? totals->bytes + totals->messages * sizeof(Message) : MemoryOf(*known->state);
  }
  known->digest = finishing.sealed.digest;
  known->is_full = !finishing.sealed.state_link;
  known_.Put(saved.chat_id.str(), std::move(known), bytes);
}

std::optional<InteractionId> PostgresStore::NextOf(const ChatId& chat, std::int64_t version) {
  const auto known = known_.Find(chat.str());
  if (!known || (*known)->row.version != version || (*known)->row.next_number > InteractionId::kMaxNumber) {
    return std::nullopt;
  }
  return NumberedId((*known)->row.next_number);
}

// --- interactions, once more -----------------------------------------------------------------------------------------

Result<std::optional<std::string>> PostgresStore::DigestOf(const ChatId& chat, InteractionId id, bool is_patient) {
  const Rows rows = TRY(database_.Execute(
      {.sql = "select digest from reprise.interactions where tenant = $1 and chat = $2 and number = $3::int",
       .values = {tenant(), chat.str(), Number(id)},
       .is_patient = is_patient}));
  return rows.empty() ? std::nullopt : std::optional(std::string(rows.text(0, 0)));
}

std::optional<KnownState> PostgresStore::ParentState(const ChatId& chat, const RecordLinks& links) {
  if (const auto known = known_.Find(chat.str()); known && (*known)->state &&
                                                  (*known)->row.index.summary.head == links.parent &&
                                                  (*known)->digest == links.parent_digest) {
    if ((*known)->totals) return KnownState{.totals = *(*known)->totals, .state = (*known)->state};
    if ((*known)->is_full) return KnownState{.totals = TotalsOf(*(*known)->state), .state = (*known)->state};
  }
  return records().ReadParentState(chat, links);
}

Result<SealedInteraction> PostgresStore::Seal(const Interaction& interaction, const ChatRow& row, bool is_patient) {
  const ChatId& chat = interaction.chat_id;
  const auto read_digest = [&](InteractionId id) -> Result<std::optional<std::string>> {
    auto digest = TRY(DigestOf(chat, id, is_patient));
    if (!digest) return NoSuchParent();
    return digest;
  };
  const RecordLinks links = TRY(LinksTo(interaction.parent_id, row.index, read_digest));
  return records().SealInteraction(interaction, links, [&] { return ParentState(chat, links); });
}

Result<std::string> PostgresStore::AddTo(ChatRow& row, const Interaction& interaction,
                                         const std::string& digest) const {
  if (!row.has_index) row.index.summary.created_at = interaction.created_at;
  AddToIndex(row.index, interaction, digest);
  row.index.summary.head = interaction.id;
  row.index.summary.head_status = interaction.status;
  return records().SealIndex(row.index);
}

// For an interaction that no run here has made.
Result<void> PostgresStore::SaveInteraction(const Interaction& interaction) {
  const std::string& chat = interaction.chat_id.str();
  Sealed sealed;
  for (;;) {
    auto row = TRY(ReadRow(interaction.chat_id));
    if (!row) {
      if (interaction.parent_id) return NoSuchParent();
      TRY(database_.Execute({.sql = "insert into reprise.chats(tenant, id, next_number) values ($1, $2, $3::int + 1) "
                                    "on conflict (tenant, id) do nothing",
                             .values = {tenant(), chat, Number(interaction.id)}}));
      continue;
    }
    const auto stored = TRY(DigestOf(interaction.chat_id, interaction.id, /*is_patient=*/false));
    if (stored && sealed && *stored == sealed->digest) return {};  // saved by a statement that was sent twice
    if (stored) return CheckSame(TRY(LoadInteraction(interaction.chat_id, interaction.id)), interaction);
    if (!sealed) sealed = TRY(Seal(interaction, *row, /*is_patient=*/false));
    const std::string index = TRY(AddTo(*row, interaction, sealed->digest));
    const Rows saved = TRY(InsertInteraction(interaction, row->version, index, *sealed));
    Forget(interaction.chat_id);
    if (saved.truth(0, 0)) return {};
  }
}

// --- runs that end ---------------------------------------------------------------------------------------------------

// The result of a run is kept, however long that takes.
Result<std::shared_ptr<const PostgresStore::Finishing>> PostgresStore::PrepareFinish(
    std::shared_ptr<const Interaction> interaction, const std::string& token, Sealed& sealed) {
  const ChatId& chat = interaction->chat_id;
  const auto known = known_.Find(chat.str());
  auto row = known ? std::optional((*known)->row) : TRY(ReadRow(chat, /*is_patient=*/true));
  if (!row) return Fail(Fenced());
  if (!sealed) sealed = TRY(Seal(*interaction, *row, /*is_patient=*/true));
  std::string index_record = TRY(AddTo(*row, *interaction, sealed->digest));
  return std::make_shared<const Finishing>(Finishing{.interaction = std::move(interaction),
                                                     .token = token,
                                                     .index = std::move(row->index),
                                                     .version = row->version,
                                                     .index_record = std::move(index_record),
                                                     .sealed = *sealed});
}

// The run's journal stays for a while (Lease), for its followers elsewhere.
Statement PostgresStore::FinishStatement(const std::string& tenant, const Finishing& finishing) {
  const Interaction& interaction = *finishing.interaction;
  const bool has_asked = std::ranges::any_of(interaction.events, [](const AgentEvent& event) {
    return std::holds_alternative<event::ApprovalRequired>(event.payload) ||
           std::holds_alternative<event::InputRequired>(event.payload);
  });
  return {.sql =
              "select saved, is_held from reprise.end_turn($1, $2, $3::int, $4::bigint, $5::uuid, $6, $7, $8, "
              "$9::boolean)",
          .values = {tenant, interaction.chat_id.str(), Number(interaction.id), finishing.version, finishing.token,
                     SqlValue::Bytes(finishing.index_record), SqlValue::Bytes(finishing.sealed.text),
                     finishing.sealed.digest, has_asked ? "true" : "false"},
          .is_patient = true,
          .may_share = true};
}

void PostgresStore::SubmitFinish(std::shared_ptr<const Finishing> finishing,
                                 std::function<void(Result<Finished>)> done) {
  Statement statement = FinishStatement(tenant(), *finishing);
  finishes_.Submit(std::move(statement), [this, finishing, done = std::move(done)](Result<Rows> rows) {
    const bool is_saved = rows && rows->truth(0, 0);
    is_saved ? Remember(*finishing) : Forget(finishing->interaction->chat_id);
    if (is_saved) return done(Finished::kSaved);
    if (!rows && !rows.error().detail.starts_with(kFencedState)) return done(Fail(std::move(rows.error())));
    done(rows && rows->truth(0, 1) ? Finished::kOtherVersion : Finished::kNotHeld);
  });
}

Result<void> PostgresStore::FinishRun(const Interaction& interaction, const std::string& token, Sealed& sealed) {
  // Remember keeps it for longer than this call.
  const auto shared = std::make_shared<const Interaction>(interaction);
  for (;;) {
    // Shared, because the thread that sets the value uses it a moment longer than the one that waits for it.
    const auto outcome = std::make_shared<std::promise<Result<Finished>>>();
    auto prepared = TRY(PrepareFinish(shared, token, sealed));
    SubmitFinish(std::move(prepared),
                 [outcome](Result<Finished> finished) { outcome->set_value(std::move(finished)); });
    const Finished finished = TRY(outcome->get_future().get());
    if (finished == Finished::kSaved) return {};
    if (finished == Finished::kOtherVersion) continue;
    // It was refused, or the same statement was executed before.
    const auto done = TRY(DigestOf(interaction.chat_id, interaction.id, /*is_patient=*/true));
    if (done && *done == sealed->digest) return {};
    return Fail(Fenced());
  }
}

Result<Rows> PostgresStore::InsertInteraction(const Interaction& interaction, std::int64_t version,
                                              const std::string& index, const SealedInteraction& sealed) {
  return database_.Execute(
      {.sql =
           "with c as (update reprise.chats set head = $3::int, index_record = $5::bytea, version = version + 1, "
           "next_number = greatest(next_number, $3::int + 1) where tenant = $1 and id = $2 and version = $4::bigint "
           "returning 1), "
           "i as (insert into reprise.interactions(tenant, chat, number, record, digest) select $1, $2, $3::int, "
           "$6::bytea, $7 from c), "
           "r as (delete from reprise.runs where tenant = $1 and chat = $2 and number = $3::int and exists (select 1 "
           "from c) returning 1), "
           "e as (insert into reprise.ended_runs(tenant, chat, number) select $1, $2, $3::int from r), "
           "q as (update reprise.questions set answer = '' where tenant = $1 and chat = $2 and number = $3::int and "
           "answer is null and exists (select 1 from c)) "
           "select exists (select 1 from c), false",
       .values = {tenant(), interaction.chat_id.str(), Number(interaction.id), version, SqlValue::Bytes(index),
                  SqlValue::Bytes(sealed.text), sealed.digest}});
}

// --- chats -----------------------------------------------------------------------------------------------------------

Result<ChatSummary> PostgresStore::LoadSummary(const ChatId& chat) {
  auto row = TRY(ReadRow(chat));
  if (row && row->has_index) return std::move(row->index.summary);
  return FileInteractionStore::LoadSummary(chat);  // its first run may have begun; else kNotFound
}

// Other servers change chats, so the versions of all are asked for each time; only what has changed is read.
Result<std::vector<ChatVersion>> PostgresStore::ListVersions() {
  const Rows rows = TRY(database_.Execute({.sql = kListChats, .values = {tenant()}}));
  std::vector<ChatVersion> chats;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (auto chat = ParseChatDirectory(std::string(rows.text(row, 0))))
      chats.emplace_back(*std::move(chat), rows.number(row, 1));
  }
  return chats;
}

Result<ChatSummary> PostgresStore::LoadListed(const ChatId& chat) {
  auto summary = LoadSummary(chat);
  const bool is_damaged = !summary && summary.error().code == ErrorCode::kCorruption;
  return is_damaged ? FileInteractionStore::LoadSummary(chat) : summary;  // the interactions may tell
}

Result<void> PostgresStore::AddEmpty(const ChatIndex& index) {
  const std::string record = TRY(records().SealIndex(index));
  const Rows made = TRY(database_.Execute(
      {.sql =
           "insert into reprise.chats as c (tenant, id, index_record) values ($1, $2, $3) on conflict (tenant, id) do "
           "update "
           "set index_record = excluded.index_record, version = c.version + 1 "
           "where (c.index_record is null and c.running is null) or c.index_record = excluded.index_record returning 1",
       .values = {tenant(), index.summary.id.str(), SqlValue::Bytes(record)}}));
  return made.empty() ? ChatExists() : Result<void>();
}

Result<ChatSummary> PostgresStore::ChangeIndex(const ChatId& chat, bool while_running, const IndexChange& change) {
  for (;;) {
    auto row = TRY(ReadRow(chat));
    // A chat whose first turn runs has no index yet, but exists.
    if (!row || !(row->has_index || (while_running && row->running))) return NoSuchChat();
    TRY(change(row->index));
    const std::string record = TRY(records().SealIndex(row->index));
    const auto head = Number(row->index.summary.head);
    const Rows changed =
        TRY(database_.Execute({.sql = "update reprise.chats set index_record = $4, head = $5::int, version = version + "
                                      "1 where tenant = $1 and id = $2 "
                                      "and version = $3::bigint and ($6::boolean or running is null) returning 1",
                               .values = {tenant(), chat.str(), row->version, SqlValue::Bytes(record),
                                          SqlValue::OrNull(head), while_running ? "true" : "false"}}));
    Forget(chat);
    if (!changed.empty()) return std::move(row->index.summary);
    const Rows now =
        TRY(database_.Execute({.sql = "select index_record, running from reprise.chats where tenant = $1 and id = $2",
                               .values = {tenant(), chat.str()}}));
    if (now.empty()) return NoSuchChat();
    if (!now.is_null(0, 0) && now.text(0, 0) == record) return std::move(row->index.summary);  // sent twice
    if (!while_running && !now.is_null(0, 1)) {
      return Fail(RunsAlready(NumberedId(now.number(0, 1))));
    }
  }
}

// --- whole chats -----------------------------------------------------------------------------------------------------

Result<ChatSummary> PostgresStore::AddWhole(const IncomingChat& incoming) {
  const ChatId& chat = incoming.summary.id;
  ChatIndex index = NewIndex(chat);
  TRY(AddRow(incoming, index));
  if (auto added = AddParts(incoming); !added) {
    if (!Remove(chat, /*entry=*/std::nullopt).value_or(false)) {
      LogError("a chat that was not added completely could not be removed", {{"chat", chat.str()}});
    }
    return Fail(std::move(added.error()));
  }
  return std::move(index.summary);
}

// Adds the files, blobs and queue of an added chat; if this fails, the chat is removed again.
Result<void> PostgresStore::AddParts(const IncomingChat& incoming) {
  TRY(PutParts(incoming, {.root = DatabaseFiles::kRoot,
                          .keys = options_.keys,
                          .file_system = database_files_,
                          .bucket = options_.bucket}));
  for (const QueuedMessage& message : incoming.queue) TRY(queue_.AddQueued(incoming.summary.id, message));
  return {};
}

// Adds the chat and its interactions in one statement, so that they are there as a whole or not at all.
Result<void> PostgresStore::AddRow(const IncomingChat& incoming, ChatIndex& index) {
  const ChatId& chat = incoming.summary.id;
  std::vector<std::string> texts, digests;
  std::map<InteractionId, std::string> digest_of;
  std::map<InteractionId, StateTotals> totals_of;
  std::pair<InteractionId, std::shared_ptr<const AgentState>> last{InteractionId::FromNumber(1), nullptr};
  const auto read_digest = [&](InteractionId id) -> Result<std::optional<std::string>> {
    const auto found = digest_of.find(id);
    if (found == digest_of.end()) return NoSuchParent();
    return found->second;
  };
  for (const InteractionId id : incoming.interactions) {
    const Interaction interaction = TRY(incoming.load(id));
    const RecordLinks links = TRY(LinksTo(interaction.parent_id, index, read_digest));
    SealedInteraction sealed = TRY(records().SealInteraction(interaction, links, [&]() -> std::optional<KnownState> {
      const auto totals = links.parent ? totals_of.find(*links.parent) : totals_of.end();
      if (totals == totals_of.end()) return std::nullopt;
      return KnownState{.totals = totals->second, .state = last.first == *links.parent ? last.second : nullptr};
    }));
    if (interaction.final_agent_state) {
      last = {id, std::make_shared<const AgentState>(*interaction.final_agent_state)};
      totals_of[id] = sealed.state_link ? sealed.state_link->totals : TotalsOf(*last.second);
    }
    AddToIndex(index, interaction, sealed.digest);
    digest_of.emplace(id, sealed.digest);
    texts.push_back(std::move(sealed.text));
    digests.push_back(std::move(sealed.digest));
  }
  TakeSummary(index, incoming.summary);
  const std::string record = TRY(records().SealIndex(index));
  const std::int64_t next = incoming.interactions.empty() ? 1 : Number(incoming.interactions.back()) + 1;
  const Rows added = TRY(database_.Execute(
      {.sql = REPRISE_ADD_CHAT
       "i as (insert into reprise.interactions(tenant, chat, number, record, digest) select $1, $2, n, r, d "
       "  from c, unnest($6::int[], $7::bytea[], $8::text[]) as u(n, r, d)) "
       "select 1 from c",
       .values = {tenant(), chat.str(), next, SqlValue::OrNull(Number(index.summary.head)), SqlValue::Bytes(record),
                  Numbers(incoming.interactions), SqlValue::ByteStrings(texts), SqlValue::Texts(digests)}}));
  if (!added.empty()) return {};
  const auto there = TRY(ReadRow(chat));  // perhaps added by the same statement before
  if (there && there->has_index && there->index.leaves == index.leaves) return {};
  return ChatExists();
}

Result<void> PostgresStore::MoveToTrash(const ChatId& chat, const std::vector<InteractionId>& interactions) {
  const std::string entry = NameOf(TrashedBranch(DatabaseFiles::kRoot, chat, Now()));
  TRY(database_.Execute(
      {.sql =
           "with gone as (delete from reprise.interactions where tenant = $1 and chat = $2 and number = any($4::int[]) "
           "  returning number, record) "
           "insert into reprise.trash(tenant, entry, path, content) "
           "select $1, $3, 'interactions/int_' || lpad(number::text, greatest(3, length(number::text)), '0') || "
           "'.json', record "
           "from gone",
       .values = {tenant(), chat.str(), entry, Numbers(interactions)}}));
  return {};
}

Result<void> PostgresStore::DeleteChat(const ChatId& chat) {
  const std::string entry = NameOf(TrashedChat(DatabaseFiles::kRoot, chat, Now()));
  if (TRY(Remove(chat, entry))) return {};
  const auto row = TRY(ReadRow(chat));
  const auto deleted = row ? Result<std::string>(Fail(Error{}))
                           : database_files_.ReadFile(TrashDirectory(DatabaseFiles::kRoot) + "/" + entry + "/chat.json",
                                                      kMaxRecordBytes);
  if (deleted) return {};  // deleted by the same statement before
  if (row && row->running) return Fail(RunsAlready(NumberedId(*row->running)));
  if (!row || !row->has_index) return NoSuchChat();
  return Fail(RunsAlready(std::nullopt));  // the run has ended just now
}

Result<bool> PostgresStore::Remove(const ChatId& chat, const std::optional<std::string>& entry) {
  Forget(chat);
  const Rows gone = TRY(database_.Execute(
      {.sql =
           "with c as (delete from reprise.chats where tenant = $1 and id = $2 and running is null returning "
           "index_record), "
           "i as (delete from reprise.interactions where tenant = $1 and chat = $2 and exists (select 1 from c) "
           "returning number, record), "
           "f as (delete from reprise.files where tenant = $1 and chat = $2 and exists (select 1 from c) returning "
           "id, record), "
           "q as (delete from reprise.queue where tenant = $1 and chat = $2 and exists (select 1 from c)), "
           "w as (delete from reprise.queued where tenant = $1 and chat = $2 and taken is null and exists (select 1 "
           "from c)), "
           "r as (delete from reprise.runs where tenant = $1 and chat = $2 and exists (select 1 from c)), "
           "j as (delete from reprise.journal where tenant = $1 and chat = $2 and exists (select 1 from c)), "
           "t as (insert into reprise.trash(tenant, entry, path, content) "
           "  select $1, $3::text, path, record from ( "
           "    select 'chat.json' as path, index_record as record from c where index_record is not null "
           "    union all select 'interactions/int_' || lpad(number::text, greatest(3, length(number::text)), '0') || "
           "      '.json', record from i "
           "    union all select 'files/' || id || '.json', record from f) as gone where $3::text is not null) "
           "select index_record is not null from c",
       .values = {tenant(), chat.str(), SqlValue::OrNull(entry)}}));
  return !gone.empty() && gone.truth(0, 0);
}

// The reader finds no sizes, because its files are rows.
Result<std::vector<TrashEntry>> PostgresStore::ListTrash() {
  auto entries = TRY(FileInteractionStore::ListTrash());
  const Rows rows = TRY(database_.Execute(
      {.sql = "select entry, sum(length(content))::bigint from reprise.trash where tenant = $1 group by entry",
       .values = {tenant()}}));
  std::map<std::string, std::uint64_t, std::less<>> bytes;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    bytes.emplace(rows.text(row, 0), static_cast<std::uint64_t>(rows.number(row, 1)));
  }
  for (TrashEntry& entry : entries) {
    if (const auto found = bytes.find(entry.id); found != bytes.end()) entry.bytes = found->second;
  }
  return entries;
}

Result<ChatSummary> PostgresStore::RestoreChat(const ChatId& chat, const std::string& entry) {
  const auto name = ParseTrashName(entry);
  if (!name || name->chat != chat) return NotInTrash();
  const std::string folder = TrashDirectory(DatabaseFiles::kRoot) + "/" + entry;
  const auto record = database_files_.ReadFile(folder + "/chat.json", kMaxRecordBytes);
  if (!record && IsNotFound(record.error())) return NotInTrash();
  if (!record) return Fail(record.error());
  const ChatIndex index = TRY(records().OpenIndex(chat, *record));
  const Rows files = TRY(database_.Execute(
      {.sql = "select path, content from reprise.trash where tenant = $1 and entry = $2 and path like 'interactions/%'",
       .values = {tenant(), entry}}));
  std::vector<InteractionId> numbers;
  std::vector<std::string> digests;
  for (std::size_t row = 0; row < files.size(); ++row) {
    const auto id = ParseInteractionFile(files.text(row, 0).substr(std::string_view("interactions/").size()));
    if (!id) continue;
    numbers.push_back(*id);
    // An unreadable one is restored as it is, and reported when it is read.
    digests.push_back(records().DigestOf(chat, *id, files.text(row, 1)).value_or(""));
  }
  std::int64_t next = index.last + 1;
  for (const InteractionId id : numbers) next = std::max(next, Number(id) + 1);
  const Rows restored = TRY(database_.Execute(
      {.sql = REPRISE_ADD_CHAT
       "t as (delete from reprise.trash where tenant = $1 and entry = $6 and exists (select 1 from c) returning "
       "path, content), "
       "i as (insert into reprise.interactions(tenant, chat, number, record, digest) select $1, $2, n, content, "
       "d from t "
       "  join unnest($7::int[], $8::text[]) as u(n, d) on path = 'interactions/int_' || "
       "  lpad(n::text, greatest(3, length(n::text)), '0') || '.json'), "
       "f as (insert into reprise.files(tenant, chat, id, record) select $1, $2, "
       "  substr(path, 7, length(path) - 11), content from t where path like 'files/%') "
       "select 1 from c",
       .values = {tenant(), chat.str(), next, SqlValue::OrNull(Number(index.summary.head)), SqlValue::Bytes(*record),
                  entry, Numbers(numbers), SqlValue::Texts(digests)}}));
  if (restored.empty()) return ChatExists();
  return index.summary;
}

}  // namespace reprise
