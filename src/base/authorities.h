#pragma once

#include <string>

#include "base/system.h"

namespace reprise {

// The file of certificate authorities that TLS trusts: $SSL_CERT_FILE, otherwise where this system has it. Each
// distribution has another place, and libraries that come with the program know only that of Debian. Empty if there is
// none.
std::string AuthoritiesFile(const Environment& environment = ProcessEnvironment());

}  // namespace reprise
