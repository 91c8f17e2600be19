#include "model/web_search.h"

#include <string>

#include "support/test.h"

namespace reprise::test::web_search_test {

TEST_CASE("AddResult: takes only addresses that show where they lead", "[model]") {
  for (const char* url :
       {"http://a", "https://a.example/b?c=d#e", "HTTPS://A", "https://[::1]:8/", "https://\xC3\xA9.example/"}) {
    event::WebSearch search = SearchFor("x");
    AddResult(search, url, "t");
    INFO(url);
    CHECK((search.results.size() == 1 && search.omitted == 0));
  }
  for (const std::string& url :
       {std::string("javascript:alert(1)"), std::string("data:text/html,x"), std::string("ftp://a"), std::string("//a"),
        std::string("https://"), std::string("https:///a"), std::string("https://a@b"), std::string("https://a b"),
        std::string("https://a\n"), std::string("https://a\x1b[1m"), std::string("https://a\"b"),
        std::string("https://a<b"), std::string("https://a\xFF"), std::string("https://a\xE2\x80\xAE"),
        std::string("https://a\0b", 11), std::string(), "https://" + std::string(2000, 'a')}) {
    event::WebSearch search = SearchFor("x");
    AddResult(search, url, "t");
    INFO(url);
    CHECK((search.results.empty() && search.omitted == 1));
  }
}

TEST_CASE("AddResult: titles and queries become short lines", "[model]") {
  event::WebSearch search = SearchFor("a\nb\x1b" + std::string(100'000, 'x'));
  CHECK((search.query.starts_with("a b<U+001B>xxx") && search.query.size() == 500));
  AddResult(search, "https://a", "\xFF" + std::string(1'000'000, 'y'));
  AddResult(search, "https://b", std::string(1000, '\x1b'));
  CHECK((search.results[0].title.starts_with("\xEF\xBF\xBDyy") && search.results[0].title.size() == 202));
  CHECK(search.results[1].title.size() == 200);
  for (int i = 0; i < 50; ++i) AddResult(search, "https://c/" + std::to_string(i), "");
  for (int i = 0; i < 50; ++i) AddResult(search, "https://a", search.results[0].title.c_str());
  CHECK(search.results.size() == 20);
}

TEST_CASE("AddCitation: a limited number, each once, in order", "[model]") {
  std::vector<Citation> citations;
  AddCitation(citations, "https://a", "A", -5, -9);
  AddCitation(citations, "https://a", "A", 0, 0);
  AddCitation(citations, "javascript:x", "A", 0, 0);
  CHECK(citations == std::vector<Citation>{{{"https://a", "A"}, 0, 0}});
  for (int i = 0; i < 1000; ++i) AddCitation(citations, "https://a", "A", i, i + 1);
  CHECK(citations.size() == kMostCitations);
  CHECK(SourcesOf(citations).size() == 1);
}

}  // namespace reprise::test::web_search_test
