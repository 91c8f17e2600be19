#include "terminal/next_step.h"

#include "base/terminal_text.h"

namespace reprise {
namespace {

// The place of a provider's key.
std::string KeyOf(std::string_view provider) {
  const std::string setting = "\"api_key\" of provider " + VisibleLine(provider) + " in the configuration";
  if (provider == "openai") return "OPENAI_API_KEY, or " + setting;
  if (provider == "anthropic") return "ANTHROPIC_API_KEY, or " + setting;
  return setting;
}

}  // namespace

std::string NextStep(std::string_view code, std::string_view model) {
  if (code == "provider_auth") {
    const std::string_view provider = model.substr(0, model.find('/'));
    return "the key is " + KeyOf(provider) +
           ": set it and start Reprise again, then /continue tries again; `reprise doctor` tests it";
  }
  if (code == "provider_context_length" || code == "context_length") {
    return "/compact MESSAGE sends a summary in place of what was said before; /undo takes the message back";
  }
  if (code == "provider_not_found")
    return "/model lists the models, and /model NAME chooses one; /continue tries again";
  return "/continue tries again";
}

}  // namespace reprise
