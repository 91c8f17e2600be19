#pragma once

#include "base/json.h"

namespace CLI {
class App;
}

namespace reprise {

// The commands of `app`, parents before children, for scripts/package.d/docs/make, which makes man pages and
// completions of them: [{"name": "keys init", "help", "flags": [{"names": ["-o", "--output"], "value": "FILE", "help",
// "required", "repeated", "choices", "variable"}], "arguments" (likewise), "examples": [{"line", "what"}]}]. `app`
// itself has the empty name. Hidden options are left out.
Json DescribeGrammar(const CLI::App& app);

// The same for the grammar of ParseCommandLine.
Json DescribeCommands();

}  // namespace reprise
