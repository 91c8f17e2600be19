#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// Spans and metrics of runs, in the sense of OpenTelemetry. Code opens a span for an operation and lets it end; a
// Telemetry decides what to do with it. Without one, spans are empty, and each call on them costs one comparison with
// null.
//
//   Span request = round.Child("chat gpt-4o", SpanKind::kClient);
//   request.Set("gen_ai.operation.name", "chat");
//   if (!response) request.Fail(response.error().reason);
//   request.End();  // or its destructor
namespace reprise {

// Identifies a span across processes (W3C Trace Context).
struct TraceContext {
  std::array<std::uint8_t, 16> trace_id{};
  std::array<std::uint8_t, 8> span_id{};
  bool sampled = false;
  std::string state{};  // "tracestate", passed on unchanged
  // False: not traced.
  bool is_valid() const { return trace_id != decltype(trace_id){} && span_id != decltype(span_id){}; }
  bool operator==(const TraceContext&) const = default;
};

// "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"; empty if the context is not valid.
std::string FormatTraceparent(const TraceContext& context);
// nullopt if `text` is malformed. Versions after 00 may have additional fields.
std::optional<TraceContext> ParseTraceparent(std::string_view text);

enum class SpanKind { kInternal, kClient };

// Strings are valid UTF-8.
using AttributeValue = std::variant<std::string, std::int64_t, double, bool, std::vector<std::string>>;
struct Attribute {
  std::string_view key;  // of static lifetime
  AttributeValue value;
  auto operator<=>(const Attribute&) const = default;
};
inline constexpr std::size_t kMaxSpanContent = 64 * 1024;  // bytes of one attribute with content

// A finished span.
struct SpanRecord {
  TraceContext context;
  std::array<std::uint8_t, 8> parent_id{};  // zero: the first of its trace
  bool parent_is_remote = false;            // the parent belongs to another process
  std::string name;
  SpanKind kind = SpanKind::kInternal;
  std::chrono::nanoseconds began{}, ended{};  // since 1970; the difference is that of a monotonic clock
  std::vector<Attribute> attributes;
  std::vector<TraceContext> links{};
  bool failed = false;         // error.type says why
  std::string failure_text{};  // the reason for people
};

// A number or a distribution, with labels that distinguish it from others of its name.
struct MetricPoint {
  std::vector<Attribute> labels{};
  double value = 0;  // kHistogram: the sum
  std::uint64_t count = 0;
  std::vector<std::uint64_t> buckets{};  // one more than bounds; not cumulative
};
struct Metric {
  enum class Type { kCounter, kGauge, kHistogram };
  std::string_view name{};  // OpenTelemetry's form: "reprise.runs.started"
  Type type = Type::kCounter;
  std::string_view unit{};  // "s", "{token}"
  std::string_view help{};
  std::vector<double> bounds{};  // kHistogram
  std::vector<MetricPoint> points{};
};

// The destination of spans and metrics. Thread-safe. Never blocks callers: data beyond its capacity is dropped and
// counted. Must outlive every span that it has made.
class Telemetry {
 public:
  virtual ~Telemetry() = default;
  // The context of a new span beneath `parent` (not valid: of a new trace), and whether it is exported. Not valid if
  // tracing is off: the span then counts in metrics only.
  virtual TraceContext NewContext(const TraceContext& parent) = 0;
  virtual void Ended(SpanRecord span) noexcept = 0;
  // Whether spans may hold text of people, models and tools.
  virtual bool takes_content() const = 0;
  // Whether model requests carry the context of their span.
  virtual bool tells_providers() const = 0;
  // Adds the counts so far.
  virtual void Collect(std::vector<Metric>& metrics) const = 0;
};

// A timed operation. A value: its owner ends it, by End or destruction. Used by one thread at a time, except that any
// number of threads may call Child, context and takes_content. May move between threads, as a coroutine does.
class Span {
 public:
  Span() = default;  // empty: records nothing
  // The first span of this process, beneath `parent` if that is valid. `telemetry` may be null.
  static Span Begin(Telemetry* telemetry, std::string name, const TraceContext& parent);
  Span(Span&&) noexcept = default;
  Span& operator=(Span&&) noexcept;
  ~Span() {
    if (state_) End();
  }

  explicit operator bool() const { return state_ != nullptr; }
  // Empty if this span is.
  Span Child(std::string name, SpanKind kind = SpanKind::kInternal) const;
  // Not valid if this span is empty, or tracing is off.
  const TraceContext& context() const;
  bool takes_content() const;
  bool tells_providers() const;

  void Set(std::string_view key, AttributeValue value);
  // Links a related span that is not the parent. No effect if `other` is not valid.
  void Link(const TraceContext& other);
  // Text of people, models or tools: kept only if takes_content(), and cut at kMaxSpanContent.
  void SetContent(std::string_view key, std::string_view text);
  // `type` is one of few words (error.type); `text` may be anything, and is treated as content.
  void Fail(std::string_view type, std::string_view text = {});
  // Ends the measured duration; attributes may still follow.
  void Stop();
  void End();

 private:
  struct State;
  struct Deleter {
    void operator()(State* state) const noexcept;
  };
  static Span Make(Telemetry& telemetry, std::string name, SpanKind kind, const TraceContext& parent,
                   const State* beneath);
  std::unique_ptr<State, Deleter> state_;
};

}  // namespace reprise
