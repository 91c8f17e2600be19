#include "base/authorities.h"

#include <unistd.h>

#include <algorithm>
#include <array>

namespace reprise {

std::string AuthoritiesFile(const Environment& environment) {
  constexpr std::array<const char*, 5> kPlaces = {
      "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Arch, Gentoo, NixOS
      "/etc/pki/tls/certs/ca-bundle.crt",                   // Fedora, Red Hat
      "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // Fedora, without the old names
      "/etc/ssl/ca-bundle.pem",                             // openSUSE
      "/etc/ssl/cert.pem",                                  // Alpine, Void
  };
  if (auto named = environment("SSL_CERT_FILE"); named && !named->empty()) return *std::move(named);
  const auto* const place = std::ranges::find_if(kPlaces, [](const char* path) { return ::access(path, R_OK) == 0; });
  return place == kPlaces.end() ? std::string() : *place;
}

}  // namespace reprise
