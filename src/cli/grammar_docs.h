#pragma once

#include "base/json.h"

namespace CLI {
class App;
}

namespace reprise {

// The commands of `app`, each in front of its own, for scripts/package.d/docs/make, which makes man pages and
// completions of it: [{"name": "keys init", "help", "flags": [{"names": ["-o", "--output"], "value": "FILE", "help",
// "required", "repeated", "choices", "variable"}], "arguments" (likewise), "examples": [{"line", "what"}]}]. `app`
// itself has the empty name. What the grammar hides is left out.
Json DescribeGrammar(const CLI::App& app);

// The same of the grammar that ParseCommandLine has.
Json DescribeCommands();

}  // namespace reprise
