#include "wire/multipart.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"

namespace reprise {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::size_t kMaxBoundary = 70;       // RFC 2046, section 5.1.1
constexpr std::size_t kMaxPartHeaders = 4096;  // bytes
constexpr std::size_t kMaxParts = 8;
constexpr std::string_view kForm = "multipart/form-data";

tl::unexpected<Error> Malformed(std::string message) { return Fail(Reason::kInvalidBody, std::move(message)); }

// A header's value, such as `form-data; name="file"; filename="a \"b\".txt"`.
struct FieldValue {
  std::string value;
  std::vector<std::pair<std::string, std::string>> parameters;  // names in lower case

  const std::string* Find(std::string_view name) const {
    const auto found = std::ranges::find_if(parameters, [&](const auto& each) { return each.first == name; });
    return found == parameters.end() ? nullptr : &found->second;
  }
};

// Removes one parameter's value from the beginning of `text`; nullopt if it is malformed.
std::optional<std::string> TakeParameterValue(std::string_view& text) {
  if (!text.starts_with('"')) {
    const std::string_view token = TrimBlanks(text.substr(0, text.find(';')));
    text.remove_prefix(std::min(text.find(';'), text.size()));
    return std::string(token);
  }
  std::string value;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') {
      text = TrimBlanks(text.substr(i + 1));
      return value;
    }
    // A browser on Windows may send a path, so a backslash escapes only quotes and backslashes.
    const bool escape = text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\');
    value += text[escape ? ++i : i];
  }
  return std::nullopt;
}

std::optional<FieldValue> ParseFieldValue(std::string_view text) {
  const std::size_t end = std::min(text.find(';'), text.size());
  FieldValue field{.value = LowerCase(TrimBlanks(text.substr(0, end))), .parameters = {}};
  text.remove_prefix(end);
  while (!text.empty()) {
    if (text.front() != ';') return std::nullopt;
    text = TrimBlanks(text.substr(1));
    if (text.empty()) break;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string name = LowerCase(TrimBlanks(text.substr(0, equals)));
    text = TrimBlanks(text.substr(equals + 1));
    auto value = TakeParameterValue(text);
    if (!value) return std::nullopt;
    field.parameters.emplace_back(name, *std::move(value));
  }
  return field;
}

// Prefers filename*=UTF-8''na%C3%AFve.txt (RFC 8187) to filename="naive.txt".
std::string FilenameIn(const FieldValue& disposition) {
  if (const std::string* extended = disposition.Find("filename*")) {
    const std::size_t first = extended->find('\''), second = extended->find('\'', first + 1);
    if (first != std::string::npos && second != std::string::npos &&
        LowerCase(std::string_view(*extended).substr(0, first)) == "utf-8") {
      const auto name = PercentDecoded(std::string_view(*extended).substr(second + 1));
      if (name && IsUtf8(*name)) return *name;
    }
  }
  const std::string* plain = disposition.Find("filename");
  return plain == nullptr ? std::string() : *plain;
}

// --- multipart/form-data --------------------------------------------------------------------------------------------

struct Part {
  FieldValue disposition;
  std::string mime_type;
  std::string_view content;  // points into the body
};

Result<Part> ParsePart(std::string_view text) {
  const bool no_headers = text.starts_with(kLineEnd);
  const std::size_t end = text.substr(0, kMaxPartHeaders).find("\r\n\r\n");
  if (no_headers || end == std::string_view::npos) return Malformed("a part of the body has no headers");
  Part part{.disposition = {}, .mime_type = {}, .content = text.substr(end + 4)};
  for (std::string_view headers = text.substr(0, end); !headers.empty();) {
    const std::size_t line_end = headers.find(kLineEnd);
    const std::string_view line = headers.substr(0, line_end);
    headers = line_end == std::string_view::npos ? std::string_view() : headers.substr(line_end + kLineEnd.size());
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return Malformed("a part of the body has a malformed header");
    const std::string_view name = line.substr(0, colon), value = TrimBlanks(line.substr(colon + 1));
    if (EqualsIgnoringCase(name, "content-type")) part.mime_type = value;
    if (!EqualsIgnoringCase(name, "content-disposition")) continue;
    auto disposition = ParseFieldValue(value);
    if (!disposition) return Malformed("a part of the body has a malformed Content-Disposition");
    part.disposition = *std::move(disposition);
  }
  if (part.disposition.value != "form-data") return Malformed("a part of the body is not form-data");
  return part;
}

Result<std::vector<Part>> ParseParts(std::string_view body, const FieldValue& type) {
  const std::string* boundary = type.Find("boundary");
  if (boundary == nullptr || boundary->empty() || boundary->size() > kMaxBoundary) {
    return Malformed("the Content-Type has no usable boundary");
  }
  const std::string delimiter = "--" + *boundary;
  if (!body.starts_with(delimiter)) return Malformed("the body does not begin with its boundary");
  body.remove_prefix(delimiter.size());
  std::vector<Part> parts;
  while (!body.starts_with("--")) {
    if (!body.starts_with(kLineEnd)) return Malformed("the body is not what its boundary says");
    body.remove_prefix(kLineEnd.size());
    const std::size_t end = body.find(std::string(kLineEnd) + delimiter);
    if (end == std::string_view::npos) return Malformed("the body ends before its last boundary");
    auto part = TRY(ParsePart(body.substr(0, end)));
    parts.push_back(std::move(part));
    if (parts.size() > kMaxParts) return Malformed("the body has too many parts");
    body.remove_prefix(end + kLineEnd.size() + delimiter.size());
  }
  return parts;
}

bool IsFile(const Part& part) { return part.disposition.Find("filename") || part.disposition.Find("filename*"); }

Upload FileOf(const Part& part) {
  return {.filename = FilenameIn(part.disposition), .mime_type = part.mime_type, .content = std::string(part.content)};
}

Result<Upload> ReadFileForm(std::string_view body, const FieldValue& type) {
  const auto parts = TRY(ParseParts(body, type));
  if (parts.size() != 1) return Malformed("the body must have one part, the file");
  if (!IsFile(parts.front())) return Malformed("the body's part is not a file: it has no filename");
  return FileOf(parts.front());
}

std::optional<FieldValue> TypeOf(const Request& request) {
  const std::string* type = request.head.Find("content-type");
  return ParseFieldValue(type == nullptr ? std::string_view() : std::string_view(*type));
}

}  // namespace

Result<Upload> ReadUpload(const Request& request) {
  const auto parsed = TypeOf(request);
  if (!parsed) return Fail(ErrorCode::kUnsupportedType, "the Content-Type is malformed");
  Upload upload;
  if (parsed->value == kForm) {
    auto form = TRY(ReadFileForm(request.body, *parsed));
    upload = std::move(form);
  } else {
    upload.content = request.body;
    // curl sends this type for --data-binary by default.
    if (parsed->value != "application/x-www-form-urlencoded") upload.mime_type = parsed->value;
    if (const std::string* disposition = request.head.Find("content-disposition")) {
      if (const auto field = ParseFieldValue(*disposition)) upload.filename = FilenameIn(*field);
    }
  }
  if (const auto name = request.Query("name")) upload.filename = *name;
  return upload;
}

Result<Form> ReadForm(const Request& request, std::initializer_list<std::string_view> fields) {
  const auto type = TypeOf(request);
  if (!type || type->value != kForm) return Fail(ErrorCode::kUnsupportedType, "the body must be multipart/form-data");
  const auto parts = TRY(ParseParts(request.body, *type));
  Form form;
  bool has_file = false;
  for (const Part& part : parts) {
    const std::string* given = part.disposition.Find("name");
    const std::string name = given == nullptr ? std::string() : *given;
    if (name == "file" && IsFile(part) && !has_file) {
      form.file = FileOf(part);
      has_file = true;
      continue;
    }
    if (std::ranges::find(fields, name) == fields.end() || form.fields.contains(name)) {
      return Malformed("the part \"" + std::string(Utf8Prefix(ToValidUtf8(name), 40)) +
                       "\" of the body is unknown, there twice, or a file without a filename");
    }
    if (!IsUtf8(part.content)) return Malformed("the part \"" + name + "\" of the body is not UTF-8");
    form.fields.emplace(name, part.content);
  }
  if (!has_file) return Malformed("the body must have a part \"file\" with a filename");
  return form;
}

std::string AttachmentDisposition(std::string_view filename) {
  std::string plain;
  for (const char c : filename) {
    const auto byte = static_cast<unsigned char>(c);
    plain += byte < 0x20 || byte >= 0x7f || c == '"' || c == '\\' || c == '%' ? '_' : c;
  }
  return "attachment; filename=\"" + plain + "\"; filename*=UTF-8''" + PercentEncoded(filename, ".-_");
}

}  // namespace reprise
