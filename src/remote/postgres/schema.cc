#include "remote/postgres/schema.h"

#include <iterator>
#include <vector>

#include "base/try.h"
#include "remote/postgres/database.h"

namespace reprise {

namespace {

// A bytea in a row is sealed as the file would be (or plain, in a plain store). `record` cannot be compressed, so it is
// stored as it is. `running` names the run that holds the chat; this row, under its lock, makes sure that there is only
// one. An empty answer: the run has ended without one.
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

// For several people: tenants, keys of organizations, API tokens, grants, audit log and usage. A token that was revoked
// keeps its row, so that each change has a number of its own.
constexpr const char* kPeople = R"(do $$ begin
  lock table reprise.schema_version in exclusive mode;
  if exists(select from reprise.schema_version where version >= 2) then return; end if;
  create table reprise.tenants(tenant text primary key, org text not null, name text not null,
    created_at timestamptz not null default now(), unique(org, name));
  create table reprise.org_keys(org text primary key, record bytea not null, created_at timestamptz not null default now());
  create sequence reprise.api_token_changes;
  create table reprise.api_tokens(id text primary key, name text not null, org text not null, user_name text not null,
    role text not null, digest text not null unique, cookie_digest text not null, created_at timestamptz not null,
    expires_at timestamptz, used_at timestamptz, revoked_at timestamptz,
    change bigint not null default nextval('reprise.api_token_changes'));
  create table reprise.grants(tenant text, id text, record bytea not null,
    created_at timestamptz not null default clock_timestamp(), primary key(tenant, id));
  create table reprise.audit(tenant text, seq bigint, line text not null, digest text not null, primary key(tenant, seq));
  create table reprise.day_usage(tenant text, day date, source text, tokens bigint not null,
    primary key(tenant, day, source));
  insert into reprise.schema_version(version) values (2);
end $$)";

// The listeners are instances that follow a run; they may be lost, because each is written again a second later. The
// changes are those of the last minutes, by ids.
constexpr const char* kFollowing = R"(do $$ begin
  lock table reprise.schema_version in exclusive mode;
  if exists(select from reprise.schema_version where version >= 3) then return; end if;
  create unlogged table reprise.listeners(tenant text, chat text, number int, instance uuid, until timestamptz not null,
    primary key(tenant, chat, number, instance));
  -- A chat that is made again does not get a version that an earlier one of its name had.
  alter table reprise.chats alter column version set default (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  create table reprise.changes(id bigserial primary key, tenant text not null, instance uuid not null, change text not null,
    at timestamptz not null default clock_timestamp());
  create index on reprise.changes(at);
  insert into reprise.schema_version(version) values (3);
end $$)";

// The former statements of every turn as functions: PostgreSQL plans them once per connection, even behind a pooler
// that knows no prepared statements.
constexpr const char* kFunctions = R"(do $do$ begin
  lock table reprise.schema_version in exclusive mode;
  if exists(select from reprise.schema_version where version >= 4) then return; end if;

  -- False if another server was faster, so that the head or the number is another one.
  create function reprise.begin_run(_tenant text, _chat text, _number int, _checks_head boolean, _head int, _owner uuid,
      _token uuid, _record bytea) returns boolean language plpgsql as $f$
  begin
    update reprise.chats set next_number = next_number + 1, running = _number where tenant = _tenant and id = _chat
      and running is null and next_number = _number and (not _checks_head or head is not distinct from _head);
    if not found then return false; end if;
    insert into reprise.runs(tenant, chat, number, owner, token) values (_tenant, _chat, _number, _owner, _token);
    if _record is not null then
      insert into reprise.journal(tenant, chat, number, epoch, position, record)
        values (_tenant, _chat, _number, 1, 0, _record);
    end if;
    return true;
  end $f$;

  -- A record is kept only after the one before it, so none after a lost one is kept.
  create function reprise.append_record(_tenant text, _chat text, _number int, _token uuid, _position int, _record bytea,
      _commit text) returns boolean language plpgsql as $f$
  declare _epoch int;
  begin
    select epoch into _epoch from reprise.runs where tenant = _tenant and chat = _chat and number = _number
      and token = _token for share;
    if not found then return false; end if;
    if _position > 0 then
      perform 1 from reprise.journal where tenant = _tenant and chat = _chat and number = _number and epoch = _epoch
        and position = _position - 1;
      if not found then return false; end if;
    end if;
    insert into reprise.journal(tenant, chat, number, epoch, position, record)
      values (_tenant, _chat, _number, _epoch, _position, _record) on conflict do nothing;
    perform set_config('synchronous_commit', _commit, true);
    return true;
  end $f$;

  -- `saved` if the chat's row is of this version and the token is the run's, which `is_held` says.
  create function reprise.finish_run(_tenant text, _chat text, _number int, _version bigint, _token uuid, _index bytea,
      _record bytea, _digest text, out saved boolean, out is_held boolean) language plpgsql as $f$
  begin
    perform 1 from reprise.chats where tenant = _tenant and id = _chat and version = _version for update;
    saved := found;
    perform 1 from reprise.runs where tenant = _tenant and chat = _chat and number = _number and token = _token
      for update;
    is_held := found;
    saved := saved and is_held;
    if not saved then return; end if;
    update reprise.chats set head = _number, index_record = _index, version = version + 1, running = null,
      next_number = greatest(next_number, _number + 1) where tenant = _tenant and id = _chat;
    insert into reprise.interactions(tenant, chat, number, record, digest)
      values (_tenant, _chat, _number, _record, _digest);
    update reprise.runs set state = 'ended', owner = null, ended_at = clock_timestamp(), token = gen_random_uuid()
      where tenant = _tenant and chat = _chat and number = _number;
    update reprise.questions set answer = '' where tenant = _tenant and chat = _chat and number = _number
      and answer is null;
  end $f$;
  insert into reprise.schema_version(version) values (4);
end $do$)";

// The statements of every turn, in as few steps as can be. A turn begins for the version of its chat that the server
// remembers, and need not read it first. Rows of journals come many at a time.
// The earlier functions stay for servers that are not updated yet.
constexpr const char* kTurns = R"(do $do$ begin
  lock table reprise.schema_version in exclusive mode;
  if exists(select from reprise.schema_version where version >= 5) then return; end if;
  -- A record of usual size stands in its row.
  alter table reprise.interactions set (toast_tuple_target = 8160);
  alter table reprise.chats set (fillfactor = 60);
  alter table reprise.chats alter column index_record set storage external;

  create function reprise.begin_turn(_tenant text, _chat text, _number int, _version bigint, _checks_head boolean,
      _head int, _owner uuid, _token uuid, _record bytea, _commit text) returns boolean language plpgsql as $f$
  begin
    if _number = 1 then
      insert into reprise.chats(tenant, id) values (_tenant, _chat) on conflict do nothing;
    end if;
    update reprise.chats set next_number = next_number + 1, running = _number where tenant = _tenant and id = _chat
      and running is null and next_number = _number and (_version is null or version = _version)
      and (not _checks_head or head is not distinct from _head);
    if not found then return false; end if;
    insert into reprise.runs(tenant, chat, number, owner, token) values (_tenant, _chat, _number, _owner, _token);
    if _record is not null then
      insert into reprise.journal(tenant, chat, number, epoch, position, record)
        values (_tenant, _chat, _number, 1, 0, _record);
    end if;
    perform set_config('synchronous_commit', _commit, true);
    return true;
  end $f$;

  -- Returns the places of the records that are kept. A run's records are consecutive: `_firsts` has the position of its
  -- first one here, and the record before that must be kept.
  create function reprise.append_records(_tenants text[], _chats text[], _numbers int[], _tokens uuid[], _positions int[],
      _firsts int[], _records bytea[], _commit text) returns setof bigint language plpgsql as $f$
  begin
    return query
    with mine as (select r.epoch, k.* from unnest(_tenants, _chats, _numbers, _tokens, _positions, _firsts, _records)
        with ordinality as k(tenant, chat, number, token, position, first, record, place)
      join reprise.runs r on r.tenant = k.tenant and r.chat = k.chat and r.number = k.number and r.token = k.token
      where k.first = 0 or exists (select 1 from reprise.journal j where j.tenant = k.tenant and j.chat = k.chat
        and j.number = k.number and j.epoch = r.epoch and j.position = k.first - 1) for share of r),
    i as (insert into reprise.journal(tenant, chat, number, epoch, position, record)
      select tenant, chat, number, epoch, position, record from mine on conflict do nothing)
    select place from mine;
    perform set_config('synchronous_commit', _commit, true);
  end $f$;

  -- `saved` if the chat's row is of this version and the token is the run's, which `is_held` says.
  create function reprise.finish_turn(_tenant text, _chat text, _number int, _version bigint, _token uuid, _index bytea,
      _record bytea, _digest text, _has_asked boolean, out saved boolean, out is_held boolean) language plpgsql as $f$
  begin
    update reprise.chats set head = _number, index_record = _index, version = version + 1, running = null,
      next_number = greatest(next_number, _number + 1) where tenant = _tenant and id = _chat and version = _version;
    saved := found;
    if not saved then
      perform 1 from reprise.runs where tenant = _tenant and chat = _chat and number = _number and token = _token;
      is_held := found;
      return;
    end if;
    update reprise.runs set state = 'ended', owner = null, ended_at = clock_timestamp(), token = gen_random_uuid()
      where tenant = _tenant and chat = _chat and number = _number and token = _token;
    is_held := found;
    if not is_held then raise exception 'fenced' using errcode = 'RP001'; end if;
    insert into reprise.interactions(tenant, chat, number, record, digest)
      values (_tenant, _chat, _number, _record, _digest);
    if _has_asked then
      update reprise.questions set answer = '' where tenant = _tenant and chat = _chat and number = _number
        and answer is null;
    end if;
  end $f$;
  insert into reprise.schema_version(version) values (5);
end $do$)";

// A server takes a chat that it does not remember for a new one; this function finds out. It returns the version, so
// that the end of the run need not ask for it.
constexpr const char* kFirstTurns = R"(do $do$ begin
  lock table reprise.schema_version in exclusive mode;
  if exists(select from reprise.schema_version where version >= 6) then return; end if;

  -- Returns the chat's version; null if the chat is not as expected (`_is_new`: it must not be there).
  create function reprise.begin_turn_at(_tenant text, _chat text, _number int, _version bigint,
      _checks_head boolean, _head int, _owner uuid, _token uuid, _record bytea, _commit text, _is_new boolean)
      returns bigint language plpgsql as $f$
  declare _found bigint;
  begin
    if _is_new then
      insert into reprise.chats(tenant, id, next_number, running) values (_tenant, _chat, _number + 1, _number)
        on conflict do nothing returning version into _found;
    else
      update reprise.chats set next_number = next_number + 1, running = _number where tenant = _tenant and id = _chat
        and running is null and next_number = _number and (_version is null or version = _version)
        and (not _checks_head or head is not distinct from _head) returning version into _found;
    end if;
    if _found is null then return null; end if;
    insert into reprise.runs(tenant, chat, number, owner, token) values (_tenant, _chat, _number, _owner, _token);
    if _record is not null then
      insert into reprise.journal(tenant, chat, number, epoch, position, record)
        values (_tenant, _chat, _number, 1, 0, _record);
    end if;
    perform set_config('synchronous_commit', _commit, true);
    return _found;
  end $f$;
  insert into reprise.schema_version(version) values (6);
end $do$)";

// Messages that wait, a row each. The owner is the instance that starts them; `taken`: the number of the interaction
// that has begun with it, 0 if it was removed. A row of `queue` is split by the first server that looks, when no server
// is left that uses it as a whole (an instance without `queues_by_rows`).
constexpr const char* kQueueRows = R"(do $do$ begin
  lock table reprise.schema_version in exclusive mode;
  if exists(select from reprise.schema_version where version >= 7) then return; end if;
  alter table reprise.instances add column queues_by_rows boolean not null default false;
  create sequence reprise.queue_places;
  create table reprise.queued(tenant text, chat text, place bigint default nextval('reprise.queue_places'), id text not null,
    owner uuid, version bigint not null default 1, size bigint not null, record bytea not null, failure bytea, taken int,
    taken_at timestamptz, primary key(tenant, chat, place), unique(tenant, id));
  alter table reprise.queued alter column record set storage external;
  create index on reprise.queued(taken_at) where taken_at is not null;

  -- The chat's lock puts the places in the order of commits. A message that was added before is left as it is.
  create function reprise.add_queued(_tenant text, _chat text, _id text, _owner uuid, _size bigint, _record bytea,
      _most bigint, _most_size bigint, out is_there boolean, out has_room boolean) language plpgsql as $f$
  begin
    has_room := true;
    perform 1 from reprise.chats where tenant = _tenant and id = _chat for no key update;
    is_there := found;
    if not is_there then return; end if;
    perform 1 from reprise.queued where tenant = _tenant and id = _id;
    if found then return; end if;
    select count(*) < _most and coalesce(sum(size), 0) + _size <= _most_size into has_room from reprise.queued
      where tenant = _tenant and chat = _chat and taken is null;
    if not has_room then return; end if;
    insert into reprise.queued(tenant, chat, id, owner, size, record) values (_tenant, _chat, _id, _owner, _size, _record);
  end $f$;

  -- As begin_turn_at, for a message of the queue (null: none). Only messages that could not begin may wait before it.
  create function reprise.begin_queued_turn(_tenant text, _chat text, _number int, _version bigint, _checks_head boolean,
      _head int, _owner uuid, _token uuid, _record bytea, _commit text, _is_new boolean, _queued text, _queued_version bigint)
      returns bigint language plpgsql as $f$
  declare _found bigint; _place bigint; _its_version bigint;
  begin
    _found := reprise.begin_turn_at(_tenant, _chat, _number, _version, _checks_head, _head, _owner, _token, _record, _commit,
      _is_new);
    if _found is null then return null; end if;
    if _queued is not null then
      select place, version into _place, _its_version from reprise.queued where tenant = _tenant and chat = _chat and id = _queued
        and taken is null for update;
      if not found then raise exception 'dequeued' using errcode = 'RP002'; end if;
      if _its_version <> _queued_version then raise exception 'changed' using errcode = 'RP003'; end if;
      update reprise.queued set taken = _number, taken_at = clock_timestamp(), record = '', failure = null
        where tenant = _tenant and chat = _chat and id = _queued;
    end if;
    perform 1 from reprise.queued where tenant = _tenant and chat = _chat and taken is null and failure is null
      and (_place is null or place < _place);
    if found then raise exception 'not next' using errcode = 'RP003'; end if;
    return _found;
  end $f$;
  insert into reprise.schema_version(version) values (7);
end $do$)";

// The functions of every turn find rows by their keys, however few there were when they were planned: a plan is kept,
// and a scan of all runs that suits ten of them takes a millisecond with thousands.
constexpr const char* kPlans = R"(do $do$ declare name text; begin
  lock table reprise.schema_version in exclusive mode;
  if exists(select from reprise.schema_version where version >= 8) then return; end if;
  for name in select oid::regprocedure from pg_proc where pronamespace = 'reprise'::regnamespace
      and proname in ('begin_turn_at', 'begin_queued_turn', 'append_record', 'append_records', 'finish_turn') loop
    execute 'alter function ' || name || ' set enable_seqscan = off';
  end loop;
  alter function reprise.append_records(text[], text[], int[], uuid[], int[], int[], bytea[], text)
    set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan;
  insert into reprise.schema_version(version) values (8);
end $do$)";

// A run's row is deleted when the run ends, because changing it, with all its indexes, cost as much as everything else
// that a turn's end writes. A table without indexes names the ended run, so that its journal can be removed.
constexpr const char* kEndedRuns = R"(do $do$ begin
  lock table reprise.schema_version in exclusive mode;
  if exists(select from reprise.schema_version where version >= 9) then return; end if;
  create table reprise.ended_runs(tenant text not null, chat text not null, number int not null,
    at timestamptz not null default clock_timestamp());

  -- `saved` if the chat's row is of this version and the token is the run's, which `is_held` says.
  create function reprise.end_turn(_tenant text, _chat text, _number int, _version bigint, _token uuid, _index bytea,
      _record bytea, _digest text, _has_asked boolean, out saved boolean, out is_held boolean) language plpgsql
      set enable_seqscan = off as $f$
  begin
    update reprise.chats set head = _number, index_record = _index, version = version + 1, running = null,
      next_number = greatest(next_number, _number + 1) where tenant = _tenant and id = _chat and version = _version;
    saved := found;
    if not saved then
      perform 1 from reprise.runs where tenant = _tenant and chat = _chat and number = _number and token = _token;
      is_held := found;
      return;
    end if;
    delete from reprise.runs where tenant = _tenant and chat = _chat and number = _number and token = _token;
    is_held := found;
    if not is_held then raise exception 'fenced' using errcode = 'RP001'; end if;
    insert into reprise.ended_runs(tenant, chat, number) values (_tenant, _chat, _number);
    insert into reprise.interactions(tenant, chat, number, record, digest)
      values (_tenant, _chat, _number, _record, _digest);
    if _has_asked then
      update reprise.questions set answer = '' where tenant = _tenant and chat = _chat and number = _number
        and answer is null;
    end if;
  end $f$;
  insert into reprise.schema_version(version) values (9);
end $do$)";

// The second lock: no statement touches a row of a tenant that it has not named, whatever it asks for. For every table
// with tenants, of whatever version. It also holds for the owner of the table, but not for a superuser.
constexpr const char* kSecureTenants = R"(do $$ declare name text; begin
  lock table reprise.schema_version in exclusive mode;
  for name in select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relnamespace = 'reprise'::regnamespace and c.relkind = 'r' and a.attname = 'tenant' and not a.attisdropped
      and not exists(select from pg_policy p where p.polrelid = c.oid and p.polname = 'tenant') loop
    execute format('alter table reprise.%I enable row level security', name);
    execute format('alter table reprise.%I force row level security', name);
    execute format($policy$create policy tenant on reprise.%I using
      ((select coalesce(current_setting('reprise.tenant', true), '')) in (tenant, '*'))$policy$, name);
  end loop;
end $$)";

constexpr const char* kMigrations[] = {kVersion1,   kPeople,    kFollowing, kFunctions, kTurns,
                                       kFirstTurns, kQueueRows, kPlans,     kEndedRuns};
constexpr int kKnown = static_cast<int>(std::size(kMigrations));

Error Newer(const SchemaStatus& status) {
  return Refused(Reason::kNewerSchema, "the database is of schema " + std::to_string(status.there) +
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
    // The lock is for two programs that begin at once: "if not exists" may still fail if the other one is faster.
    TRY(database.Execute({.sql = R"(do $$ begin
      perform pg_advisory_xact_lock(7237970109966541);
      create schema if not exists reprise;
      create table if not exists reprise.schema_version(version int primary key, applied_at timestamptz not null default now());
    end $$)"}));
  }
  for (int next = before.there; next < kKnown; ++next) TRY(database.Execute({.sql = kMigrations[next]}));
  TRY(database.Execute({.sql = kSecureTenants}));
  return ReadSchemaStatus(database);
}

Result<void> CheckSchema(Database& database) {
  const SchemaStatus status = TRY(ReadSchemaStatus(database));
  if (status.is_current()) return {};
  if (status.there > status.known) return Fail(Newer(status));
  if (status.there == 0) {
    return Fail(Reason::kNoSchema, "the database has no tables of this program: `reprise db init` makes them");
  }
  return Fail(Refused(Reason::kOldSchema, "the database is of schema " + std::to_string(status.there) + " of " +
                                              std::to_string(status.known) +
                                              ": `reprise db migrate` brings it up to date"));
}

namespace {

// The list of users comes last, so that an interrupted deletion can be continued.
Result<std::vector<std::string>> TablesOfTenants(TenantDatabase& all) {
  const Rows rows = TRY(all.Execute(
      {.sql = "select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid where c.relnamespace = "
              "'reprise'::regnamespace and c.relkind = 'r' and a.attname = 'tenant' and not a.attisdropped "
              "order by c.relname = 'tenants', c.relname"}));
  std::vector<std::string> tables;
  for (std::size_t row = 0; row < rows.size(); ++row) tables.emplace_back(rows.text(row, 0));
  return tables;
}

}  // namespace

Result<std::size_t> DeleteOrgRows(const std::string& url, const std::string& org) {
  const auto database = TRY(Database::Open({.url = url}));
  TRY(CheckSchema(*database));
  TenantDatabase all(*database, TenantDatabase::kAll);
  const Rows servers = TRY(all.Execute(
      {.sql = "select count(*) from reprise.instances where not dead and lease_until > clock_timestamp()"}));
  if (servers.number(0, 0) > 0) {
    return Fail(ErrorCode::kConflict,
                "an organization cannot be deleted while servers use the database; stop them first");
  }
  const Rows users = TRY(all.Execute({.sql = "select count(*) from reprise.tenants where org = $1", .values = {org}}));
  TRY(all.Execute({.sql = "delete from reprise.org_keys where org = $1", .values = {org}}));
  for (const std::string& table : TRY(TablesOfTenants(all))) {
    const std::string sql =
        "delete from reprise." + table + " where tenant in (select tenant from reprise.tenants where org = $1)";
    TRY(all.Execute({.sql = sql.c_str(), .values = {org}}));  // waits, so `sql` lives long enough
  }
  return static_cast<std::size_t>(users.number(0, 0));
}

}  // namespace reprise
