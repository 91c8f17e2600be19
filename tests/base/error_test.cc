#include "reprise/error.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "support/test.h"

namespace reprise::error_test {
namespace {

constexpr Reason kAll[] = {
#define REPRISE_REASON(name, wire, kind, retryable) Reason::name,
    REPRISE_REASONS(REPRISE_REASON)
#undef REPRISE_REASON
};

bool IsSnakeCase(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

TEST_CASE("Reason: each name is in snake case and stands in the table once", "[base]") {
  std::set<std::string_view> names;
  for (const Reason reason : kAll) {
    INFO(NameOf(reason));
    CHECK(IsSnakeCase(NameOf(reason)));
    CHECK(names.insert(NameOf(reason)).second);
  }
}

TEST_CASE("Reason: an error of the table has its kind, and is found by its reason alone", "[base]") {
  const Error busy = Refused(Reason::kBusy, "an interaction is running", "chat c");
  CHECK(busy.code == ErrorCode::kConflict);
  CHECK(busy.reason == "busy");
  CHECK(busy.retryable);
  CHECK(busy.detail == "chat c");
  CHECK(busy.Is(Reason::kBusy));
  CHECK_FALSE(busy.Is(Reason::kStale));
  CHECK_FALSE(Refused(Reason::kIdempotencyKeyReused, "another request had this key").retryable);

  Error received;  // as a client reads it, which knows a name only
  received.reason = "busy";
  CHECK(received.Is(Reason::kBusy));
  received.reason = "of_a_newer_server";
  for (const Reason reason : kAll) CHECK_FALSE(received.Is(reason));
}

TEST_CASE("Reason: the default of each kind has that kind in the table", "[base]") {
  for (int code = 0; code <= static_cast<int>(ErrorCode::kInternal); ++code) {
    const std::string_view name = DefaultReason(static_cast<ErrorCode>(code));
    const auto* const row = std::find_if(std::begin(kAll), std::end(kAll), [&](Reason r) { return NameOf(r) == name; });
    REQUIRE(row != std::end(kAll));
    CHECK(static_cast<int>(Refused(*row, "").code) == code);
  }
}

}  // namespace
}  // namespace reprise::error_test
