#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/options.h"
#include "base/text.h"
#include "base/utf8.h"
#include "wire/message.h"

namespace reprise {
namespace {

std::string UrlUnder(std::string_view base, std::string_view path) {
  while (base.ends_with('/')) base.remove_suffix(1);
  return std::string(base) + std::string(path);
}

bool IsUrl(std::string_view text) {
  const bool has_scheme = text.starts_with("http://") || text.starts_with("https://");
  return has_scheme && std::ranges::none_of(text, [](unsigned char c) { return c <= ' ' || c == 0x7f; });
}

class Variables {
 public:
  Variables(TelemetryOptions& options, const Environment& environment) : options_(options), environment_(environment) {}

  void Apply() {
    if (const auto text = Read("OTEL_SDK_DISABLED")) options_.disabled = EqualsIgnoringCase(*text, "true");
    if (const auto url = ReadUrl("OTEL_EXPORTER_OTLP_ENDPOINT")) SetOtlpEndpoint(options_, *url);
    ApplyTo(options_.traces, "TRACES");
    ApplyTo(options_.metrics, "METRICS");
    if (const auto text = Read("OTEL_RESOURCE_ATTRIBUTES")) {
      if (auto pairs = Pairs(*text)) {
        for (auto& [key, value] : *pairs) {
          if (key == "service.name") options_.service_name = value;
          options_.resource.emplace_back(std::move(key), std::move(value));
        }
      } else {
        Complain("OTEL_RESOURCE_ATTRIBUTES", "must be key=value pairs, separated by commas, percent-encoded");
      }
    }
    if (const auto name = Read("OTEL_SERVICE_NAME")) options_.service_name = *name;
    ApplySampler();
    ApplyMilliseconds("OTEL_BSP_SCHEDULE_DELAY", options_.schedule_delay);
    ApplyMilliseconds("OTEL_BSP_EXPORT_TIMEOUT", options_.export_timeout);
    ApplyMilliseconds("OTEL_METRIC_EXPORT_INTERVAL", options_.metrics_interval);
    ApplyCount("OTEL_BSP_MAX_QUEUE_SIZE", options_.max_queue);
    ApplyCount("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", options_.max_batch);
    options_.max_batch = std::min(options_.max_batch, options_.max_queue);
  }

 private:
  std::optional<std::string> Read(const std::string& name) const { return environment_(name); }
  // The variable of one signal, else that of all.
  std::optional<std::pair<std::string, std::string>> ReadFor(std::string_view signal, const std::string& what) const {
    for (const std::string& name :
         {"OTEL_EXPORTER_OTLP_" + std::string(signal) + "_" + what, "OTEL_EXPORTER_OTLP_" + what}) {
      if (auto text = Read(name)) return std::pair(name, *std::move(text));
    }
    return std::nullopt;
  }
  void Complain(const std::string& name, const std::string& why) {
    std::string problem = "the variable " + name + " " + why;
    auto& problems = options_.problems;
    if (std::ranges::find(problems, problem) == problems.end()) problems.push_back(std::move(problem));
  }

  std::optional<std::string> ReadUrl(const std::string& name) {
    auto text = Read(name);
    if (!text || IsUrl(*text)) return text;
    Complain(name, "must be a URL that begins with http:// or https://");
    return std::nullopt;
  }

  void ApplyTo(OtlpEndpoint& endpoint, const std::string& signal) {
    if (auto url = ReadUrl("OTEL_EXPORTER_OTLP_" + signal + "_ENDPOINT")) endpoint.url = *std::move(url);
    const std::string exporter = "OTEL_" + signal + "_EXPORTER";
    if (const auto chosen = Read(exporter); chosen == "none") {
      endpoint.url.clear();
    } else if (chosen && chosen != "otlp") {
      Complain(exporter, "must be otlp or none; GET /metrics serves Prometheus whatever it says");
    }
    if (const auto protocol = ReadFor(signal, "PROTOCOL"); protocol && protocol->second != "http/protobuf") {
      if (!endpoint.url.empty()) {
        Complain(protocol->first,
                 "must be http/protobuf, which is all that is spoken here (collectors take it at port "
                 "4318): what it is about is not sent");
      }
      endpoint.url.clear();
    }
    if (const auto headers = ReadFor(signal, "HEADERS")) {
      if (auto pairs = Pairs(headers->second)) {
        for (auto& pair : *pairs) endpoint.headers.push_back(std::move(pair));
      } else {
        Complain(headers->first, "must be name=value pairs, separated by commas, percent-encoded");
      }
    }
    if (const auto timeout = ReadFor(signal, "TIMEOUT")) ApplyMilliseconds(timeout->first, endpoint.timeout);
  }

  // Parses W3C Baggage: "a=b, c=d%20e". Refuses values that would forge a header.
  static std::optional<std::vector<std::pair<std::string, std::string>>> Pairs(std::string_view text) {
    std::vector<std::pair<std::string, std::string>> pairs;
    const bool is_wrong = AnyPart(text, ',', [&](std::string_view part) {
      part = TrimBlanks(part);
      if (part.empty()) return false;
      const std::size_t equals = part.find('=');
      if (equals == 0 || equals == std::string_view::npos) return true;
      const auto key = PercentDecoded(TrimBlanks(part.substr(0, equals)));
      const auto value = PercentDecoded(TrimBlanks(part.substr(equals + 1)));
      const auto is_plain = [](const std::string& decoded) {
        return IsUtf8(decoded) && std::ranges::none_of(decoded, [](unsigned char c) { return c < ' ' || c == 0x7f; });
      };
      if (!key || !value || !is_plain(*key) || !is_plain(*value)) return true;
      pairs.emplace_back(*key, *value);
      return false;
    });
    if (is_wrong) return std::nullopt;
    return pairs;
  }

  std::optional<std::int64_t> Number(const std::string& name) {
    const auto text = Read(name);
    if (!text) return std::nullopt;
    const auto value = ParseNumber<std::int64_t>(*text);
    constexpr std::int64_t kMost = 86'400'000;
    if (value && *value >= 1 && *value <= kMost) return value;
    Complain(name, "must be a whole number from 1 to " + std::to_string(kMost));
    return std::nullopt;
  }
  void ApplyMilliseconds(const std::string& name, std::chrono::milliseconds& target) {
    if (const auto value = Number(name)) target = std::chrono::milliseconds(*value);
  }
  void ApplyCount(const std::string& name, std::size_t& target) {
    constexpr std::int64_t kMost = 100'000;
    if (const auto value = Number(name)) target = static_cast<std::size_t>(std::min(*value, kMost));
  }

  void ApplySampler() {
    const auto text = Read("OTEL_TRACES_SAMPLER");
    if (!text) return;
    constexpr std::string_view kParent = "parentbased_";
    std::string_view name = *text;
    SamplerOptions sampler{.follows_parent = name.starts_with(kParent)};
    if (sampler.follows_parent) name.remove_prefix(kParent.size());
    if (name == "always_off") {
      sampler.ratio = 0;
    } else if (name == "traceidratio") {
      sampler.ratio = Ratio();
    } else if (name != "always_on") {
      return Complain("OTEL_TRACES_SAMPLER",
                      "must be always_on, always_off or traceidratio, or one of them behind "
                      "parentbased_");
    }
    options_.sampler = sampler;
  }
  double Ratio() {
    const auto text = Read("OTEL_TRACES_SAMPLER_ARG");
    if (!text) return 1;
    const auto ratio = ParseNumber<double>(*text);
    if (ratio && *ratio >= 0 && *ratio <= 1) return *ratio;
    Complain("OTEL_TRACES_SAMPLER_ARG", "must be a number from 0 to 1");
    return 1;
  }

  TelemetryOptions& options_;
  const Environment& environment_;
};

}  // namespace

void SetOtlpEndpoint(TelemetryOptions& options, std::string_view base_url) {
  options.traces.url = UrlUnder(base_url, "/v1/traces");
  options.metrics.url = UrlUnder(base_url, "/v1/metrics");
}

void ApplyTelemetryVariables(TelemetryOptions& options, const Environment& environment) {
  Variables(options, environment).Apply();
}

}  // namespace reprise
