#pragma once

#include <string>
#include <vector>

#include "base/system.h"
#include "reprise/options.h"

// Servers of models on this machine that the configuration does not name. They are offered, and never used unasked.

namespace reprise {

struct LocalModelServer {
  std::string provider;  // its name in the configuration that is proposed: "ollama"
  std::string program;   // "Ollama"
  std::string base_url;
  std::vector<std::string> models;  // at least one; UTF-8 without hidden characters
};

// Asks the usual ports of Ollama, llama.cpp, LM Studio and vLLM on 127.0.0.1 for their models, all at once and past any
// proxy. Takes a few milliseconds if nothing listens, and 300 at most. Leaves out ports of configured providers,
// Reprise itself, and answers that are late, larger than 1 MiB, redirects or no list. REPRISE_LOCAL_PORTS has other
// ports.
std::vector<LocalModelServer> FindLocalModels(const Options& options, const Environment& environment);

// A line for people: the server, some of its models, and the configuration that uses the first one. No secret.
std::string OfferOf(const LocalModelServer& server, const Options& options, const Environment& environment);

}  // namespace reprise
