#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "reprise/result.h"
#include "wire/message.h"

namespace reprise {

// What an upload may have beside the file itself: delimiters and headers of a multipart body.
inline constexpr std::size_t kMaxMultipartFraming = 16 * 1024;

// A file as a client sends it.
struct Upload {
  std::string filename{}, mime_type{};  // empty: not said
  std::string content{};
};

// The file of a request: the body itself, its name in `?name=` or Content-Disposition (RFC 6266); or the one part of a
// multipart/form-data body (RFC 7578), as HTML forms and `curl -F file=@NAME` send it. kInvalidArgument (reason
// "invalid_body" or "invalid_parameter"): a multipart body that is malformed, or has other parts than one file.
Result<Upload> ReadUpload(const Request& request);

// A multipart/form-data body with the file in its part `file`, and texts in parts of these names. kInvalidArgument
// (reason "invalid_body"): it is malformed, has other parts or none with the file; kUnsupportedType: it is no form.
struct Form {
  Upload file;
  std::map<std::string, std::string> fields{};  // those that are there
};
Result<Form> ReadForm(const Request& request, std::initializer_list<std::string_view> fields);

// The value of Content-Disposition with which a browser saves a file under this name instead of showing it. The name
// is UTF-8 without control characters.
std::string AttachmentDisposition(std::string_view filename);

}  // namespace reprise
