#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace reprise::test {

// Starts a third-party server for tests: as user nobody if this is root, ending with this program, with its output
// appended to the file `log`.
pid_t StartUnprivileged(const std::vector<std::string>& command, const std::string& log);
// Waits until it ends by itself. Returns its exit status.
int AwaitEnd(pid_t pid);
// Ends it by `signal` and waits for its end.
void End(pid_t pid, int signal);
// Gives the folder to user nobody, if this is root.
void GiveToNobody(const std::string& path);
// A TCP port that is free now on 127.0.0.1.
int FreePort();
// Whether a server listens there.
bool AcceptsAt(int port);

}  // namespace reprise::test
