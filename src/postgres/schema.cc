#include "postgres/schema.h"

#include <iterator>
#include <string>

#include "base/try.h"

namespace reprise {
namespace {

// What stands in a row as bytea is sealed as the file would be (or plain, in a plain store). `record` does not
// compress, so nobody tries. `running` names the run that holds the chat: that there is one at most is decided by this
// row, under its lock. An empty answer: the run has ended without one.
constexpr const char* kVersion1 = R"(do $$ begin
  lock table reprise.schema_version in exclusive mode;
  if exists(select from reprise.schema_version where version >= 1) then return; end if;
  create table reprise.instances(id uuid primary key, lease_until timestamptz not null, dead boolean not null default false,
    version text not null);
  create table reprise.chats(tenant text, id text, next_number int not null default 1, head int, running int,
    index_record bytea, version bigint not null default 0, primary key(tenant, id));
  create table reprise.interactions(tenant text, chat text, number int, record bytea not null, digest text not null,
    saved_at timestamptz not null default now(), primary key(tenant, chat, number));
  alter table reprise.interactions alter column record set storage external;
  create table reprise.runs(tenant text, chat text, number int, owner uuid, token uuid not null, epoch int not null default 1,
    state text not null default 'running', stop_reason text, ended_at timestamptz, primary key(tenant, chat, number))
    with (fillfactor = 50);
  create index on reprise.runs(owner);
  create index on reprise.runs(ended_at) where ended_at is not null;
  create table reprise.journal(tenant text, chat text, number int, epoch int, position int, record bytea not null,
    primary key(tenant, chat, number, epoch, position));
  alter table reprise.journal alter column record set storage external;
  create table reprise.queue(tenant text, chat text, record bytea not null, primary key(tenant, chat));
  create table reprise.questions(tenant text, id text, chat text not null, number int not null, kind text not null,
    request bytea not null, answer bytea, expires_at timestamptz, created_at timestamptz not null default clock_timestamp(),
    primary key(tenant, id));
  create index on reprise.questions(tenant, chat, number);
  create table reprise.files(tenant text, chat text, id text, record bytea not null, created_at timestamptz not null default now(),
    primary key(tenant, chat, id));
  alter table reprise.files alter column record set storage external;
  create table reprise.folder_files(tenant text, name text, content bytea not null, primary key(tenant, name));
  create table reprise.trash(tenant text, entry text, path text, content bytea not null, primary key(tenant, entry, path));
  insert into reprise.schema_version(version) values (1);
end $$)";

constexpr const char* kMigrations[] = {kVersion1};
constexpr int kKnown = static_cast<int>(std::size(kMigrations));

Error SchemaError(std::string reason, std::string message) {
  return Error{.code = ErrorCode::kConflict, .reason = std::move(reason), .message = std::move(message)};
}

Error Newer(const SchemaStatus& status) {
  return SchemaError("newer_schema", "the database is of schema " + std::to_string(status.there) +
                                         ", which this program does not know (it knows " +
                                         std::to_string(status.known) + "); a newer program has made it");
}

}  // namespace

Result<SchemaStatus> ReadSchemaStatus(Database& database) {
  SchemaStatus status{.known = kKnown};
  const Rows made = TRY(database.Execute({.sql = "select to_regclass('reprise.schema_version') is not null"}));
  if (!made.truth(0, 0)) return status;
  const Rows rows = TRY(database.Execute({.sql = "select coalesce(max(version), 0)::int from reprise.schema_version"}));
  status.there = static_cast<int>(rows.number(0, 0));
  return status;
}

Result<SchemaStatus> MigrateSchema(Database& database) {
  const SchemaStatus before = TRY(ReadSchemaStatus(database));
  if (before.there > before.known) return Fail(Newer(before));
  if (before.there == 0) {
    // Two that begin at once: "if not exists" may still find that the other was faster.
    TRY(database.Execute({.sql = R"(do $$ begin
      perform pg_advisory_xact_lock(7237970109966541);
      create schema if not exists reprise;
      create table if not exists reprise.schema_version(version int primary key, applied_at timestamptz not null default now());
    end $$)"}));
  }
  for (int next = before.there; next < kKnown; ++next) TRY(database.Execute({.sql = kMigrations[next]}));
  return ReadSchemaStatus(database);
}

Result<void> CheckSchema(Database& database) {
  const SchemaStatus status = TRY(ReadSchemaStatus(database));
  if (status.is_current()) return {};
  if (status.there > status.known) return Fail(Newer(status));
  if (status.there == 0) {
    return Fail(SchemaError("no_schema", "the database has no tables of this program: `reprise db init` makes them"));
  }
  return Fail(SchemaError("old_schema", "the database is of schema " + std::to_string(status.there) + " of " +
                                            std::to_string(status.known) +
                                            ": `reprise db migrate` brings it up to date"));
}

}  // namespace reprise
