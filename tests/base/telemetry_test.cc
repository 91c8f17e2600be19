#include "reprise/telemetry.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/test.h"

namespace reprise::telemetry_test {
namespace {

// Keeps what ends; ids count up.
class Kept final : public Telemetry {
 public:
  TraceContext NewContext(const TraceContext& parent) override {
    if (!traces) return {};
    TraceContext context;
    context.trace_id = parent.is_valid() ? parent.trace_id : decltype(parent.trace_id){1};
    context.span_id[7] = static_cast<std::uint8_t>(++ids_);
    context.sampled = true;
    return context;
  }
  void Ended(SpanRecord span) noexcept override { spans.push_back(std::move(span)); }
  bool takes_content() const override { return content; }
  bool tells_providers() const override { return false; }
  void Collect(std::vector<Metric>&) const override {}

  bool traces = true, content = false;
  std::vector<SpanRecord> spans;

 private:
  int ids_ = 0;
};

const Attribute* Find(const SpanRecord& span, std::string_view key) {
  for (const Attribute& each : span.attributes) {
    if (each.key == key) return &each;
  }
  return nullptr;
}

constexpr const char* kTraceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST_CASE("Traceparent: a round trip changes nothing", "[base]") {
  const auto context = ParseTraceparent(kTraceparent);
  REQUIRE(context);
  CHECK(context->sampled);
  CHECK(context->trace_id[0] == 0x4b);
  CHECK(context->span_id[7] == 0xb7);
  CHECK(FormatTraceparent(*context) == kTraceparent);
  CHECK(FormatTraceparent({}).empty());
  CHECK_FALSE(ParseTraceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")->sampled);
}

TEST_CASE("Traceparent: refuses invalid text", "[base]") {
  for (const char* text : {"", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
                           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                           "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
                           "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseTraceparent(text));
  }
  CHECK(ParseTraceparent("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"));  // of a later version
}

TEST_CASE("Span: an empty one and its children do nothing", "[base]") {
  Span none = Span::Begin(nullptr, "x", {});
  CHECK_FALSE(none);
  Span child = none.Child("y");
  CHECK_FALSE(child);
  child.Set("key", true);
  child.Fail("why");
  child.End();
  CHECK_FALSE(none.context().is_valid());
}

TEST_CASE("Span: children lie within their parents, in the same trace", "[base]") {
  Kept kept;
  {
    Span parent = Span::Begin(&kept, "parent", *ParseTraceparent(kTraceparent));
    Span child = parent.Child("child", SpanKind::kClient);
    std::jthread([moved = std::move(child)]() mutable { moved.Set("count", std::int64_t{7}); });
  }
  REQUIRE(kept.spans.size() == 2);
  const SpanRecord &child = kept.spans[0], &parent = kept.spans[1];
  CHECK(child.name == "child");
  CHECK(child.parent_id == parent.context.span_id);
  CHECK(child.context.trace_id == parent.context.trace_id);
  CHECK((parent.began <= child.began && child.began <= child.ended && child.ended <= parent.ended));
  CHECK(parent.parent_is_remote);
  CHECK_FALSE(child.parent_is_remote);
  CHECK(Find(child, "count")->value == AttributeValue(std::int64_t{7}));
}

TEST_CASE("Span: the last value of an attribute counts, and Stop sets the end", "[base]") {
  Kept kept;
  Span span = Span::Begin(&kept, "x", {});
  span.Set("key", "one");
  span.Set("key", "two");
  span.Stop();
  Span other = span.Child("y");
  other.End();
  span.Fail("reason", "words");
  span.End();
  span.End();
  REQUIRE(kept.spans.size() == 2);
  const SpanRecord& ended = kept.spans[1];
  CHECK(ended.ended <= kept.spans[0].began);
  CHECK(ended.attributes.size() == 2);
  CHECK(Find(ended, "key")->value == AttributeValue("two"));
  CHECK(ended.failed);
  CHECK(ended.failure_text.empty());
}

TEST_CASE("Span: keeps content on request, as valid UTF-8 up to a limit", "[base]") {
  Kept kept;
  for (const bool wanted : {false, true}) {
    kept.content = wanted;
    Span span = Span::Begin(&kept, "x", {});
    span.SetContent("text", std::string(kMaxSpanContent - 1, 'a') + "\xC3\xA4 and more");
    span.Fail("reason", "bad \xFF byte");
  }
  CHECK(Find(kept.spans[0], "text") == nullptr);
  CHECK(Find(kept.spans[1], "text")->value == AttributeValue(std::string(kMaxSpanContent - 1, 'a')));
  CHECK(kept.spans[1].failure_text == "bad \xEF\xBF\xBD byte");
}

TEST_CASE("Span: an untraced span still ends, for metrics", "[base]") {
  Kept kept;
  kept.traces = false;
  kept.content = true;
  Span span = Span::Begin(&kept, "x", {});
  CHECK(FormatTraceparent(span.Child("y").context()).empty());
  span.SetContent("text", "words");
  span.End();
  CHECK(kept.spans.size() == 2);
  CHECK(kept.spans[1].attributes.empty());
}

}  // namespace
}  // namespace reprise::telemetry_test
