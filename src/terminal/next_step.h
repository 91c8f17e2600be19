#pragma once

#include <string>
#include <string_view>

namespace reprise {

// What a person can do after a run has failed with this code of an error, in a sentence for the client's commands.
// `model` is the run's: "openai/gpt-4o".
std::string NextStep(std::string_view code, std::string_view model);

}  // namespace reprise
