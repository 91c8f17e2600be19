// reprise_bench provider | relay PROVIDER_PORT [LOG] | load PORT STREAMS TURNS fresh|same PREFIX DIRECTIVE
// [openai] | approve PORT TURNS PREFIX [PORT_OF_THE_ANSWERED_SERVER]
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/loop.h"
#include "bench/programs.h"

namespace reprise::bench {

void AnnouncePort(int port) {
  std::printf("%d\n", port);
  std::fflush(stdout);
}

}  // namespace reprise::bench

int main(int argc, char** argv) {
  using namespace reprise::bench;
  RaiseDescriptorLimit();
  const std::vector<std::string> args(argv + 1, argv + argc);
  const std::string mode = args.empty() ? "" : args[0];
  const auto number = [&](std::size_t i) { return std::atoi(args[i].c_str()); };
  if (mode == "provider") return RunProvider();
  if (mode == "relay" && args.size() >= 2) return RunRelay(number(1), args.size() > 2 ? args[2] : "");
  if (mode == "load" && (args.size() == 7 || (args.size() == 8 && args[7] == "openai"))) {
    return RunLoad({.port = number(1),
                    .streams = number(2),
                    .turns = number(3),
                    .fresh = args[4] == "fresh",
                    .openai = args.size() == 8,
                    .directive = args[6],
                    .prefix = args[5]});
  }
  if (mode == "approve" && args.size() >= 4) {
    const int answers = args.size() > 4 ? number(4) : number(1);
    return RunApprovals({.port = number(1), .turns = number(2), .prefix = args[3]}, answers);
  }
  std::fprintf(stderr, "usage: see the first line of tests/bench/main.cc\n");
  return 2;
}
