#include <regex>
#include <set>
#include <string>

#include "mcp/mcp_tool.h"
#include "support/test.h"

namespace reprise::tool_name_test {

TEST_CASE("McpToolName: plain names are joined", "[mcp]") {
  CHECK(McpToolName("files", "read_file") == "files__read_file");
  CHECK(McpToolName("a", "_b") == "a___b");
}

TEST_CASE("McpToolName: every pair has its own valid name", "[mcp]") {
  const std::regex valid("^[a-zA-Z0-9_-]{1,64}$");
  const std::string long_name(300, 'x');
  std::set<std::string> names;
  std::size_t pairs = 0;
  for (const std::string& server : {std::string("a"), std::string("a_"), std::string("a__b"), std::string("a.b"),
                                    std::string("a_b"), std::string(64, 's')}) {
    for (const std::string& tool :
         {std::string("c"), std::string("_c"), std::string("b__c"), std::string("c d"), std::string("c.d"),
          std::string("c_d"), std::string(), std::string("ü"), long_name, long_name + "y"}) {
      const std::string name = McpToolName(server, tool);
      INFO(server + " " + tool + " " + name);
      CHECK(std::regex_match(name, valid));
      names.insert(name);
      ++pairs;
    }
  }
  CHECK(names.size() == pairs);
}

}  // namespace reprise::tool_name_test
