#include "app/local_models.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <latch>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string_view>
#include <utility>

#include "app/options.h"
#include "app/trust.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "model/model_listing.h"
#include "net/curl_transport.h"

namespace reprise {
namespace {

constexpr std::chrono::milliseconds kLookTimeout{300};
constexpr std::size_t kMostListed = 1 << 20, kShownModels = 5;

// A program, and where it usually listens. `owner`: its word for "owned_by".
struct Place {
  std::string_view provider, program, owner;
  int port;
};
constexpr std::array kUsualPlaces = {
    Place{"ollama", "Ollama", "library", 11434}, Place{"llama", "llama.cpp", "llamacpp", 8080},
    Place{"llama", "llama.cpp", "llamacpp", 9931}, Place{"lmstudio", "LM Studio", "organization_owner", 1234},
    Place{"vllm", "vLLM", "vllm", 8000}};

std::vector<Place> PlacesToAsk(const Environment& environment) {
  std::vector<Place> places(kUsualPlaces.begin(), kUsualPlaces.end());
  const auto chosen = environment("REPRISE_LOCAL_PORTS");
  if (!chosen) return places;
  std::string_view rest = *chosen;
  for (Place& place : places) {
    const std::size_t end = std::min(rest.size(), rest.find(','));
    place.port = ParseNumber<int>(rest.substr(0, end)).value_or(0);
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  return places;
}

std::string UrlOf(const Place& place) { return "http://127.0.0.1:" + std::to_string(place.port) + "/v1"; }

bool IsConfigured(const Place& place, const Options& options) {
  constexpr std::array<std::string_view, 3> kNames = {"127.0.0.1", "localhost", "[::1]"};
  return std::ranges::any_of(options.providers, [&](const ProviderOptions& provider) {
    return std::ranges::any_of(kNames, [&](std::string_view name) {
      const std::string url = "http://" + std::string(name) + ":" + std::to_string(place.port);
      return (provider.base_url + "/").starts_with(url + "/");
    });
  });
}

// One server's answer. Filled by the transport's thread.
class Listing final : public HttpResponseHandler {
 public:
  explicit Listing(const Place& place) : place_(place) {}

  const Place& place() const { return place_; }
  void OnHead(int status, const HttpHeaders&) override { is_good_ = status == 200; }
  bool OnData(std::string_view bytes) override {
    body_ += bytes;
    return is_good_ && body_.size() <= kMostListed;
  }
  void End(const Result<void>& end) { is_good_ = is_good_ && end && body_.size() <= kMostListed; }

  // Without models if this is no server of models, or is one of ours.
  LocalModelServer Read() const {
    LocalModelServer server{std::string(place_.provider), std::string(place_.program), UrlOf(place_), {}};
    const auto list = is_good_ ? ParseJson(body_) : Fail(ErrorCode::kUnavailable, "");
    if (!list || TextMember(*list, "object") != "list") return server;
    for (const Json& entry : MemberOf(*list, "data")) {
      const std::string owner = TextMember(entry, "owned_by");
      if (owner == "reprise") return server;
      for (const Place& place : kUsualPlaces) {
        if (owner == place.owner) std::tie(server.provider, server.program) = std::pair(place.provider, place.program);
      }
    }
    for (const ListedModel& model : ReadModelList(body_).value_or(std::vector<ListedModel>())) {
      // A model that only embeds texts cannot talk. "${" in a configuration stands for a variable.
      const bool is_usable = LowerCase(model.name).find("embed") == std::string::npos && !HasHidden(model.name) &&
                             model.name.find("${") == std::string::npos;
      if (is_usable) server.models.push_back(model.name);
    }
    return server;
  }

 private:
  const Place place_;
  bool is_good_ = false;
  std::string body_;
};

}  // namespace

std::vector<LocalModelServer> FindLocalModels(const Options& options, const Environment& environment) {
  constexpr int kMostPort = 65535;
  std::vector<Place> places = PlacesToAsk(environment);
  std::erase_if(places, [&](const Place& place) {
    return place.port < 1 || place.port > kMostPort || IsConfigured(place, options);
  });
  std::deque<Listing> listings(places.begin(), places.end());
  std::latch ended(static_cast<std::ptrdiff_t>(listings.size()));
  CurlTransport transport;  // goes first, so that its thread has left the latch
  for (Listing& listing : listings) {
    HttpRequest request;
    request.url = UrlOf(listing.place()) + "/models";
    request.total_timeout = kLookTimeout;
    transport.Send(std::move(request), listing, std::stop_token(), [&](const Result<void>& end) {
      listing.End(end);
      ended.count_down();
    });
  }
  ended.wait();
  std::vector<LocalModelServer> found;
  for (const Listing& listing : listings) {
    if (auto server = listing.Read(); !server.models.empty()) found.push_back(std::move(server));
  }
  return found;
}

std::string OfferOf(const LocalModelServer& server, const Options& options, const Environment& environment) {
  std::string names;
  for (std::size_t i = 0; i < std::min(kShownModels, server.models.size()); ++i) {
    names += (i == 0 ? "" : ", ") + server.models[i];
  }
  if (const std::size_t count = server.models.size(); count > kShownModels) {
    names += " and " + Counted(count - kShownModels, "more model");
  }
  const Json config = {{"model", server.provider + "/" + server.models.front()},
                       {"providers", {{server.provider, {{"type", "openai"}, {"base_url", server.base_url}}}}}};
  const auto folder = ConfigFolder(environment);
  const std::string file = !options.config_file.empty() ? options.config_file
                           : folder                     ? *folder + "/" + kDefaultConfigFile
                                                        : "the configuration";
  return server.program + " at " + server.base_url + " has " + names + "; to use it, put " + DumpJson(config) +
         " into " + file;
}

}  // namespace reprise
