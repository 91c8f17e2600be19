#include "remote/postgres/postgres_tenant_stores.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/logging.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "crypto/jwe.h"
#include "domain/codec.h"
#include "reprise/timestamp.h"
#include "store/file_blob_store.h"
#include "store/file_names.h"
#include "store/record.h"
#include "store/sealed_file_store.h"
#include "store/store_errors.h"
#include "store/tenant_files.h"

namespace reprise {

namespace {

// Milliseconds from now, because the database's clock counts; this machine's may be wrong.
std::optional<std::int64_t> ExpiryOf(const PendingQuestion& question) {
  const auto* const approval = std::get_if<PendingApproval>(&question);
  if (!approval || !approval->request.expires_at) return std::nullopt;
  const auto left = *approval->request.expires_at - approval->request.created_at;
  return std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
}

RecordPlace PlaceOf(const InteractionRef& run, const std::string& id, bool is_answer) {
  return {.chat = run.chat_id, .interaction = run.interaction_id, .question = id, .is_answer = is_answer};
}

}  // namespace

Result<void> PostgresQuestionStore::Open(const std::vector<PendingQuestion>& questions) {
  for (const PendingQuestion& question : questions) {
    const InteractionRef run = QuestionRun(question);
    const std::string& id = QuestionId(question);
    std::string record = TRY(store_.Seal(PlaceOf(run, id, /*is_answer=*/false), DumpJson(QuestionToJson(question))));
    const bool is_approval = std::holds_alternative<PendingApproval>(question);
    const Rows held = TRY(database_.Execute(
        {.sql =
             "with held as (select 1 from reprise.runs where tenant = $1 and chat = $3 and number = $4::int and owner "
             "= $8::uuid for share), asked as (insert into reprise.questions(tenant, id, chat, number, kind, request, "
             "expires_at) select $1, $2, $3, $4::int, $5, $6, clock_timestamp() + $7::bigint * interval "
             "'1 millisecond' from held on conflict (tenant, id) do nothing) select count(*) from held",
         .values = {store_.tenant(), id, run.chat_id.str(), std::int64_t{run.interaction_id.number()},
                    is_approval ? "approval" : "input", SqlValue::Bytes(std::move(record)),
                    SqlValue::OrNull(ExpiryOf(question)), instance_},
         .is_patient = true}));
    if (held.number(0, 0) == 0) return Fail(Fenced());
  }
  return {};
}

Result<PendingQuestion> PostgresQuestionStore::OpenRow(const Rows& rows, std::size_t row) {
  const ChatId chat = TRY(ChatId::Parse(rows.text(row, 1)));
  const InteractionRef run{chat, NumberedId(rows.number(row, 2))};
  const std::string plaintext =
      TRY(store_.Open(PlaceOf(run, std::string(rows.text(row, 0)), /*is_answer=*/false), rows.text(row, 3)));
  return ParseJson(plaintext).and_then([&](const Json& json) { return QuestionFromJson(run, json); });
}

Result<PendingQuestion> PostgresQuestionStore::Find(const std::string& id) {
  const Rows rows = TRY(database_.Execute(
      {.sql = "select id, chat, number, request, answer is not null, coalesce(expires_at <= clock_timestamp(), false) "
              "from reprise.questions where tenant = $1 and id = $2",
       .values = {store_.tenant(), id}}));
  if (rows.empty()) return Fail(ErrorCode::kNotFound, "there is no such question");
  if (rows.truth(0, 4)) return Fail(Refused(Reason::kAlreadyProcessed, "this question was already processed"));
  if (rows.truth(0, 5)) return Fail(Refused(Reason::kExpired, "this question has expired"));
  return OpenRow(rows, 0);
}

Result<std::vector<PendingQuestion>> PostgresQuestionStore::Waiting() {
  const Rows rows = TRY(database_.Execute(
      {.sql = "select id, chat, number, request from reprise.questions where tenant = $1 and answer is null and "
              "(expires_at is null or expires_at > clock_timestamp()) order by created_at",
       .values = {store_.tenant()}}));
  std::vector<PendingQuestion> waiting;
  for (std::size_t row = 0; row < rows.size(); ++row) waiting.push_back(TRY(OpenRow(rows, row)));
  return waiting;
}

Result<void> PostgresQuestionStore::Answer(const InteractionRef& run, const std::string& id,
                                           const GivenAnswer& answer) {
  const std::string record = TRY(store_.Seal(PlaceOf(run, id, /*is_answer=*/true), DumpJson(ToJson(id, answer))));
  const Rows answered = TRY(database_.Execute(
      {.sql = "update reprise.questions q set answer = $3 where tenant = $1 and id = $2 and chat = $4 and number = "
              "$5::int and (answer is null and (expires_at is null or expires_at > clock_timestamp()) or answer = $3) "
              "returning (select owner::text from reprise.runs r where (r.tenant, r.chat, r.number) = (q.tenant, "
              "q.chat, q.number))",
       .values = {store_.tenant(), id, SqlValue::Bytes(record), run.chat_id.str(),
                  std::int64_t{run.interaction_id.number()}}}));
  if (answered.empty()) {
    const auto why = Find(id);
    return Fail(why ? Refused(Reason::kExpired, "this question has expired") : why.error());
  }
  // It is committed, so the owner may look. It also looks by itself, so this signal may be lost.
  if (!answered.is_null(0, 0)) signals_.TellAnswer(std::string(answered.text(0, 0)), {store_.tenant(), run});
  return {};
}

Result<std::vector<std::pair<std::string, GivenAnswer>>> PostgresQuestionStore::Answered(const InteractionRef& run) {
  const Rows rows = TRY(database_.Execute(
      {.sql = "select id, answer from reprise.questions where tenant = $1 and chat = $2 and number = $3::int and "
              "length(answer) > 0",
       .values = {store_.tenant(), run.chat_id.str(), std::int64_t{run.interaction_id.number()}}}));
  std::vector<std::pair<std::string, GivenAnswer>> answered;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::string id(rows.text(row, 0));
    const std::string plaintext = TRY(store_.Open(PlaceOf(run, id, /*is_answer=*/true), rows.text(row, 1)));
    answered.push_back(TRY(ParseJson(plaintext).and_then(AnswerFromJson)));
  }
  return answered;
}

namespace {
// By this machine's clock, as with files.
std::string DayNow() { return FormatTimestamp(std::chrono::floor<std::chrono::days>(Now())).substr(0, 10); }
}  // namespace

std::int64_t PostgresDailyUsage::Today() {
  const auto sum = database_.Execute({.sql = "select coalesce(sum(tokens), 0)::bigint from reprise.day_usage where "
                                             "tenant = $1 and day = $2::date",
                                      .values = {database_.tenant(), DayNow()}});
  const MutexLock lock(mutex_);
  if (!sum) LogWarning("today's use of tokens cannot be read", {{"detail", sum.error().detail}});
  if (sum) last_known_ = sum->number(0, 0);
  return last_known_;
}

Result<void> PostgresDailyUsage::Add(std::int64_t tokens) {
  const MutexLock lock(mutex_);
  const std::string today = DayNow();
  if (today != day_) own_ = 0;
  day_ = today;
  own_ += tokens;
  TRY(database_.Execute({.sql = "insert into reprise.day_usage(tenant, day, source, tokens) values ($1, $2::date, $3, "
                                "$4::bigint) on conflict (tenant, day, source) do update set tokens = "
                                "greatest(reprise.day_usage.tokens, excluded.tokens)",
                         .values = {database_.tenant(), day_, source_, own_}}));
  return {};
}

namespace {

constexpr int kGrantVersion = 1;
constexpr std::string_view kGrantType = "reprise/grant", kName = "a standing grant";

}  // namespace

Result<std::string> PostgresGrantStore::Seal(const StandingGrant& grant) const {
  std::string record = StandingGrantText(grant);
  if (keys_) return SealJwe({{"typ", kGrantType}, {"ver", kGrantVersion}}, record, *keys_);
  return record;
}

Result<bool> PostgresGrantStore::Add(const StandingGrant& grant) {
  const std::string id = GrantId(grant.grant);
  const Rows count = TRY(database_.Execute(
      {.sql = "select count(*) from reprise.grants where tenant = $1", .values = {database_.tenant()}}));
  if (count.number(0, 0) >= static_cast<std::int64_t>(kMaxStandingGrants)) {
    return TooManyGrants();
  }
  const Rows there = TRY(database_.Execute(
      {.sql = "select record from reprise.grants where tenant = $1 and id = $2", .values = {database_.tenant(), id}}));
  auto last = there.empty() ? Result<StandingGrant>(NoSuchGrant()) : Open(id, there.text(0, 0));
  const bool was_there = last && !last->grant.has_expired(Now());
  if (was_there && !Renew(*last, grant)) return false;
  std::string record = TRY(Seal(was_there ? *last : grant));
  TRY(database_.Execute({.sql = "insert into reprise.grants(tenant, id, record) values ($1, $2, $3) "
                                "on conflict (tenant, id) do update set record = excluded.record",
                         .values = {database_.tenant(), id, SqlValue::Bytes(std::move(record))}}));
  return !was_there;
}

Result<void> PostgresGrantStore::Remove(std::string_view id) {
  const Rows removed =
      TRY(database_.Execute({.sql = "delete from reprise.grants where tenant = $1 and id = $2 returning 1",
                             .values = {database_.tenant(), std::string(id)}}));
  if (removed.empty()) return NoSuchGrant();
  return {};
}

Result<std::vector<StandingGrant>> PostgresGrantStore::List() {
  const Rows rows =
      TRY(database_.Execute({.sql = "select id, record from reprise.grants where tenant = $1 order by created_at, id",
                             .values = {database_.tenant()}}));
  std::vector<StandingGrant> grants;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    auto grant = TRY(Open(rows.text(row, 0), rows.text(row, 1)));
    if (!grant.grant.has_expired(Now())) grants.push_back(std::move(grant));
  }
  return grants;
}

std::vector<Grant> PostgresGrantStore::For(const Grant& call) {
  std::vector<Grant> found;
  if (call.terms_digest.empty()) return found;
  // The ids show what a pattern is for, because sealed rows have no text to search.
  const auto rows =
      database_.Execute({.sql = "select id, record from reprise.grants where tenant = $1 and (id = $2 or id like $3)",
                         .values = {database_.tenant(), GrantId(call), PatternGrantPrefix(call) + "%"}});
  if (!rows) LogWarning("the grants for always cannot be read", {{"detail", rows.error().detail}});
  for (std::size_t row = 0; rows && row < rows->size(); ++row) {
    const auto grant = Open(rows->text(row, 0), rows->text(row, 1));
    if (!grant) {
      LogError("a grant for always cannot be read and does not count", {{"error", grant.error().message}});
    } else if (BearsOn(grant->grant, call, Now())) {
      found.push_back(grant->grant);
    }
  }
  return found;
}

void PostgresGrantStore::NoteUse(const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    const auto rows = database_.Execute(
        {.sql = "select record from reprise.grants where tenant = $1 and id = $2", .values = {database_.tenant(), id}});
    if (!rows || rows->empty()) continue;
    auto grant = Open(id, rows->text(0, 0));
    if (!grant) continue;
    ++grant->grant.uses;
    grant->grant.used_at = Now();
    auto record = Seal(*grant);
    if (!record) continue;
    // If two servers count at once, one of the two uses is lost. A grant that was revoked meanwhile stays revoked.
    static_cast<void>(database_.Execute({.sql = "update reprise.grants set record = $3 where tenant = $1 and id = $2",
                                         .values = {database_.tenant(), id, SqlValue::Bytes(*std::move(record))}}));
  }
}

Result<StandingGrant> PostgresGrantStore::Open(std::string_view id, std::string_view record) const {
  const std::string text = TRY(OpenLoneRecord(record, kName, kGrantType, kGrantVersion, keys_.get()));
  StandingGrant grant = TRY(ParseStandingGrant(text));
  if (GrantId(grant.grant) != id) return Fail(LoneRecordDamage(kName, "swap", "it is another one"));
  return grant;
}

namespace {

// How often the head is written. Only lines that were added since then can be cut off unnoticed.
constexpr std::chrono::seconds kSealEvery{30};

std::string HeadName() { return AuditHeadFile("").substr(1); }

}  // namespace

PostgresAuditLog::~PostgresAuditLog() {
  const MutexLock lock(mutex_);
  if (!head_ || head_->count == last_) return;
  if (const auto sealed = Seal(); !sealed) {
    LogWarning("the head of the audit log could not be written", {{"detail", sealed.error().detail}});
  }
}

// All processes use the key for MACs that the first of them has made.
Result<void> PostgresAuditLog::Open() {
  const KeySet* const keys = store_.keys();
  auto head = TRY(ReadAuditHead(DatabaseFiles::kRoot, store_.files(), keys));
  if (!head) {
    AuditHead first;
    if (keys) first.key = SecretKey::Random();
    std::string text = TRY(AuditHeadText(first, keys));
    TRY(database_.Execute({.sql = "insert into reprise.folder_files(tenant, name, content) values ($1, $2, $3) on "
                                  "conflict do nothing",
                           .values = {database_.tenant(), HeadName(), SqlValue::Bytes(std::move(text))}}));
    head = TRY(ReadAuditHead(DatabaseFiles::kRoot, store_.files(), keys));
    if (!head) return Fail(ErrorCode::kIo, "the audit log's head was removed");
  }
  head_ = std::move(head);
  sealed_at_ = std::chrono::steady_clock::now();
  TRY(FindEnd());
  const auto end = CheckAuditEnd(*head_, last_, last_digest_);
  if (end) return {};
  // The next line skips the missing numbers, so that the gap shows.
  LogError("the audit log does not end where its head says", {{"error", end.error().message}});
  gap_ = head_->count;
  gap_digest_ = head_->last;
  last_ = gap_;
  last_digest_ = gap_digest_;
  return {};
}

Result<void> PostgresAuditLog::FindEnd() {
  last_ = gap_;
  last_digest_ = gap_digest_;
  const Rows rows =
      TRY(database_.Execute({.sql = "select seq, digest from reprise.audit where tenant = $1 order by seq desc limit 1",
                             .values = {database_.tenant()}}));
  if (rows.empty() || rows.number(0, 0) <= static_cast<std::int64_t>(gap_)) return {};
  last_ = static_cast<std::uint64_t>(rows.number(0, 0));
  last_digest_ = rows.text(0, 1);
  return {};
}

Result<void> PostgresAuditLog::Append(const AuditEntry& entry) {
  const MutexLock lock(mutex_);
  if (!head_) TRY(Open());
  for (;;) {
    const std::string line = AuditLine(entry, last_ + 1, last_digest_, head_->key ? &*head_->key : nullptr);
    if (TRY(Insert(line))) break;
    TRY(FindEnd());  // another process was faster, or a crash of the database has taken the line before
  }
  if (std::chrono::steady_clock::now() - sealed_at_ < kSealEvery) return {};
  if (const auto sealed = Seal(); !sealed) {
    LogWarning("the head of the audit log could not be written", {{"detail", sealed.error().detail}});
  }
  return {};
}

// Two equal lines of the same moment are one, because no two processes share a call. The line need not be durable by
// itself, because the records that a tool acts upon are, and come after it.
Result<bool> PostgresAuditLog::Insert(const std::string& line) {
  const auto number = static_cast<std::int64_t>(last_ + 1);
  std::string digest = Sha256Digest({line});
  const Rows added = TRY(database_.Execute(
      {.sql =
           "with i as (insert into reprise.audit(tenant, seq, line, digest) select $1, $2::bigint, $3, $4 where "
           "$2::bigint - 1 <= $5::bigint or exists (select 1 from reprise.audit where tenant = $1 and seq = $2::bigint "
           "- 1) on conflict do nothing returning 1) "
           "select count(*), set_config('synchronous_commit', 'off', true) from i",
       .values = {database_.tenant(), number, line, digest, static_cast<std::int64_t>(gap_)}}));
  if (added.number(0, 0) == 0) {
    // Or the same statement was executed before, and its answer was lost.
    const Rows same = TRY(
        database_.Execute({.sql = "select 1 from reprise.audit where tenant = $1 and seq = $2::bigint and digest = $3",
                           .values = {database_.tenant(), number, digest}}));
    if (same.empty()) return false;
  }
  ++last_;
  last_digest_ = std::move(digest);
  return true;
}

// Another process may have written a later end. (If both write at once, the head may be older for a while, not wrong.)
Result<void> PostgresAuditLog::Seal() {
  sealed_at_ = std::chrono::steady_clock::now();
  const auto there = TRY(ReadAuditHead(DatabaseFiles::kRoot, store_.files(), store_.keys()));
  if (there && there->count >= last_) return {};
  head_->count = last_;
  head_->last = last_digest_;
  return WriteAuditHead(DatabaseFiles::kRoot, store_.files(), store_.keys(), *head_);
}

Result<AuditLog::Page> PostgresAuditLog::Read(std::uint64_t after, std::size_t limit) const {
  return ReadAuditPage(ReadAuditHead(DatabaseFiles::kRoot, store_.files(), store_.keys()), after, limit,
                       store_.keys() != nullptr,
                       [this](std::uint64_t from, std::size_t most) { return ReadLines(from, most); });
}

Result<AuditLog::Page> PostgresAuditLog::ReadLines(std::uint64_t after, std::size_t limit) const {
  const Rows rows = TRY(database_.Execute(
      {.sql =
           "select seq, line from reprise.audit where tenant = $1 and seq > $2::bigint order by seq limit $3::bigint",
       .values = {database_.tenant(), static_cast<std::int64_t>(after), static_cast<std::int64_t>(limit) + 1}}));
  Page page;
  for (std::size_t row = 0; row < std::min(rows.size(), limit); ++row) {
    page.lines.emplace_back(rows.text(row, 1));
    if (rows.size() > limit) page.next = static_cast<std::uint64_t>(rows.number(row, 0));
  }
  return page;
}

namespace {

constexpr const char* kAdmin = "org_admin";
constexpr const char* kColumns =
    "select id, name, org, user_name, role, digest, "
    "(extract(epoch from created_at) * 1000)::bigint, (extract(epoch from expires_at) * 1000)::bigint "
    "from reprise.api_tokens where revoked_at is null order by created_at, id";

std::int64_t Milliseconds(Timestamp time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}
Timestamp TimeOf(std::int64_t milliseconds) { return Timestamp(std::chrono::milliseconds(milliseconds)); }

ApiToken TokenOf(const Rows& rows, std::size_t row) {
  ApiToken token{
      .id = std::string(rows.text(row, 0)),
      .name = std::string(rows.text(row, 1)),
      .principal = {.role = rows.text(row, 4) == kAdmin ? Principal::Role::kOrgAdmin : Principal::Role::kUser,
                    .org = std::string(rows.text(row, 2)),
                    .user = std::string(rows.text(row, 3)),
                    .token_id = std::string(rows.text(row, 0))},
      .digest = std::string(rows.text(row, 5)),
      .created_at = TimeOf(rows.number(row, 6))};
  if (!rows.is_null(row, 7)) token.expires_at = TimeOf(rows.number(row, 7));
  return token;
}

}  // namespace

// If the content is too old or could not be read, returns a version that differs from all before.
ApiTokenStore::Version PostgresApiTokens::Look() const {
  const MutexLock lock(mutex_);
  if (IsKnown() && content_) return content_->version;
  return {.device = 2, .changed_ns = std::chrono::steady_clock::now().time_since_epoch().count()};
}

// Each change has a higher number, so the sum grows in whatever order changes become visible.
Result<ApiTokenStore::Version> PostgresApiTokens::ReadVersion() {
  const Rows rows = TRY(database_.Execute(
      {.sql = "select count(*), coalesce(sum(change), 0)::bigint from reprise.api_tokens", .values = {}}));
  return Version{.device = 1, .size = static_cast<std::uint64_t>(rows.number(0, 0)), .changed_ns = rows.number(0, 1)};
}

// The version is read first, so that later changes are found the next time.
Result<ApiTokenStore::Content> PostgresApiTokens::Read() {
  {
    const MutexLock lock(mutex_);
    if (!content_ && IsKnown()) return content_;  // all waiting callers get the same failure
  }
  const auto asked_at = std::chrono::steady_clock::now();
  const auto read = [this]() -> Result<Content> {
    Content content{.version = TRY(ReadVersion()), .tokens = {}};
    {
      const MutexLock lock(mutex_);
      if (content_ && content_->version == content.version) return content_;
    }
    const Rows rows = TRY(database_.Execute({.sql = kColumns}));
    for (std::size_t row = 0; row < rows.size(); ++row) content.tokens.push_back(TokenOf(rows, row));
    return content;
  }();
  const MutexLock lock(mutex_);
  asked_at_ = read ? asked_at : std::chrono::steady_clock::now();
  content_ = read;
  return read;
}

Result<ApiTokenStore::Made> PostgresApiTokens::Add(Principal principal, std::string name,
                                                   std::optional<Timestamp> expires_at) {
  Made made = TRY(Make(std::move(principal), std::move(name), expires_at));
  const ApiToken& token = made.token;
  SqlValue expires = SqlValue::Null();
  if (token.expires_at) expires = SqlValue(Milliseconds(*token.expires_at));
  // Older versions, which gave browsers cookies, read cookie_digest.
  TRY(database_.Execute(
      {.sql = "insert into reprise.api_tokens(id, name, org, user_name, role, digest, cookie_digest, created_at, "
              "expires_at) values ($1, $2, $3, $4, $5, $6, $6, to_timestamp($7::bigint / 1000.0), "
              "to_timestamp($8::bigint / 1000.0)) on conflict do nothing",
       .values = {token.id, token.name, token.principal.org, token.principal.user,
                  token.principal.role == Principal::Role::kOrgAdmin ? kAdmin : "user", token.digest,
                  Milliseconds(token.created_at), expires}}));
  return made;
}

Result<ApiToken> PostgresApiTokens::Revoke(std::string_view id) {
  const Rows revoked = TRY(database_.Execute(
      {.sql = "update reprise.api_tokens set revoked_at = coalesce(revoked_at, clock_timestamp()), change = "
              "nextval('reprise.api_token_changes') where id = $1 and (revoked_at is null or revoked_at > "
              "clock_timestamp() - interval '10 seconds') "
              "returning id, name, org, user_name, role, digest, "
              "(extract(epoch from created_at) * 1000)::bigint, (extract(epoch from expires_at) * 1000)::bigint",
       .values = {std::string(id)}}));
  if (revoked.empty()) return Fail(ErrorCode::kNotFound, "there is no token " + std::string(id));
  return TokenOf(revoked, 0);
}

TokenUses PostgresApiTokens::ReadUses() {
  TokenUses uses;
  const auto rows = database_.Execute({.sql = "select id, (extract(epoch from used_at) * 1000)::bigint from "
                                              "reprise.api_tokens where used_at is not null and revoked_at is null"});
  for (std::size_t row = 0; rows && row < rows->size(); ++row) {
    uses[std::string(rows->text(row, 0))] = TimeOf(rows->number(row, 1));
  }
  return uses;
}

Result<void> PostgresApiTokens::WriteUses(const TokenUses& uses) {
  const MutexLock lock(uses_mutex_);
  for (const auto& [id, at] : uses) {
    const auto written = written_.find(id);
    if (written != written_.end() && written->second == at) continue;
    TRY(database_.Execute({.sql = "update reprise.api_tokens set used_at = greatest(used_at, to_timestamp($2::bigint / "
                                  "1000.0)) where id = $1",
                           .values = {id, Milliseconds(at)}}));
    written_[id] = at;
  }
  return {};
}

Result<std::unique_ptr<PostgresParts>> PostgresParts::Open(SharedDatabase& shared, Options options) {
  Database& database = shared.database();
  std::unique_ptr<PostgresParts> parts(new PostgresParts);
  parts->store_ = std::make_unique<PostgresStore>(PostgresStore::Options{.database = database,
                                                                         .keys = options.keys,
                                                                         .tenant = options.tenant,
                                                                         .bucket = options.bucket,
                                                                         .finishes = &shared.finishes(),
                                                                         .instance = shared.lease().instance()});
  parts->files_ = std::make_unique<SealedFileStore>(SealedFileStore::Options{.root = DatabaseFiles::kRoot,
                                                                             .keys = options.keys,
                                                                             .file_system = parts->store_->files(),
                                                                             .limits = options.files,
                                                                             .bucket = options.bucket});
  parts->blobs_ = std::make_unique<FileBlobStore>(DatabaseFiles::kRoot, options.keys, parts->store_->files());
  parts->runs_ = std::make_unique<PostgresRunStore>(database, *parts->store_, shared.lease(), shared.run_signals(),
                                                    shared.journal_writer());
  parts->questions_ = std::make_unique<PostgresQuestionStore>(database, *parts->store_, shared.run_signals(),
                                                              shared.lease().instance());
  parts->changes_ = PostgresChanges::Make({.database = database,
                                           .signals = shared.signals(),
                                           .topic = shared.topic_of_changes(),
                                           .tenant = options.tenant,
                                           .instance = shared.lease().instance()});
  parts->look_at_changes_ = shared.EverySecond([raw = parts->changes_.get()] { raw->LookEverySecond(); });
  parts->grants_ = std::make_unique<PostgresGrantStore>(database, options.tenant, options.keys);
  parts->audit_ = std::make_unique<PostgresAuditLog>(database, *parts->store_);
  parts->usage_ = std::make_unique<PostgresDailyUsage>(database, options.tenant);
  return parts;
}

}  // namespace reprise
