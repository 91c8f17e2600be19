#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "reprise/event_log.h"
#include "reprise/principal.h"
#include "reprise/result.h"

namespace reprise {

using HeaderList = std::vector<std::pair<std::string, std::string>>;  // a request's names are in lower case

// The request line and the headers. Nothing about the body is known yet.
struct RequestHead {
  std::string method;
  std::string target;
  int version = 11;  // 10 or 11
  HeaderList headers = {};

  // The first header with this name (in lower case), or null.
  const std::string* Find(std::string_view name) const;
  std::size_t Count(std::string_view name) const;
};

// A request as its handler gets it. `captures` are the decoded segments that match the open ones of the route.
struct Request {
  RequestHead head;
  std::vector<std::string> captures = {};
  std::string body = {};
  Principal principal = {};  // the sender
  bool is_local = false;     // the user who runs this server sent it, on this machine (Gate::IsLocal)

  // The first value of a query parameter, decoded, or as it is written if it cannot be decoded; nullopt if there is
  // none.
  std::optional<std::string> Query(std::string_view name) const;
  // All values of the parameter, in order.
  std::vector<std::string> QueryAll(std::string_view name) const;
  // The number of these values.
  std::size_t QueryCount(std::string_view name) const;
  // True if the Accept header lists this media type itself ("*/*" does not count) and does not refuse it (q=0).
  bool Accepts(std::string_view media_type) const;
  // The same for a coding ("gzip") in the Accept-Encoding header.
  bool AcceptsEncoding(std::string_view coding) const;
};

// A response whose whole body is known.
struct Reply {
  int status = 200;
  std::string body = {};
  std::string content_type = "application/json";
  HeaderList headers = {};
};

// A response that ends with the log. `hold` is released then, or when the client is gone.
struct StreamReply {
  std::shared_ptr<EventLog> log;
  std::shared_ptr<void> hold;
  HeaderList headers = {};
  bool forgets = false;                       // the log is this client's alone: forget bytes once sent
  std::uint64_t offset = 0;                   // the first byte of the log to send
  std::string preamble = {};                  // event frames to send first
  std::optional<std::uint64_t> live_at = {};  // the stream_live frame stands before this byte
};

// A response that `finish` makes, on a worker thread, once the log is closed. `hold` is released when the log is closed
// or the client is gone.
struct DeferredReply {
  std::shared_ptr<EventLog> log;
  std::shared_ptr<void> hold;
  std::function<Result<Reply>()> finish;
};

// A JSON body that is sent while it is made. `next` runs on a worker thread, one call at a time: it returns the next
// piece once the client has taken the one before, and nullopt at the end. If it fails, the connection is closed, so
// that no client takes the part for the whole.
struct PiecewiseReply {
  std::string first;
  std::function<Result<std::optional<std::string>>()> next;
};

using Outcome = std::variant<Reply, StreamReply, DeferredReply, PiecewiseReply>;
using Handler = std::function<Result<Outcome>(const Request&)>;

// Calls `use` with each part of `text` between separators until `use` returns true. Returns whether it did.
template <typename Use>
bool AnyPart(std::string_view text, char separator, const Use& use) {
  while (true) {
    const std::size_t end = text.find(separator);
    if (use(text.substr(0, end))) return true;
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end + 1);
  }
}

// For ASCII only, like header names and most of their values.
bool EqualsIgnoringCase(std::string_view a, std::string_view b);
std::string_view TrimBlanks(std::string_view text);

std::string_view StatusText(int status);

// Answers a GET with the part that its Range header names (RFC 9110, section 14): 206, or 416 if the part does not
// exist. Returns all of `whole` (200), with Accept-Ranges, for other methods, if the header is missing or malformed or
// names several parts or another unit, or if If-Range is not `etag`, the strong entity tag that `whole` gets.
Reply InRange(const Request& request, Reply whole, std::string_view etag);

}  // namespace reprise
