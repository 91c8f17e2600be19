#include "app/settings.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/json.h"
#include "support/fixtures.h"
#include "support/source_directory.h"
#include "support/test.h"

namespace reprise::test::settings_test {
namespace {

const Json& At(const Json& object, std::string_view name) { return MemberOf(object, name); }

// The parts of the schema that hold a value, by the keys that the table has: "providers.NAME.type", "hooks[].event".
void AddLeaves(const Json& schema, const std::string& key, std::map<std::string, Json>& leaves) {
  const auto below = [&](std::string_view member) {
    return key.empty() ? std::string(member) : key + "." + std::string(member);
  };
  const Json &items = At(schema, "items"), &values = At(schema, "additionalProperties");
  if (At(schema, "properties").is_object() && (At(schema, "type") == "object" || key.empty())) {
    for (const auto& [name, member] : schema["properties"].items()) AddLeaves(member, below(name), leaves);
  } else if (At(values, "properties").is_object()) {
    AddLeaves(values, below("NAME"), leaves);
  } else if (At(values, "oneOf").is_array()) {
    for (const Json& one : values["oneOf"]) AddLeaves(one, below("NAME"), leaves);
  } else if (At(items, "properties").is_object()) {
    AddLeaves(items, key + "[]", leaves);
  } else if (const Json& either = At(schema, "anyOf"); either.size() == 2 && either[1].contains("properties")) {
    leaves.emplace(key, either[0]);
    AddLeaves(either[1], key, leaves);
  } else {
    leaves.emplace(key, schema);
  }
}

std::map<std::string, Json> Leaves() {
  const auto schema = ParseJson(ReadText(SourceDirectory() + "/schemas/config.schema.json"));
  REQUIRE(schema);
  std::map<std::string, Json> leaves;
  AddLeaves(*schema, "", leaves);
  leaves.erase("$schema");
  return leaves;
}

std::set<std::string> TextsOf(const Json& array) {
  std::set<std::string> texts;
  for (const Json& each : array) texts.insert(each.get<std::string>());
  return texts;
}

void CheckNumber(const Setting& setting, const Scalar& value, const Json& schema) {
  const bool is_whole = value.kind == Scalar::Kind::kInteger || setting.rules.range.whole;
  CHECK(At(schema, "type") == (is_whole ? "integer" : "number"));
  CHECK(At(schema, setting.rules.range.above ? "exclusiveMinimum" : "minimum") == setting.rules.range.low);
  if (setting.rules.range.high == kNoHighest) {
    CHECK_FALSE(schema.contains("maximum"));
  } else {
    CHECK(At(schema, "maximum") == setting.rules.range.high);
  }
}

// Whether the schema takes what the table takes.
void CheckAgainst(const Setting& setting, const Json& schema) {
  Options options;
  SettingsDraft draft;
  const SettingValue value = setting.at(options, draft);
  const auto choices = ChoicesOf(setting);
  if (const Scalar* const scalar = std::get_if<Scalar>(&value)) {
    if (scalar->kind == Scalar::Kind::kBool) {
      CHECK(At(schema, "type") == "boolean");
    } else if (scalar->kind == Scalar::Kind::kName) {
      CHECK(TextsOf(At(schema, "enum")) == std::set<std::string>(choices.begin(), choices.end()));
    } else if (!choices.empty()) {
      CHECK(TextsOf(schema["oneOf"][0]["enum"]) == std::set<std::string>(choices.begin(), choices.end()));
      CheckNumber(setting, *scalar, schema["oneOf"][1]);
    } else {
      CheckNumber(setting, *scalar, schema);
    }
  } else if (std::holds_alternative<Texts*>(value)) {
    CHECK(At(setting.rules.may_be_one ? schema["anyOf"][1] : schema, "type") == "array");
  } else if (std::holds_alternative<NamedTexts*>(value)) {
    CHECK(At(At(schema, "additionalProperties"), "type") == "string");
  } else if (choices.size() > 1) {
    CHECK(TextsOf(At(schema, "enum")) == std::set<std::string>(choices.begin(), choices.end()));
  } else if (choices.size() == 1) {
    CHECK(At(schema, "const") == choices[0]);
  } else {
    CHECK(At(schema, "type") == "string");
  }
}

// The cells of the rows of docs/configuration.md that have a key, by it.
std::map<std::string, std::vector<std::string>> DocumentedSettings() {
  std::map<std::string, std::vector<std::string>> rows;
  std::istringstream lines(ReadText(SourceDirectory() + "/docs/configuration.md"));
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, '|');) {
      std::erase(cell, '`');
      cell.erase(0, cell.find_first_not_of(' '));
      cell.erase(cell.find_last_not_of(' ') + 1);
      cells.push_back(cell);
    }
    if (cells.size() == 5 && FindSettingByKey(cells[2]) != nullptr) rows.emplace(cells[2], cells);
  }
  return rows;
}

}  // namespace

TEST_CASE("Settings: config.schema.json has the same keys, and takes the same", "[settings][schemas]") {
  const auto leaves = Leaves();
  std::set<std::string> in_schema, in_table;
  for (const auto& [key, schema] : leaves) in_schema.insert(key);
  for (const Setting& setting : Settings()) CHECK(in_table.insert(std::string(setting.key)).second);
  CHECK(in_table == in_schema);
  for (const Setting& setting : Settings()) {
    INFO(setting.key);
    if (const auto schema = leaves.find(std::string(setting.key)); schema != leaves.end()) {
      CheckAgainst(setting, schema->second);
    }
  }
}

TEST_CASE("Settings: docs/configuration.md has each one, with its flag and its default", "[settings]") {
  const auto rows = DocumentedSettings();
  int compared = 0;
  for (const Setting& setting : Settings()) {
    INFO(setting.key);
    const auto row = rows.find(std::string(setting.key));
    CHECK(row != rows.end());
    if (row == rows.end()) continue;
    CHECK(row->second[1] == (setting.flag.name.empty() ? "" : "--" + std::string(setting.flag.name)));
    Options options;
    SettingsDraft draft;
    const SettingValue value = setting.at(options, draft);
    std::string usual = ShownValue(setting, value);
    if (usual.ends_with(" s")) usual.resize(usual.size() - 2);
    const std::string& told = row->second[3];
    const bool has_default = std::holds_alternative<Scalar>(value) && !usual.empty() && usual != "0";
    if (!has_default || told == "required") continue;
    ++compared;
    CHECK(told.starts_with(usual));
  }
  CHECK(compared > 25);
}

TEST_CASE("UnknownVariables: a misspelt one is named with what was meant, and without its value", "[app]") {
  const char* environment[] = {"PATH=/bin",      "REPRISE_MODEL=offline", "REPRISE_CONFIG=x",
                               "REPRISE_BIN=/x", "REPRISE_MODLE=secret",  nullptr};
  const auto unknown = UnknownVariables(environment);
  REQUIRE(unknown.size() == 1);
  CHECK(unknown.front() == "the variable REPRISE_MODLE is no setting, did you mean REPRISE_MODEL?");
}

}  // namespace reprise::test::settings_test
