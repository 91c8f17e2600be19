#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "app/factories.h"
#include "app/local_models.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/terminal_text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "client/server_access.h"
#include "doors/api/bodies.h"
#include "net/curl_transport.h"
#include "terminal/console.h"

namespace reprise {
namespace {

// In the form of GET /models. Asks the providers, for three seconds at most in all.
Result<Json> ConfiguredModels(const Options& options) {
  CurlTransport transport;
  const auto directory = TRY(MakeModelDirectory(transport, options));
  return ModelList(*directory, options.prices, options.audio.transcription, options.audio.speech, options.audio.talk);
}

std::string Abilities(const Json& model) {
  std::string text;
  for (const auto& [name, has] : MemberOf(model, "abilities").items()) {
    if (has == true) text += (text.empty() ? "  " : ", ") + VisibleLine(name);
  }
  return text;
}

std::string Prices(const Json& model) {
  const Json& prices = MemberOf(model, "prices");
  if (!prices.contains("input") || !prices.contains("output")) return {};
  const auto amount = [&](const char* of) {
    std::string text = DumpJson(prices[of]);
    return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
  };
  return "  " + amount("input") + "/" + amount("output") + " per million";
}

void PrintModels(const Json& listed) {
  const Json& models = ListedIn(listed, "models");
  std::size_t width = 0;
  for (const Json& model : models) width = std::max(width, TextMember(model, "name").size());
  for (const Json& model : models) {
    const std::string name = TextMember(model, "name");
    std::string text = VisibleLine(name), notes;
    const auto window = model.find("context_window");
    if (window != model.end()) notes = "  " + DumpJson(*window) + " tokens";
    notes += Abilities(model) + Prices(model);
    if (name == TextMember(listed, "default")) notes += "  (default)";
    if (!notes.empty()) text.resize(std::max(text.size(), width), ' ');
    Print(text + notes + "\n");
  }
}

}  // namespace

Exited RunModels(const CommandLine& line, const Environment& environment) {
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  auto server = OpenServer(line.url, options, environment);
  // If something else uses the folder, the configuration can still be read.
  if (!server && server.error().Is(Reason::kStoreLocked)) server = nullptr;
  if (!server) return ComplainOfUse(server.error());
  SetLogLevel(LogLevel::kError);
  auto models = *server ? (*server)->Call("GET", "/models") : ConfiguredModels(options);
  if (!models && *server) return Complain(NotAnswering(models.error(), **server));
  if (!models) return ComplainOfUse(models.error());
  if (line.json) {
    PrintDocument(*models);
  } else {
    PrintModels(*models);
    if (line.url.empty() && !environment("REPRISE_URL")) {
      for (const LocalModelServer& found : FindLocalModels(options, environment)) {
        Warn(OfferOf(found, options, environment));  // stdout lists only what can be used
      }
    }
  }
  return kExitOk;
}

}  // namespace reprise
