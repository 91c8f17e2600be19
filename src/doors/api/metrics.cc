#include "doors/api/metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

namespace reprise {
namespace {

using Type = Metric::Type;

template <typename Number>
Metric One(std::string_view name, Type type, std::string_view help, Number value) {
  return {.name = name, .type = type, .help = help, .points = {{.value = static_cast<double>(value)}}};
}

MetricPoint Labelled(std::string_view label, std::string value, std::uint64_t count) {
  return {.labels = {{label, std::move(value)}}, .value = static_cast<double>(count)};
}

std::string NumberText(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return std::to_string(static_cast<std::int64_t>(value));
  char text[32];
  const auto written = std::to_chars(std::begin(text), std::end(text), value);
  return std::string(text, written.ptr);
}

std::string PrometheusName(const Metric& metric) {
  std::string name(metric.name);
  std::replace(name.begin(), name.end(), '.', '_');
  // A unit in braces is only an annotation.
  if (metric.unit == "s") name += "_seconds";
  if (metric.type == Type::kCounter && !name.ends_with("_total")) name += "_total";
  return name;
}

std::string_view TypeName(Type type) {
  switch (type) {
    case Type::kCounter:
      return "counter";
    case Type::kGauge:
      return "gauge";
    case Type::kHistogram:
      return "histogram";
  }
  return "untyped";
}

std::string LabelText(const AttributeValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? *text : std::string();
}

void AppendLabel(std::string& out, std::string_view key, std::string_view value) {
  out += out.empty() ? "{" : ",";
  for (const char c : key) out += c == '.' ? '_' : c;
  out += "=\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    c == '\n' ? out += "\\n" : out += c;
  }
  out += '"';
}

std::string LabelsOf(const MetricPoint& point) {
  std::string labels;
  for (const Attribute& label : point.labels) AppendLabel(labels, label.key, LabelText(label.value));
  return labels;
}

void AppendSample(std::string& out, std::string_view name, std::string_view suffix, std::string labels, double value) {
  if (!labels.empty()) labels += '}';
  out.append(name).append(suffix).append(labels).append(" ").append(NumberText(value)).append("\n");
}

void AppendDistribution(std::string& out, const std::string& name, const Metric& metric, const MetricPoint& point) {
  const std::string labels = LabelsOf(point);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < point.buckets.size(); ++i) {
    below += point.buckets[i];
    std::string with_bound = labels;
    AppendLabel(with_bound, "le", i < metric.bounds.size() ? NumberText(metric.bounds[i]) : "+Inf");
    AppendSample(out, name, "_bucket", std::move(with_bound), static_cast<double>(below));
  }
  AppendSample(out, name, "_sum", labels, point.value);
  AppendSample(out, name, "_count", labels, static_cast<double>(point.count));
}

}  // namespace

std::vector<Metric> CollectMetrics(const Engine::Counters& runs, const Telemetry* telemetry, const HttpMetrics& http) {
  std::vector<Metric> metrics{
      One("reprise.active_runs", Type::kGauge, "Interactions that run.", runs.active_runs),
      One("reprise.waiting_approvals", Type::kGauge, "Approvals that wait for an answer.", runs.waiting_approvals),
      One("reprise.runs.started", Type::kCounter, "Interactions started.", runs.started),
      {.name = "reprise.runs.finished",
       .help = "Interactions finished.",
       .points = {Labelled("status", "COMPLETED", runs.completed), Labelled("status", "FAILED", runs.failed),
                  Labelled("status", "CANCELLED", runs.cancelled)}},
      One("reprise.http.connections", Type::kGauge, "Open connections.", http.connections.load()),
      One("reprise.http.connections_total", Type::kCounter, "Connections accepted.", http.connections_total.load()),
      One("reprise.http.streams", Type::kGauge, "Open event streams.", http.streams.load()),
      One("reprise.http.streams_total", Type::kCounter, "Event streams begun.", http.streams_total.load()),
      One("reprise.http.streams_lost", Type::kCounter, "Event streams whose client went away or did not read.",
          http.streams_failed.load()),
      One("reprise.http.requests", Type::kCounter, "Requests received.", http.requests_total.load()),
      {.name = "reprise.http.responses",
       .help = "Responses by class.",
       .points = {Labelled("class", "2xx", http.responses_2xx), Labelled("class", "4xx", http.responses_4xx),
                  Labelled("class", "5xx", http.responses_5xx)}}};
  if (telemetry) telemetry->Collect(metrics);
  return metrics;
}

std::string PrometheusText(const std::vector<Metric>& metrics) {
  std::string text;
  for (const Metric& metric : metrics) {
    const std::string name = PrometheusName(metric);
    text.append("# HELP ").append(name).append(" ").append(metric.help).append("\n");
    text.append("# TYPE ").append(name).append(" ").append(TypeName(metric.type)).append("\n");
    for (const MetricPoint& point : metric.points) {
      if (metric.type == Type::kHistogram) {
        AppendDistribution(text, name, metric, point);
      } else {
        AppendSample(text, name, "", LabelsOf(point), point.value);
      }
    }
  }
  return text;
}

}  // namespace reprise
