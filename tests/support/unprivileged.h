#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace reprise::test {

// Starts another project's server: as user nobody if we are root, ending with this program. Its output is appended to
// the file `log`.
pid_t StartUnprivileged(const std::vector<std::string>& command, const std::string& log);
// Waits until it ends by itself. Returns its exit status.
int AwaitEnd(pid_t pid);
// Sends it the signal and waits for its end.
void End(pid_t pid, int signal);
// Gives the folder to user nobody, if we are root.
void GiveToNobody(const std::string& path);
// A TCP port of 127.0.0.1 that is free at the moment.
int FreePort();
// Whether a program listens there.
bool AcceptsAt(int port);

}  // namespace reprise::test
