#pragma once

#include <string>
#include <string_view>

#include "reprise/result.h"

namespace reprise {

// Time stamps of RFC 3161, in DER. Whoever issues them is reached by other programs; nothing here opens a connection.

// A query for a time stamp of these 32 bytes, a SHA-256 digest; `openssl ts -query -digest HEX -sha256 -no_nonce -cert`
// makes the same.
std::string TimeStampQuery(std::string_view digest);

// The time of an issuer's reply, in UTC as the issuer wrote it ("Nov 29 21:00:00 2026 GMT"). kCorruption unless the
// reply is one to a query for `digest`; with `ca_file` (PEM), also unless a time stamping certificate that one of these
// authorities has issued signed it, and held at that time. kIo: `ca_file` cannot be read. Without `ca_file` nobody
// vouches for the time. The message tells a refusal, another bundle's stamp and a bad certificate apart.
Result<std::string> TimeOfStamp(std::string_view reply, std::string_view digest, const std::string& ca_file = {});

}  // namespace reprise
