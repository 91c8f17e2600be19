#include "base/text.h"
#include "mcp/channel.h"
#include "support/test.h"

namespace reprise::last_words_test {

TEST_CASE("LastWords: the lines with the reason, for every runtime", "[mcp]") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},
      {"first words\nlast words\n", "last words"},
      {"node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module '/srv/index.js'\n"
       "    at Module._resolveFilename (node:internal/modules/cjs/loader:1225:15)\n    at "
       "node:internal/main/run_main:36 {\n"
       "  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v26.10.0\n",
       "Error: Cannot find module '/srv/index.js'"},
      {"/srv/a.js:3\nthrow new TypeError('no key');\n^\n\nTypeError [ERR_KEY]: no key\nset KEY first\n    at a "
       "(/srv/a.js:3:7)\n\n"
       "Node.js v20.1.0",
       "TypeError [ERR_KEY]: no key | set KEY first"},
      {"Starting\nTraceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    import nothing\n"
       "ModuleNotFoundError: No module named 'nothing'\n",
       "ModuleNotFoundError: No module named 'nothing'"},
      {"thread 'main' panicked at src/main.rs:2:5:\nno configuration\nnote: run with `RUST_BACKTRACE=1`\n",
       "thread 'main' panicked at src/main.rs:2:5: | no configuration"},
      {"panic: no token\n\ngoroutine 1 [running]:\nmain.main()\n\t/a.go:4 +0x18\nexit status 2\n",
       "panic: no token | main.main()"},
      {"Exception in thread \"main\" java.lang.RuntimeException: outer\n\tat A.main(A.java:3)\n"
       "Caused by: java.io.IOException: no file\n\tat A.b(A.java:9)\n",
       "Caused by: java.io.IOException: no file"},
      {"npm error code E404\nnpm error 404 Not Found - GET https://registry.test/none\nnpm error\n"
       "npm error A complete log of this run can be found in: /root/x.log\n",
       "npm error code E404 | npm error 404 Not Found - GET https://registry.test/none"},
      {"sh: 1: serve: not found", "sh: 1: serve: not found"},
      {"Error: cache miss\nusing none\ncannot open /etc/x\n", "Error: cache miss | using none | cannot open /etc/x"},
      {"Node.js v26.10.0\n", "Node.js v26.10.0"},
      {"    \n\t\n", ""}};
  for (const auto& [errors, words] : cases) {
    INFO(errors);
    CHECK(LastWords(errors) == words);
  }
}

TEST_CASE("LastWords: bounded, without control characters, valid UTF-8", "[mcp]") {
  const std::string words = LastWords("Error: \xff\x1b[31m" + std::string(5000, 'x'));
  CHECK(IsUtf8(words));
  CHECK(words.size() < 700);
  CHECK(words.find('\x1b') == std::string::npos);
}

}  // namespace reprise::last_words_test
