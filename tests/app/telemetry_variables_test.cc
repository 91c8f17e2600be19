#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/options.h"
#include "support/test.h"

namespace reprise::telemetry_variables_test {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

TelemetryOptions Applied(const std::map<std::string, std::string>& variables, TelemetryOptions options = {}) {
  ApplyTelemetryVariables(options, [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
  return options;
}

TEST_CASE("ApplyTelemetryVariables: without any nothing is sent", "[options]") {
  const TelemetryOptions options = Applied({});
  CHECK(options.traces.url.empty());
  CHECK(options.metrics.url.empty());
  CHECK_FALSE(options.disabled);
  CHECK(options.sampler.follows_parent);
  CHECK(options.sampler.ratio == 1);
}

TEST_CASE("ApplyTelemetryVariables: what is said of one signal beats what is said of all, and both beat the file",
          "[options]") {
  TelemetryOptions file;
  SetOtlpEndpoint(file, "http://file:4318/");
  CHECK(file.traces.url == "http://file:4318/v1/traces");
  const TelemetryOptions options = Applied({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://all/base"},
                                            {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://one/as-it-is"},
                                            {"OTEL_EXPORTER_OTLP_TIMEOUT", "500"},
                                            {"OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "700"},
                                            {"OTEL_EXPORTER_OTLP_HEADERS", "a=1, b = two%20words"},
                                            {"OTEL_EXPORTER_OTLP_METRICS_HEADERS", "c=3"}},
                                           file);
  CHECK(options.traces.url == "http://one/as-it-is");
  CHECK(options.metrics.url == "http://all/base/v1/metrics");
  CHECK(options.traces.timeout.count() == 500);
  CHECK(options.metrics.timeout.count() == 700);
  CHECK(options.traces.headers == Pairs{{"a", "1"}, {"b", "two words"}});
  CHECK(options.metrics.headers == Pairs{{"c", "3"}});
  CHECK(options.problems.empty());
  CHECK(Applied({{"OTEL_TRACES_EXPORTER", "none"}}, file).traces.url.empty());
}

TEST_CASE("ApplyTelemetryVariables: samplers", "[options]") {
  const auto sampler = [](const std::string& name, const std::string& argument = "0.25") {
    return Applied({{"OTEL_TRACES_SAMPLER", name}, {"OTEL_TRACES_SAMPLER_ARG", argument}}).sampler;
  };
  CHECK(sampler("always_on").ratio == 1);
  CHECK_FALSE(sampler("always_on").follows_parent);
  CHECK(sampler("always_off").ratio == 0);
  CHECK(sampler("traceidratio").ratio == 0.25);
  CHECK(sampler("parentbased_traceidratio").ratio == 0.25);
  CHECK(sampler("parentbased_traceidratio").follows_parent);
  CHECK(sampler("parentbased_always_off").ratio == 0);
  CHECK(sampler("traceidratio", "2").ratio == 1);
}

TEST_CASE("ApplyTelemetryVariables: what would forge a header, or is none, is not taken", "[options]") {
  for (const char* headers : {"a=b%0d%0ax: y", "no-equals", "=b", "a=%zz", "a=%ff"}) {
    CAPTURE(headers);
    const TelemetryOptions options = Applied({{"OTEL_EXPORTER_OTLP_HEADERS", headers}});
    CHECK(options.traces.headers.empty());
    CHECK(options.problems.size() == 1);
    CHECK(options.problems[0].find(headers) == std::string::npos);  // it may be a secret
  }
  CHECK(Applied({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://x/ y"}}).problems.size() == 1);
}

TEST_CASE("ApplyTelemetryVariables: a name beats that of the resource", "[options]") {
  CHECK(Applied({{"OTEL_RESOURCE_ATTRIBUTES", "service.name=one,a=b"}}).service_name == "one");
  const TelemetryOptions options =
      Applied({{"OTEL_RESOURCE_ATTRIBUTES", "service.name=one,a=b"}, {"OTEL_SERVICE_NAME", "two"}});
  CHECK(options.service_name == "two");
  CHECK(options.resource == Pairs{{"service.name", "one"}, {"a", "b"}});
}

}  // namespace
}  // namespace reprise::telemetry_variables_test
