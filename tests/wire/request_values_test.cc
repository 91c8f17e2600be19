#include "wire/request_values.h"

#include "support/test.h"

namespace reprise::request_values_test {

TEST_CASE("request values: cursors and limits are whole numbers within range", "[wire]") {
  Request request;
  request.head.target = "/x?limit=10&after_seq=7";
  CHECK(PageLimit(request, 50, 500) == 10);
  CHECK(EventCursor(request) == 7);
  request.head.headers = {{"last-event-id", "9"}};
  CHECK(EventCursor(request) == 9);
  request.head.headers = {};
  for (const char* bad : {"-1", "", "1.5", "1e3", "abc", "99999999999999999999", " 1", "0x1"}) {
    INFO(bad);
    request.head.target = "/x?limit=" + std::string(bad) + "&after_seq=" + bad;
    CHECK_FALSE(PageLimit(request, 50, 500));
    CHECK_FALSE(EventCursor(request));
  }
  request.head.target = "/x?limit=501";
  CHECK_FALSE(PageLimit(request, 50, 500));
  request.head.target = "/x?limit=0";
  CHECK_FALSE(PageLimit(request, 50, 500));
}

}  // namespace reprise::request_values_test
