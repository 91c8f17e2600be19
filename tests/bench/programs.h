#pragma once

#include <string>

namespace reprise::bench {

int RunProvider();

// The floor: the least work between a client and the provider. With a log file, each turn's bytes are appended and
// synced (fdatasync) before its end is passed on.
int RunRelay(int provider_port, const std::string& log_file);

struct Load {
  int port = 0;
  int streams = 1;          // at the same time
  int turns = 1;            // one after the other, in each stream
  bool fresh = false;       // a new chat for every turn; otherwise one chat per stream
  bool openai = false;      // through OpenAI's chat completions, not our own route
  std::string directive{};  // for the provider, without the brackets
  std::string prefix{};     // of the chats' ids
};
// Prints one JSON object: chunks, errors, latencies, durations.
int RunLoad(const Load& load);

// Causes an approval `turns` times and prints how long the next event takes after each answer, which is sent to the
// server at `answer_port`.
int RunApprovals(const Load& load, int answer_port);

// Prints the port as one line on stdout, for the program's parent.
void AnnouncePort(int port);

}  // namespace reprise::bench
