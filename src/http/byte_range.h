#pragma once

#include "http/message.h"

namespace reprise {

// Answers a GET with the part that its Range header asks for (RFC 9110, section 14): 206, or 416 if there is no such
// part. `whole` (200) is given as it is, with Accept-Ranges, where the header is missing, malformed, asks for several
// parts or in another unit, or where If-Range does not name `etag`, the strong entity tag that `whole` gets.
Reply InRange(const Request& request, Reply whole, std::string_view etag);

}  // namespace reprise
