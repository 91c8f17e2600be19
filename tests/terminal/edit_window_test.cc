#include "terminal/edit_window.h"

#include <string>
#include <vector>

#include "support/test.h"
#include "terminal/terminal_lines.h"

namespace reprise {
namespace {

using Rows = std::vector<std::string>;

std::wstring Lines(int count) {
  std::wstring text;
  for (int i = 1; i <= count; ++i) text += (i > 1 ? L"\n" : L"") + std::to_wstring(i);
  return text;
}

// The window of a text of so many lines, with the cursor at this one.
EditWindow At(int line, int count, std::size_t& first, int most = 6) {
  const std::wstring text = Lines(count);
  return WindowOf({L"> ", text, line == 1 ? 0 : Lines(line - 1).size() + 1}, 80, most, first);
}

TEST_CASE("an edited text is shown in rows", "[edit_window]") {
  std::size_t first = 0;
  CHECK(WindowOf({L"> ", L"", 0}, 10, 3, first) == EditWindow{{"> "}, 0, 2});
  CHECK(WindowOf({L"> ", L"ab\ncd", 5}, 10, 3, first) == EditWindow{{"> ab", "cd"}, 1, 2});
  CHECK(WindowOf({L"> ", L"abcdef", 3}, 5, 3, first) == EditWindow{{"> abc", "def"}, 1, 0});
  CHECK(WindowOf({L"> ", L"abc", 3}, 5, 3, first) == EditWindow{{"> abc", ""}, 1, 0});  // the cursor needs the place
  CHECK(WindowOf({L"> ", L"漢字漢字", 2}, 6, 3, first) == EditWindow{{"> 漢字", "漢字"}, 1, 0});
  CHECK(WindowOf({L"", L"a漢字漢", 3}, 6, 3, first) == EditWindow{{"a漢字", "漢"}, 1, 0});
  CHECK(WindowOf({L"> ", L"a\tb", 2}, 20, 3, first) == EditWindow{{"> a     b"}, 0, 8});
  CHECK(WindowOf({L"> ", L"a\x03\x1b[J\x7f", 6}, 20, 3, first).rows == Rows{"> a^C^[[J^?"});
  CHECK(WindowOf({L"> ", L"e\u0301x", 2}, 20, 3, first) == EditWindow{{"> e\u0301x"}, 0, 3});
}

TEST_CASE("a text of too many rows is seen around its cursor", "[edit_window]") {
  std::size_t first = 0;
  CHECK(At(6, 6, first) == EditWindow{{"> 1", "2", "3", "4", "5", "6"}, 5, 0});
  CHECK(At(7, 7, first) == EditWindow{{"↑ 2 more rows", "3", "4", "5", "6", "7"}, 5, 0});
  CHECK(At(1, 7, first) == EditWindow{{"> 1", "2", "3", "4", "5", "↓ 2 more rows"}, 0, 2});
  CHECK(At(5000, 5000, first) == EditWindow{{"↑ 4,995 more rows", "4996", "4997", "4998", "4999", "5000"}, 5, 0});
  // The window moves only if the cursor leaves it.
  CHECK(At(4997, 5000, first).row == 2);
  CHECK(At(4994, 5000, first) ==
        EditWindow{{"↑ 4,993 more rows", "4994", "4995", "4996", "4997", "↓ 3 more rows"}, 1, 0});
  CHECK(At(4996, 5000, first).row == 3);
  CHECK(At(1, 5000, first).rows.front() == "> 1");
}

TEST_CASE("the cursor is in every window, and every window has its height", "[edit_window]") {
  for (const int most : {3, 4, 7}) {
    std::size_t first = 0;
    for (int step = 0; step < 400; ++step) {
      const int line = 1 + step * 37 % 50;
      const EditWindow window = At(line, 50, first, most);
      REQUIRE(window.rows.size() == static_cast<std::size_t>(most));
      REQUIRE(window.rows.at(static_cast<std::size_t>(window.row)).ends_with(std::to_string(line)));
    }
  }
}

}  // namespace
TEST_CASE("Clusters: what a person takes for one character", "[edit_window]") {
  const auto lengths = [](std::wstring_view text) {
    std::vector<std::size_t> found, back;
    for (std::size_t at = 0; at < text.size(); at += found.back()) found.push_back(ClusterFrom(text, at));
    for (std::size_t at = text.size(); at > 0; at -= back.front()) back.insert(back.begin(), ClusterBefore(text, at));
    CHECK(found == back);
    return found;
  };
  using Lengths = std::vector<std::size_t>;
  test::UseUtf8Locale();
  CHECK(lengths(L"abc") == Lengths{1, 1, 1});
  CHECK(lengths(L"e\u0301x") == Lengths{2, 1});
  CHECK(lengths(L"\U0001f468\u200d\U0001f469\u200d\U0001f467x") == Lengths{5, 1});  // a family
  CHECK(lengths(L"\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7") == Lengths{2, 2});     // two flags
  CHECK(lengths(L"\U0001f44d\U0001f3fd\u2764\ufe0f") == Lengths{2, 2});             // a skin tone, a red heart
  CHECK(lengths(L"1\ufe0f\u20e3") == Lengths{3});                                   // a keycap
  CHECK(lengths(L"\U0001f3f4\U000e0067\U000e0062\U000e007f!") == Lengths{4, 1});    // a flag of tags
  CHECK(lengths(L"\n\u0301a\n\nb") == Lengths{1, 1, 1, 1, 1, 1});                   // no cluster crosses a line
  CHECK(lengths(L"a\u200bb\u202ec") == Lengths{1, 1, 1, 1, 1});                     // invisible marks
}

}  // namespace reprise
