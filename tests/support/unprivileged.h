#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace reprise::test {

// A server of others, for the tests: as nobody if this is root, ending with this program, its output at the end of the
// file `log`.
pid_t StartUnprivileged(const std::vector<std::string>& command, const std::string& log);
// Waits for it to end by itself. Its exit status.
int AwaitEnd(pid_t pid);
// Ends it and waits for that.
void End(pid_t pid, int signal);
// The folder is nobody's then, if this is root.
void GiveToNobody(const std::string& path);
// A TCP port of 127.0.0.1 that is free now.
int FreePort();
// Whether somebody listens there.
bool AcceptsAt(int port);

}  // namespace reprise::test
