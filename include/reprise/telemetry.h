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

// What a run tells those who watch it from outside: spans and metrics in the sense of OpenTelemetry. Whoever does
// something opens a span and lets it end; what becomes of it is up to a Telemetry. Without one, spans are empty, and
// each call on them costs one comparison with null.
//
//   Span request = round.Child("chat gpt-4o", SpanKind::kClient);
//   request.Set("gen_ai.operation.name", "chat");
//   if (!response) request.Fail(response.error().reason);
//   request.End();  // or its destructor
namespace reprise {

// Names a span across processes (W3C Trace Context).
struct TraceContext {
  std::array<std::uint8_t, 16> trace_id{};
  std::array<std::uint8_t, 8> span_id{};
  bool sampled = false;
  std::string state{};  // "tracestate", passed on as it came
  // False: nothing is traced.
  bool is_valid() const { return trace_id != decltype(trace_id){} && span_id != decltype(span_id){}; }
  bool operator==(const TraceContext&) const = default;
};

// "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"; empty for a context that is not valid.
std::string FormatTraceparent(const TraceContext& context);
// nullopt for what is none. Versions after 00 may have more behind it.
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

// A span as it was when it ended.
struct SpanRecord {
  TraceContext context;
  std::array<std::uint8_t, 8> parent_id{};  // zero: the first of its trace
  bool parent_is_remote = false;            // and was told by another process
  std::string name;
  SpanKind kind = SpanKind::kInternal;
  std::chrono::nanoseconds began{}, ended{};  // since 1970; the difference is that of a monotonic clock
  std::vector<Attribute> attributes;
  std::vector<TraceContext> links{};
  bool failed = false;         // error.type says why
  std::string failure_text{};  // and this, for people
};

// A number, or a distribution, with what tells it from others of its name.
struct MetricPoint {
  std::vector<Attribute> labels{};
  double value = 0;  // kHistogram: the sum
  std::uint64_t count = 0;
  std::vector<std::uint64_t> buckets{};  // one more than bounds; not cumulative
};
struct Metric {
  enum class Type { kCounter, kGauge, kHistogram };
  std::string_view name{};  // as OpenTelemetry writes it: "reprise.runs.started"
  Type type = Type::kCounter;
  std::string_view unit{};  // "s", "{token}"
  std::string_view help{};
  std::vector<double> bounds{};  // kHistogram
  std::vector<MetricPoint> points{};
};

// Where spans and metrics go. Thread-safe, and never in the way of who calls it: nothing blocks, what there is no room
// for is dropped and counted. Must outlive every span that it has made.
class Telemetry {
 public:
  virtual ~Telemetry() = default;
  // The name of a new span beneath `parent` (not valid: of a new trace), and whether it is exported. Not valid if
  // nothing is traced: the span counts in metrics only.
  virtual TraceContext NewContext(const TraceContext& parent) = 0;
  virtual void Ended(SpanRecord span) noexcept = 0;
  // Whether spans may have what people, models and tools say.
  virtual bool takes_content() const = 0;
  // Whether model providers are told which span their request belongs to.
  virtual bool tells_providers() const = 0;
  // Adds what has been counted so far.
  virtual void Collect(std::vector<Metric>& metrics) const = 0;
};

// Something that takes time. A value: whoever has it ends it, by End or by letting it go. Used by one thread at a time,
// but for Child, context and takes_content, which any number may call meanwhile. Moves from thread to thread with what
// it is a part of, as a coroutine does.
class Span {
 public:
  Span() = default;  // empty: records nothing
  // The first of this process, beneath `parent` if that is valid. `telemetry` may be null.
  static Span Begin(Telemetry* telemetry, std::string name, const TraceContext& parent);
  Span(Span&&) noexcept = default;
  Span& operator=(Span&&) noexcept;
  ~Span() {
    if (state_) End();
  }

  explicit operator bool() const { return state_ != nullptr; }
  // Empty if this is.
  Span Child(std::string name, SpanKind kind = SpanKind::kInternal) const;
  // Not valid if this is empty, or nothing is traced.
  const TraceContext& context() const;
  bool takes_content() const;
  bool tells_providers() const;

  void Set(std::string_view key, AttributeValue value);
  // It has to do with that span, which is not its parent. Nothing, if that is not valid.
  void Link(const TraceContext& other);
  // What people, models or tools have said: kept only if that is wanted, and cut where it is very long.
  void SetContent(std::string_view key, std::string_view text);
  // `type` is a word of few (error.type), `text` may hold anything, and is kept as content is.
  void Fail(std::string_view type, std::string_view text = {});
  // What it tells the duration of is over; what it has led to can still be told.
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
