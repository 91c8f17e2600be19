#pragma once

#include <string>

namespace reprise {

// The system calls that commands in the sandbox do not get, as a program for seccomp(2) in the form that bubblewrap
// takes: what reaches beyond the sandbox's namespaces (kernel keyrings, new namespaces and mounts, BPF, performance
// counters, sockets of other families than Unix and IP), what types into a terminal, and what makes a file
// set-user-ID or set-group-ID. Those calls fail as if not permitted, or as if the kernel had none where programs know
// how to do without. ptrace(2) stays: there is nobody else's process in there. Empty if there is none for this machine.
std::string SyscallFilter();

}  // namespace reprise
