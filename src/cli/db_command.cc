#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "app/options.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "remote/postgres/database.h"
#include "remote/postgres/schema.h"
#include "terminal/console.h"

namespace reprise {
namespace {

Result<std::unique_ptr<Database>> OpenDatabase(const CommandLine& line, const Environment& environment) {
  const Options options = TRY(LoadOptions(line.flags, environment));
  if (options.store.type != StoreOptions::Type::kPostgres) {
    return Fail(ErrorCode::kInvalidArgument,
                "the configuration keeps chats in files; a database is named by \"store\": {\"type\": \"postgres\", "
                "\"url\": \"postgresql://...\"}");
  }
  return Database::Open({.url = options.store.url});
}

Json AsJson(const SchemaStatus& status) {
  return {{"schema", status.there}, {"known", status.known}, {"ready", status.is_current()}};
}

void PrintStatus(const SchemaStatus& status, bool json) {
  if (json) return PrintDocument(AsJson(status));
  Print("the tables are up to date (schema " + std::to_string(status.there) + ")\n");
}

// The live instances, and those that died recently.
Result<Json> Instances(Database& database) {
  const Rows rows = TRY(database.Execute(
      {.sql =
           "select id::text, version, dead or lease_until < clock_timestamp(), (select count(*) from reprise.runs r "
           "where r.owner = i.id) from reprise.instances i where lease_until > clock_timestamp() - interval '1 hour' "
           "order by lease_until desc"}));
  Json all = Json::array();
  for (std::size_t row = 0; row < rows.size(); ++row) {
    all.push_back({{"id", rows.text(row, 0)},
                   {"version", rows.text(row, 1)},
                   {"alive", !rows.truth(row, 2)},
                   {"runs", rows.number(row, 3)}});
  }
  return all;
}

}  // namespace

Exited RunDbMake(const CommandLine& line, const Environment& environment) {
  const auto database = TRY(OfUse(OpenDatabase(line, environment)));
  const auto before = TRY(ReadSchemaStatus(*database));
  if (line.command == "db migrate" && before.there == 0) {
    return Complain(MakeError(ErrorCode::kConflict, "the database has no tables yet: `reprise db init` makes them"));
  }
  const auto status = TRY(MigrateSchema(*database));
  PrintStatus(status, line.json);
  return kExitOk;
}

Exited RunDbStatus(const CommandLine& line, const Environment& environment) {
  const auto database = TRY(OfUse(OpenDatabase(line, environment)));
  const auto status = TRY(ReadSchemaStatus(*database));
  const auto usable = CheckSchema(*database);
  if (!usable) {
    if (line.json) PrintDocument(AsJson(status));
    return line.json ? kExitFailure : Complain(usable.error());
  }
  const auto instances = TRY(Instances(*database));
  if (line.json) {
    Json json = AsJson(status);
    json["instances"] = instances;
    PrintDocument(json);
    return kExitOk;
  }
  PrintStatus(status, /*json=*/false);
  for (const Json& each : instances) {
    Print(std::string(each.at("alive").get<bool>() ? "alive  " : "dead   ") + each.at("id").get<std::string>() + "  " +
          VisibleLine(each.at("version").get<std::string>()) + "  " +
          std::to_string(each.at("runs").get<std::int64_t>()) + " runs\n");
  }
  return kExitOk;
}

}  // namespace reprise
