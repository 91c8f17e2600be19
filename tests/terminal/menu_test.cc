#include "terminal/menu.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "support/fixtures.h"
#include "support/source_directory.h"
#include "support/test.h"
#include "terminal/key_table.h"
#include "terminal/terminal_style.h"

namespace reprise::test::menu_test {
namespace {

std::vector<std::string> Sorted(const std::string& words, const std::vector<std::string>& names) {
  Menu menu({.place = [&](const std::string& line) { return MenuPlace{.id = "x", .words = line}; },
             .items =
                 [&](const std::string&) {
                   std::vector<MenuItem> items;
                   for (const std::string& name : names) items.push_back({name, "", name});
                   return items;
                 },
             .changed = [] {}});
  menu.Open(words);
  std::vector<std::string> found;
  for (const MenuItem* const item : menu.Matches()) found.push_back(item->name);
  return found;
}

}  // namespace

TEST_CASE("Menu: the best match is the first", "[terminal]") {
  using Names = std::vector<std::string>;
  CHECK(Sorted("tab", {"src/stable.py", "lib/table.py", "tables/x.py", "tab", "none"}) ==
        Names{"tab", "tables/x.py", "lib/table.py", "src/stable.py"});
  CHECK(Sorted("RT", {"src/render_table.py", "x.py"}) == Names{"src/render_table.py"});
  CHECK(Sorted("", {"b", "a"}) == Names{"b", "a"});
  CHECK(Sorted("zz", {"a"}).empty());
}

TEST_CASE("Menu: Enter takes only what was shown for this very text", "[terminal]") {
  Menu menu({.place = [](const std::string& line) -> std::optional<MenuPlace> {
               if (!line.starts_with('/')) return std::nullopt;
               return MenuPlace{.id = "/", .words = line};
             },
             .items =
                 [](const std::string&) {
                   return std::vector<MenuItem>{{"/one", "", "/one"}, {"/only", "", "/only "}};
                 },
             .changed = [] {}});
  menu.Update("/o", true);
  CHECK(menu.EnteredFor("/o") == nullptr);  // another key may have come while it was made
  menu.MarkSeen();
  REQUIRE(menu.EnteredFor("/o") != nullptr);
  CHECK(menu.EnteredFor("/o")->name == "/one");
  CHECK(menu.EnteredFor("/on") == nullptr);
  menu.Move(-1);
  CHECK(menu.Chosen()->name == "/only");
  menu.Update("/one", true);
  menu.MarkSeen();
  CHECK(menu.EnteredFor("/one") == nullptr);
  menu.Update("/o", true);
  menu.Close();
  menu.Update("/on", true);
  CHECK_FALSE(menu.is_open());
  menu.Update("", true);
  menu.Update("/o", true);
  CHECK(menu.is_open());
  for (const std::string& line : menu.Lines(12, 3, Style(Colour::kNever))) CHECK(line.size() <= 16);
}

TEST_CASE("Menu: Enter replaces nothing that means something already, and nothing by a guess", "[terminal]") {
  const auto place = [](const std::string& line) { return MenuPlace{.id = "x", .words = line.substr(3)}; };
  const auto items = [](const std::string&) {
    return std::vector<MenuItem>{{"docs/chat.md", "", "/x docs/chat.md"}, {"a title", "id", "/x chat"}};
  };
  Menu menu({.place = place, .items = items, .changed = [] {}});
  const auto entered = [&](const std::string& line) {
    menu.Update(line, true);
    menu.MarkSeen();
    const MenuItem* const item = menu.EnteredFor(line);
    return item == nullptr ? "" : item->name;
  };
  CHECK(entered("/x cha") == "docs/chat.md");
  CHECK(entered("/x chat").empty());  // what another item stands for
  CHECK(entered("/x dcm").empty());   // letters are left out
  CHECK(menu.Lines(80, 5, Style(Colour::kNever)).front() == "1/1 · Tab takes it · Esc closes");
  menu.Move(1);
  CHECK(menu.EnteredFor("/x dcm") != nullptr);
  CHECK(menu.Lines(80, 5, Style(Colour::kNever)).front() == "1/1 · Enter or Tab takes it · Esc closes");
}

TEST_CASE("KeyTable: a changed key is one of the terminal's, and has one action", "[terminal]") {
  CHECK(KeySequence("ctrl-x ctrl-e") == L"^X^E");
  CHECK(KeySequence("alt-q").empty());
  CHECK(KeySequence("").empty());
  CHECK(ParseTerminalSettings(R"({"keys": {"editor": ["ctrl-f"], "search": []}})").has_value());
  CHECK_FALSE(ParseTerminalSettings(R"({"keys": {"editor": "ctrl-o", "unfold": "ctrl-o"}})").has_value());
  CHECK_FALSE(ParseTerminalSettings(R"({"keys": {"editor": "tab", "unfold": "ctrl-i"}})").has_value());
  for (const char* key : {"ctrl-m", "enter", "ctrl-c", "ctrl-m ctrl-a", "esc", "?"}) {
    CHECK_FALSE(ParseTerminalSettings(R"({"keys": {"editor": ")" + std::string(key) + "\"}}").has_value());
  }
  CHECK_FALSE(ParseTerminalSettings("\xff").has_value());
  CHECK(ParseTerminalSettings("{}")->keys.rows().size() > 20);
}

TEST_CASE("KeyTable: a chosen key is taken from the action that usually has it", "[terminal]") {
  const auto keys_of = [](std::string_view settings, std::string_view action) {
    const auto parsed = ParseTerminalSettings(settings);
    REQUIRE(parsed);
    for (const KeyTable::Row& row : parsed->keys.rows()) {
      if (row.action->name == action) return row.keys;
    }
    return std::vector<std::string>();
  };
  using Keys = std::vector<std::string>;
  CHECK(keys_of(R"({"keys": {"editor": "ctrl-e"}})", "editor") == Keys{"ctrl-e"});
  CHECK(keys_of(R"({"keys": {"editor": "ctrl-e"}})", "line-end") == Keys{"end"});
  CHECK(keys_of(R"({"keys": {"unfold": "ctrl-i"}})", "complete").empty());
  CHECK(keys_of(R"({"keys": {"unfold": "ctrl-x"}})", "editor") == Keys{"ctrl-g"});
  // As in docs/terminal.md.
  CHECK(keys_of(R"({"theme": "dark", "editing": "vi",
                    "keys": {"editor": "ctrl-e", "search": ["ctrl-r", "ctrl-f"], "mode": []}})",
                "search") == Keys{"ctrl-r", "ctrl-f"});
}

TEST_CASE("terminal.schema.json: names the actions that can have other keys", "[terminal]") {
  const auto schema = ParseJson(ReadText(SourceDirectory() + "/schemas/terminal.schema.json"));
  REQUIRE(schema);
  std::vector<std::string> named, changeable;
  for (const Json& name : schema->at("properties").at("keys").at("propertyNames").at("enum")) {
    named.push_back(name.get<std::string>());
  }
  const KeyTable keys;
  for (const KeyTable::Row& row : keys.rows()) {
    if (row.action->function != nullptr) changeable.emplace_back(row.action->name);
  }
  CHECK(named == changeable);
}

}  // namespace reprise::test::menu_test
