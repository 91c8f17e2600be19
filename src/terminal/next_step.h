#pragma once

#include <string>
#include <string_view>

namespace reprise {

// A person's next step after a run has failed with this error code, as a sentence for the client's commands. `model` is
// the run's: "openai/gpt-4o".
std::string NextStep(std::string_view code, std::string_view model);

}  // namespace reprise
