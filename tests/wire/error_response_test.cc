#include "wire/error_response.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "support/test.h"

namespace reprise::error_response_test {

TEST_CASE("HttpStatus: each kind of error has its status", "[wire]") {
  CHECK(HttpStatus(ErrorCode::kInvalidArgument) == 400);
  CHECK(HttpStatus(ErrorCode::kUnauthenticated) == 401);
  CHECK(HttpStatus(ErrorCode::kForbidden) == 403);
  CHECK(HttpStatus(ErrorCode::kNotFound) == 404);
  CHECK(HttpStatus(ErrorCode::kConflict) == 409);
  CHECK(HttpStatus(ErrorCode::kGone) == 410);
  CHECK(HttpStatus(ErrorCode::kTooLarge) == 413);
  CHECK(HttpStatus(ErrorCode::kUnsupportedType) == 415);
  CHECK(HttpStatus(ErrorCode::kCorruption) == 422);
  CHECK(HttpStatus(ErrorCode::kIo) == 500);
  CHECK(HttpStatus(ErrorCode::kUnavailable) == 503);
  CHECK(HttpStatus(ErrorCode::kStorageFull) == 507);
}

TEST_CASE("ErrorReply: shows code, message and details, never the log's detail", "[wire]") {
  const Reply reply = ErrorReply({.code = ErrorCode::kConflict,
                                  .reason = "busy",
                                  .message = "it runs",
                                  .detail = "/secret/path",
                                  .retryable = true,
                                  .details_json = R"({"interaction_id":"int_001"})"});
  CHECK(reply.status == 409);
  CHECK(reply.body ==
        R"({"error":{"code":"busy","message":"it runs","retryable":true,"details":{"interaction_id":"int_001"}}})");
}

TEST_CASE("ErrorReply: 503 has Retry-After, 401 has WWW-Authenticate", "[wire]") {
  CHECK(ErrorReply(MakeError(ErrorCode::kUnavailable, "x")).headers == HeaderList{{"Retry-After", "1"}});
  CHECK(ErrorReply(MakeError(ErrorCode::kUnauthenticated, "x")).headers.at(0).first == "WWW-Authenticate");
}

}  // namespace reprise::error_response_test
