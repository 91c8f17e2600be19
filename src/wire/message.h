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

using HeaderList = std::vector<std::pair<std::string, std::string>>;  // names of requests in lower case

// The request line and the headers, before anything about the body is known.
struct RequestHead {
  std::string method;
  std::string target;
  int version = 11;  // 10 or 11
  HeaderList headers = {};

  // The first header of that name (lower case), or null.
  const std::string* Find(std::string_view name) const;
  std::size_t Count(std::string_view name) const;
};

// What a handler sees. The path is split and decoded; `captures` are the segments that the route leaves open.
struct Request {
  RequestHead head;
  std::vector<std::string> captures = {};
  std::string body = {};
  Principal principal = {};  // who sends it

  // The decoded value of a query parameter, nullopt if it is not there.
  std::optional<std::string> Query(std::string_view name) const;
  // All of its values, in their order.
  std::vector<std::string> QueryAll(std::string_view name) const;
  // How often it is there.
  std::size_t QueryCount(std::string_view name) const;
  // True if the Accept header names the media type itself ("*/*" does not count).
  bool Accepts(std::string_view media_type) const;
  // The same of the Accept-Encoding header and a coding ("gzip").
  bool AcceptsEncoding(std::string_view coding) const;
};

// A response that is complete when it is sent.
struct Reply {
  int status = 200;
  std::string body = {};
  std::string content_type = "application/json";
  HeaderList headers = {};
};

// A response that goes on until the log ends. `hold` is kept until then, or until the client has gone.
struct StreamReply {
  std::shared_ptr<EventLog> log;
  std::shared_ptr<void> hold;
  HeaderList headers = {};
  bool forgets = false;                       // the log is for this client alone: forgotten as it is sent
  std::uint64_t offset = 0;                   // where to begin
  std::string preamble = {};                  // sent before that
  std::optional<std::uint64_t> live_at = {};  // `stream_live` follows the byte before this one
};

// A response that is given by `finish` (on a worker thread) once the log is closed. `hold` is kept until then, or until
// the client has gone.
struct DeferredReply {
  std::shared_ptr<EventLog> log;
  std::shared_ptr<void> hold;
  std::function<Result<Reply>()> finish;
};

// A JSON body that is written out while it is made: `next` (on a worker thread, one call after the other) gives the
// piece to follow when the client has taken the one before, nullopt at the end. If it fails the connection is closed,
// so that nobody takes what has come for the whole.
struct PiecewiseReply {
  std::string first;
  std::function<Result<std::optional<std::string>>()> next;
};

using Outcome = std::variant<Reply, StreamReply, DeferredReply, PiecewiseReply>;
using Handler = std::function<Result<Outcome>(const Request&)>;

// Calls `use` with each part of `text` between separators until it returns true. Whether it did.
template <typename Use>
bool AnyPart(std::string_view text, char separator, const Use& use) {
  while (true) {
    const std::size_t end = text.find(separator);
    if (use(text.substr(0, end))) return true;
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end + 1);
  }
}

// ASCII only, as header names and most of their values are.
bool EqualsIgnoringCase(std::string_view a, std::string_view b);
std::string_view TrimBlanks(std::string_view text);

std::string_view StatusText(int status);

// Answers a GET with the part that its Range header asks for (RFC 9110, section 14): 206, or 416 if there is no such
// part. `whole` (200) is given as it is, with Accept-Ranges, where the header is missing, malformed, asks for several
// parts or in another unit, or where If-Range does not name `etag`, the strong entity tag that `whole` gets.
Reply InRange(const Request& request, Reply whole, std::string_view etag);

}  // namespace reprise
