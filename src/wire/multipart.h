#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "reprise/result.h"
#include "wire/message.h"

namespace reprise {

// Room for the delimiters and headers of a multipart body, beside the file itself.
inline constexpr std::size_t kMaxMultipartFraming = 16 * 1024;

// A file as a client sends it.
struct Upload {
  std::string filename{}, mime_type{};  // empty: not given
  std::string content{};
};

// The file in a request. It is the body itself, or the only part of a multipart/form-data body (RFC 7578), as HTML
// forms and `curl -F file=@NAME` send it. Its name is in `?name=`, Content-Disposition (RFC 6266) or the part. Fails
// with kInvalidArgument (reason "invalid_body") if a multipart body is malformed or has other parts than one file, and
// with kUnsupportedType if the Content-Type is malformed.
Result<Upload> ReadUpload(const Request& request);

// A multipart/form-data body with the file in its part `file`, and texts in parts with the given names.
// kInvalidArgument (reason "invalid_body") if it is malformed, has other parts or has no file; kUnsupportedType if it
// is no form.
struct Form {
  Upload file;
  std::map<std::string, std::string> fields{};  // those that were sent
};
Result<Form> ReadForm(const Request& request, std::initializer_list<std::string_view> fields);

// The value of Content-Disposition that makes a browser save a file under this name and not show it. The name must be
// UTF-8 without control characters.
std::string AttachmentDisposition(std::string_view filename);

}  // namespace reprise
