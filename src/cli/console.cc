#include "cli/console.h"

#include <cstdio>
#include <string>

#include "cli/terminal_text.h"

namespace reprise {

void Print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

bool FlushOutput() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

int Complain(const Error& error) {
  const std::string detail = error.detail.empty() ? "" : " (" + error.detail + ")";
  const std::string line = "reprise: " + VisibleLine(error.message + detail) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
  return kExitFailure;
}

}  // namespace reprise
