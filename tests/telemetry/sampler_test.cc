#include "base/system.h"
#include "support/test.h"
#include "telemetry/otlp_telemetry.h"

namespace reprise::sampler_test {
namespace {

using TraceId = decltype(TraceContext::trace_id);

TraceContext Parent(bool sampled) { return {.trace_id = {1}, .span_id = {1}, .sampled = sampled}; }

TEST_CASE("Sampler: a parent decides if it is asked to", "[telemetry]") {
  const Sampler follows({.follows_parent = true, .ratio = 0}), does_not({.follows_parent = false, .ratio = 0});
  CHECK(follows.Samples(Parent(true), {1}));
  CHECK_FALSE(follows.Samples(Parent(false), {1}));
  CHECK_FALSE(follows.Samples({}, {1}));
  CHECK_FALSE(does_not.Samples(Parent(true), {1}));
  CHECK(Sampler({.follows_parent = false, .ratio = 1}).Samples(Parent(false), {1}));
}

TEST_CASE("Sampler: a ratio of traces, by their ids", "[telemetry]") {
  const Sampler quarter({.ratio = 0.25});
  TraceId least{}, most{};
  most.fill(0xFF);
  CHECK(quarter.Samples({}, least));
  CHECK_FALSE(quarter.Samples({}, most));
  int taken = 0;
  for (int i = 0; i < 4000; ++i) {
    TraceId id;
    FillRandom(id.data(), id.size());
    const bool samples = quarter.Samples({}, id);
    CHECK(samples == quarter.Samples({}, id));
    taken += samples ? 1 : 0;
  }
  CHECK(taken > 800);  // about 1000; this far off once in 10^12
  CHECK(taken < 1200);
}

}  // namespace
}  // namespace reprise::sampler_test
