#include "telemetry/otlp.h"

#include <string>

#include "support/test.h"
#include "telemetry/protobuf_writer.h"

// Whole requests are decoded by Google's Protocol Buffers in tests/e2e/test_telemetry.py.
namespace reprise::otlp_test {
namespace {

TEST_CASE("ProtobufWriter: the forms of the wire", "[telemetry]") {
  ProtobufWriter out;
  out.Varint(1, 300);
  out.Fixed64(2, 1);
  out.Fixed32(16, 0x301);
  out.Bytes(3, "ab");
  out.Double(4, 1.0);
  CHECK(out.Take() == std::string("\x08\xAC\x02"
                                  "\x11\x01\0\0\0\0\0\0\0"
                                  "\x85\x01\x01\x03\0\0"
                                  "\x1A\x02"
                                  "ab"
                                  "\x21\0\0\0\0\0\0\xF0\x3F",
                                  3 + 9 + 6 + 4 + 9));
}

TEST_CASE("ProtobufWriter: the length of a message stands before it, however long it is", "[telemetry]") {
  ProtobufWriter out;
  out.Message(1, [&] { out.Message(2, [&] { out.Bytes(1, std::string(200, 'x')); }); });
  const std::string bytes = out.Take();
  CHECK(bytes.substr(0, 9) == "\x0A\xCE\x01\x12\xCB\x01\x0A\xC8\x01");
  CHECK(bytes.size() == 209);
}

TEST_CASE("RejectedCount: of a partial success, and of nothing else", "[telemetry]") {
  CHECK(RejectedCount("") == 0);
  CHECK(RejectedCount(std::string("\x0A\x03\x08\xAC\x02", 5)) == 300);
  CHECK(RejectedCount(std::string("\x0A\x04\x12\x02no", 6)) == 0);
  CHECK(RejectedCount("{}") == 0);
  CHECK(RejectedCount("\x0A\x7F") == 0);
  CHECK(RejectedCount(std::string(100, '\xFF')) == 0);
}

}  // namespace
}  // namespace reprise::otlp_test
