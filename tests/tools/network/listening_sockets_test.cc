#include "tools/network/listening_sockets.h"

#include <string>

#include "support/test.h"

namespace reprise {
namespace {

const std::string kHeading =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

std::string Line(const std::string& local, const std::string& state = "0A", const std::string& inode = "12345") {
  return "   0: " + local + " 00000000:0000 " + state + " 00000000:00000000 00:00000000 00000000  1000        0 " +
         inode + " 1 0000000000000000 100 0 0 10 0\n";
}

}  // namespace

TEST_CASE("ListeningSockets: reads the addresses of IPv4 and IPv6", "[tools]") {
  const auto found = ListeningSockets(
      kHeading + Line("0100007F:1FBB") + Line("00000000:0050") + Line("00000000000000000000000001000000:1FBC") +
      Line("00000000000000000000000000000000:FFFF") + Line("0000000000000000FFFF00000100007F:0001"));
  REQUIRE(found.size() == 5);
  CHECK((found[0].address == "127.0.0.1" && found[0].port == 8123 && found[0].name == "socket:[12345]"));
  CHECK((found[1].address == "0.0.0.0" && found[1].port == 80));
  CHECK((found[2].address == "::1" && found[2].port == 8124));
  CHECK((found[3].address == "::" && found[3].port == 65535));
  CHECK((found[4].address == "127.0.0.1" && found[4].port == 1));
}

TEST_CASE("ListeningSockets: leaves out connections and what it cannot read", "[tools]") {
  CHECK(ListeningSockets("").empty());
  CHECK(ListeningSockets(kHeading).empty());
  CHECK(ListeningSockets(kHeading + Line("0100007F:1FBB", "01")).empty());
  for (const char* local : {"0100007F", "0100007F:", "0100007F:1FBBB", "0100007:1FBB", "0100007G:1FBB", ":1FBB",
                            "0100007F0100007F:1FBB", "-100007F:1FBB", "0100007F:+FBB"}) {
    CHECK(ListeningSockets(kHeading + Line(local)).empty());
  }
  const std::string whole = Line("0100007F:1FBB");
  for (std::size_t size = 0; size + 60 < whole.size(); ++size) {
    CHECK(ListeningSockets(kHeading + whole.substr(0, size)).size() <= 1);
  }
}

}  // namespace reprise
