#include "telemetry/exporter.h"

#include <algorithm>
#include <new>

#include "base/logging.h"
#include "base/system.h"
#include "base/transport.h"

#define PROTOZERO_USE_VIEW std::string_view
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <variant>

namespace reprise {
namespace {

using protozero::pbf_writer;

constexpr std::string_view kScope = "reprise";
constexpr int kCumulative = 2;  // AggregationTemporality
// The semantic conventions that the names follow.
constexpr std::string_view kSchemaUrl = "https://opentelemetry.io/schemas/gen-ai/0.1.0";

template <typename Array>
std::string_view BytesOf(const Array& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// AnyValue
void WriteValue(pbf_writer out, const AttributeValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return out.add_string(1, *text);
  if (const auto* flag = std::get_if<bool>(&value)) return out.add_bool(2, *flag);
  if (const auto* number = std::get_if<std::int64_t>(&value)) return out.add_int64(3, *number);
  if (const auto* number = std::get_if<double>(&value)) return out.add_double(4, *number);
  std::string array;  // ArrayValue, which may be empty
  pbf_writer texts(array);
  for (const std::string& text : std::get<std::vector<std::string>>(value)) pbf_writer(texts, 1).add_string(1, text);
  out.add_message(5, array);
}

// KeyValue
void WriteAttribute(pbf_writer out, std::string_view key, const AttributeValue& value) {
  out.add_string(1, key);
  WriteValue(pbf_writer(out, 2), value);
}

std::uint64_t Nanoseconds(std::chrono::nanoseconds time) { return static_cast<std::uint64_t>(time.count()); }

void WriteSpan(pbf_writer out, const SpanRecord& span) {
  constexpr std::uint32_t kSampled = 1, kKnowsRemote = 0x100, kIsRemote = 0x200;  // SpanFlags
  constexpr int kInternal = 1, kClient = 3;                                       // SpanKind
  constexpr int kError = 2;                                                       // StatusCode
  out.add_bytes(1, BytesOf(span.context.trace_id));
  out.add_bytes(2, BytesOf(span.context.span_id));
  if (!span.context.state.empty()) out.add_string(3, span.context.state);
  if (span.parent_id != decltype(span.parent_id){}) out.add_bytes(4, BytesOf(span.parent_id));
  out.add_string(5, span.name);
  out.add_enum(6, span.kind == SpanKind::kClient ? kClient : kInternal);
  out.add_fixed64(7, Nanoseconds(span.began));
  out.add_fixed64(8, Nanoseconds(span.ended));
  for (const Attribute& attribute : span.attributes) WriteAttribute({out, 9}, attribute.key, attribute.value);
  for (const TraceContext& linked : span.links) {
    pbf_writer link(out, 13);
    link.add_bytes(1, BytesOf(linked.trace_id));
    link.add_bytes(2, BytesOf(linked.span_id));
    if (!linked.state.empty()) link.add_string(3, linked.state);
    link.add_fixed32(6, (linked.sampled ? kSampled : 0) | kKnowsRemote | kIsRemote);
  }
  if (span.failed) {
    pbf_writer status(out, 15);
    if (!span.failure_text.empty()) status.add_string(2, span.failure_text);
    status.add_enum(3, kError);
  }
  out.add_fixed32(16, kSampled | kKnowsRemote | (span.parent_is_remote ? kIsRemote : 0));
}

// NumberDataPoint
void WriteNumber(pbf_writer out, const MetricPoint& point) {
  out.add_sfixed64(6, static_cast<std::int64_t>(point.value));
  for (const Attribute& label : point.labels) WriteAttribute({out, 7}, label.key, label.value);
}

// HistogramDataPoint
void WriteDistribution(pbf_writer out, const Metric& metric, const MetricPoint& point) {
  out.add_fixed64(4, point.count);
  out.add_double(5, point.value);
  out.add_packed_fixed64(6, point.buckets.begin(), point.buckets.end());
  out.add_packed_double(7, metric.bounds.begin(), metric.bounds.end());
  for (const Attribute& label : point.labels) WriteAttribute({out, 9}, label.key, label.value);
}

void WriteMetric(pbf_writer out, const Metric& metric, std::chrono::nanoseconds began, std::chrono::nanoseconds now) {
  constexpr std::uint32_t kGauge = 5, kSum = 7, kHistogram = 9;
  out.add_string(1, metric.name);
  out.add_string(2, metric.help);
  if (!metric.unit.empty()) out.add_string(3, metric.unit);
  const bool is_histogram = metric.type == Metric::Type::kHistogram;
  const std::uint32_t field = is_histogram ? kHistogram : metric.type == Metric::Type::kCounter ? kSum : kGauge;
  pbf_writer data(out, field);
  for (const MetricPoint& each : metric.points) {
    pbf_writer point(data, 1);
    point.add_fixed64(2, Nanoseconds(began));
    point.add_fixed64(3, Nanoseconds(now));
    is_histogram ? WriteDistribution(std::move(point), metric, each) : WriteNumber(std::move(point), each);
  }
  if (field != kGauge) data.add_enum(2, kCumulative);
  if (field == kSum) data.add_bool(3, true);  // is_monotonic
}

// An Export...ServiceRequest with one Resource... that holds one Scope...
template <typename Write>
std::string Encode(const ResourceAttributes& resource, const Write& write) {
  std::string text;
  pbf_writer out(text), all(out, 1);
  {
    pbf_writer told(all, 1);  // Resource
    for (const auto& [key, value] : resource) WriteAttribute({told, 1}, key, value);
  }
  {
    pbf_writer scope(all, 2);
    pbf_writer(scope, 1).add_string(1, kScope);
    write(scope);
    scope.add_string(3, kSchemaUrl);
  }
  all.commit();
  return text;
}

}  // namespace

std::string EncodeSpans(const ResourceAttributes& resource, std::span<const SpanRecord> spans) {
  return Encode(resource, [&](pbf_writer& out) {
    for (const SpanRecord& span : spans) WriteSpan({out, 2}, span);
  });
}

std::string EncodeMetrics(const ResourceAttributes& resource, std::span<const Metric> metrics,
                          std::chrono::nanoseconds began, std::chrono::nanoseconds now) {
  return Encode(resource, [&](pbf_writer& out) {
    for (const Metric& metric : metrics) {
      if (!metric.points.empty()) WriteMetric({out, 2}, metric, began, now);
    }
  });
}

std::uint64_t RejectedCount(std::string_view response) try {
  protozero::pbf_reader answer(response);
  if (!answer.next(1, protozero::pbf_wire_type::length_delimited)) return 0;
  protozero::pbf_reader partial_success = answer.get_message();
  return partial_success.next(1, protozero::pbf_wire_type::varint) ? partial_success.get_uint64() : 0;
} catch (const protozero::exception&) {  // not protobuf
  return 0;
}

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxQueuedBytes = 32u << 20;
constexpr std::size_t kMaxResponse = 64u << 10;
constexpr milliseconds kShortestPause{100}, kFirstPause{1000}, kLongestPause{16'000};

std::chrono::nanoseconds WallNow() { return std::chrono::system_clock::now().time_since_epoch(); }

// The approximate memory of a span.
std::size_t SizeOf(const SpanRecord& span) {
  std::size_t bytes =
      sizeof(SpanRecord) + span.name.size() + span.failure_text.size() + span.links.size() * sizeof(TraceContext);
  for (const Attribute& attribute : span.attributes) {
    bytes += sizeof(Attribute);
    if (const auto* text = std::get_if<std::string>(&attribute.value)) bytes += text->size();
  }
  return bytes;
}

class Response final : public HttpResponseHandler {
 public:
  void OnHead(int got, const HttpHeaders& headers) override {
    status = got;
    retry_after = RetryAfter(headers, std::chrono::system_clock::now());
  }
  bool OnData(std::string_view bytes) override {
    if (body.size() + bytes.size() > kMaxResponse) return false;
    body += bytes;
    return true;
  }

  int status = 0;
  std::optional<milliseconds> retry_after;
  std::string body;
};

}  // namespace

Exporter::Exporter(Transport& transport, const TelemetryOptions& options, ResourceAttributes resource)
    : options_(options), resource_(std::move(resource)), began_(WallNow()), transport_(transport) {
  thread_ = std::jthread([this] { Main(); });
}

void Exporter::Add(SpanRecord span) noexcept {
  if (options_.traces.url.empty()) return;
  const std::size_t bytes = SizeOf(span);
  const MutexLock lock(mutex_);
  if (stopping_ || queue_.size() >= options_.max_queue || queue_bytes_ + bytes > kMaxQueuedBytes) {
    ++no_room_;
    return;
  }
  try {
    queue_.push_back(std::move(span));
  } catch (const std::bad_alloc&) {
    ++no_room_;
    return;
  }
  queue_bytes_ += bytes;
  // Wake the thread only for the first span, when it starts its delay, and for a full batch.
  if (queue_.size() == 1 || queue_.size() == options_.max_batch) changed_.notify_all();
}

void Exporter::SetSource(Source source) {
  const MutexLock lock(source_mutex_);
  source_ = std::move(source);
}

void Exporter::BeginStop() {
  const MutexLock lock(mutex_);
  if (std::exchange(stopping_, true)) return;
  stop_at_ = Clock::now() + kStopTimeout;
  changed_.notify_all();
}

void Exporter::Stop() {
  BeginStop();
  {
    MutexLock lock(mutex_);
    changed_.wait_until(lock, stop_at_, [this]() REQUIRES(mutex_) { return ended_; });
  }
  give_up_.request_stop();
  if (thread_.joinable()) thread_.join();
}

Exporter::Counts Exporter::counts() const {
  return {.sent = sent_, .no_room = no_room_, .not_delivered = not_delivered_};
}

void Exporter::Main() {
  BecomeBackgroundThread();
  const bool has_metrics = !options_.metrics.url.empty();
  auto metrics_at = has_metrics ? Clock::now() + options_.metrics_interval : Clock::time_point::max();
  std::optional<Clock::time_point> spans_at;
  MutexLock lock(mutex_);
  while (!stopping_ || !queue_.empty()) {
    if (!queue_.empty() && !spans_at) spans_at = Clock::now() + options_.schedule_delay;
    const auto next = std::min(metrics_at, spans_at.value_or(Clock::time_point::max()));
    const bool was_empty = queue_.empty();
    const auto is_due = [&]() REQUIRES(mutex_) {
      return stopping_ || queue_.size() >= options_.max_batch || (was_empty && !queue_.empty());
    };
    // wait_until with time_point::max overflows in the library.
    next == Clock::time_point::max() ? changed_.wait(lock, is_due) : void(changed_.wait_until(lock, next, is_due));
    const auto now = Clock::now();
    if (queue_.size() >= options_.max_batch || stopping_ || (spans_at && now >= *spans_at)) {
      std::vector<SpanRecord> batch;
      const std::size_t count = std::min(queue_.size(), options_.max_batch);
      for (std::size_t i = 0; i < count; ++i) {
        queue_bytes_ -= std::min(queue_bytes_, SizeOf(queue_[i]));
        batch.push_back(std::move(queue_[i]));
      }
      queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(count));
      spans_at.reset();
      lock.unlock();
      if (!batch.empty()) Guarded("the export of spans", [&] { SendSpans(batch); });
      lock.lock();
    }
    if (now >= metrics_at) {
      lock.unlock();
      Guarded("the export of metrics", [this] { SendMetrics(); });
      metrics_at = Clock::now() + options_.metrics_interval;
      lock.lock();
    }
  }
  lock.unlock();
  if (has_metrics) Guarded("the export of metrics", [this] { SendMetrics(); });  // the counts since the last export
  lock.lock();
  ended_ = true;
  changed_.notify_all();
}

// Retries until the batch's timeout. Meanwhile the queue fills and then drops spans.
void Exporter::SendSpans(const std::vector<SpanRecord>& batch) {
  const auto give_up_at = Clock::now() + options_.export_timeout;
  const std::string body = EncodeSpans(resource_, batch);
  for (milliseconds pause = kFirstPause;; pause = std::min(pause * 2, kLongestPause)) {
    const Answer answer = give_up_.stop_requested() ? Answer{} : Post(options_.traces, body);
    if (answer.taken) {
      const std::uint64_t rejected = std::min<std::uint64_t>(answer.rejected, batch.size());
      sent_ += batch.size() - rejected;
      not_delivered_ += rejected;
      return;
    }
    const auto again_at = Clock::now() + std::max(answer.pause.value_or(pause), kShortestPause);
    MutexLock lock(mutex_);
    if (!answer.may_try_again || again_at > give_up_at || stopping_) break;
    // A stop ends the pause, for one last try.
    changed_.wait_until(lock, again_at, [this]() REQUIRES(mutex_) { return stopping_; });
  }
  not_delivered_ += batch.size();
}

// Does not retry, because the next metrics are cumulative and include these.
void Exporter::SendMetrics() {
  std::vector<Metric> metrics;
  {
    const MutexLock lock(source_mutex_);
    if (source_) metrics = source_();
  }
  if (metrics.empty() || give_up_.stop_requested()) return;
  static_cast<void>(Post(options_.metrics, EncodeMetrics(resource_, metrics, began_, WallNow())));
}

Exporter::Answer Exporter::Post(const OtlpEndpoint& endpoint, std::string body) {
  HttpRequest request;
  request.method = "POST";
  request.url = endpoint.url;
  request.headers = endpoint.headers;
  request.body = std::move(body);
  request.headers.emplace_back("Content-Type", "application/x-protobuf");
  request.connect_timeout = request.idle_timeout = endpoint.timeout;
  request.total_timeout = endpoint.timeout;
  Response response;
  const auto sent = transport_.Perform(std::move(request), response, give_up_.get_token());
  const bool is_metrics = &endpoint == &options_.metrics;
  Answer answer;
  answer.taken = sent && response.status / 100 == 2;
  if (answer.taken) {
    answer.rejected = RejectedCount(response.body);
  } else if (sent) {
    // No other status may be retried (OTLP 1.x, "Retryable Response Codes").
    answer.may_try_again =
        response.status == 429 || response.status == 502 || response.status == 503 || response.status == 504;
    answer.pause = response.retry_after;
  } else {
    answer.may_try_again =
        sent.error().code != ErrorCode::kCancelled && sent.error().code != ErrorCode::kInvalidArgument;
  }
  NoteHealth(is_metrics ? "metrics" : "spans", is_metrics ? metrics_work_ : spans_work_, answer.taken,
             sent ? "HTTP status " + std::to_string(response.status) : sent.error().reason);
  return answer;
}

// Logs a line when the export begins to fail, and one when it works again.
void Exporter::NoteHealth(std::string_view what, bool& works, bool taken, std::string_view why) {
  if (works == taken || give_up_.stop_requested()) return;
  works = taken;
  if (taken) {
    LogInfo("the telemetry collector accepts data again", {{"what", what}});
  } else {
    LogWarning("the telemetry collector does not take what it is sent; nothing else is affected",
               {{"what", what}, {"why", why}});
  }
}

}  // namespace reprise
