#include <algorithm>
#include <array>
#include <string>

#include "base/public_address.h"
#include "base/text.h"
#include "tools/arguments.h"
#include "tools/builtin_tools.h"
#include "tools/text_file.h"

namespace reprise {
namespace {

bool IsUsableUrl(const std::string& url) {
  const std::string lower = LowerCase(url.substr(0, 8));
  if (!lower.starts_with("http://") && !lower.starts_with("https://")) return false;
  return std::none_of(url.begin(), url.end(), [](unsigned char c) { return c <= 0x20 || c == 0x7f; });
}

// The part before the path ("https://example.com") if all programs parse the URL alike; else empty.
std::string OriginOf(const std::string& url) {
  const std::size_t scheme = url.starts_with("https://") ? 8 : url.starts_with("http://") ? 7 : 0;
  if (scheme == 0 || !IsUsableUrl(url)) return {};
  const std::size_t end = std::min(url.find_first_of("/?#", scheme), url.size());
  const std::string host = url.substr(scheme, end - scheme);
  const bool is_plain = !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == ':';
  });
  // At most one colon, followed by a port.
  const std::size_t colon = host.find(':');
  const bool has_port =
      colon == std::string::npos ||
      (colon > 0 && colon + 1 < host.size() && host.find_first_not_of("0123456789", colon + 1) == std::string::npos);
  if (!is_plain || !has_port || host.front() == '.' || host.front() == '-') return {};
  // The rest must be plain too, without a backslash, which some programs take for a slash.
  const bool is_ascii =
      std::all_of(url.begin(), url.end(), [](char c) { return static_cast<unsigned char>(c) < 0x7f && c != '\\'; });
  return is_ascii ? url.substr(0, end) : std::string();
}

// Collects one response. The transport's thread uses it only until Perform returns.
class CollectedResponse final : public HttpResponseHandler {
 public:
  explicit CollectedResponse(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  void OnHead(int status, const HttpHeaders& headers) override {
    status_ = status;
    for (const auto& [name, value] : headers) {
      if (name == "content-type") content_type_ = value;
    }
  }

  bool OnData(std::string_view bytes) override {
    const std::size_t room = max_bytes_ - body_.size();
    body_ += bytes.substr(0, room);
    cut_ = cut_ || bytes.size() > room;
    return !cut_;
  }

  ToolOutcome Outcome() const {
    std::string text = "HTTP status " + std::to_string(status_) + "\n";
    text += "content-type: " + (content_type_.empty() ? "(none)" : OneLine(content_type_)) + "\n\n";
    text += Body();
    constexpr int kFirstFailure = 400;
    return {.output = std::move(text), .is_error = status_ >= kFirstFailure};
  }

 private:
  std::string Body() const {
    const std::string size = (cut_ ? "more than " : "") + CountOf(body_.size(), "byte");
    if (body_.empty()) return "(no body)";
    if (!IsText()) return "(the body is not text and is not shown: " + size + ")";
    const std::string_view whole(body_.data(), body_.size() - (cut_ ? IncompleteUtf8Tail(body_) : 0));
    return ToValidUtf8(whole) + (cut_ ? "\n(cut: the body has " + size + ")" : "");
  }

  bool IsText() const {
    if (!LooksLikeText(body_)) return false;
    const std::string type = LowerCase(content_type_.substr(0, content_type_.find_first_of("; ")));
    static constexpr std::array<std::string_view, 6> kTextTypes = {"",
                                                                   "application/json",
                                                                   "application/xml",
                                                                   "application/javascript",
                                                                   "application/x-www-form-urlencoded",
                                                                   "application/x-ndjson"};
    return type.starts_with("text/") || type.ends_with("+json") || type.ends_with("+xml") ||
           std::find(kTextTypes.begin(), kTextTypes.end(), type) != kTextTypes.end();
  }

  const std::size_t max_bytes_;
  int status_ = 0;
  std::string content_type_;
  std::string body_;
  bool cut_ = false;
};

class HttpGetTool final : public BuiltinTool {
 public:
  HttpGetTool(Transport& transport, HttpGetOptions options)
      : BuiltinTool({.spec = {.name = "http_get",
                              .description = "Fetches a URL with GET and returns the status, the content type and the "
                                             "body if it is text (at most 1 MiB). Only public addresses.",
                              .parameters = R"({"type":"object","additionalProperties":false,"required":["url"],
"properties":{"url":{"type":"string","minLength":1,"maxLength":4096,"description":"An http or https URL."}}})"},
                     .requires_approval = true,
                     .risk = Risk::kMedium,
                     .approval_reason = "sends a request to another machine",
                     .terms = options.allow_private_addresses ? "any address" : "public addresses"}),
        transport_(transport),
        options_(options) {}

  std::vector<CallPattern> PatternsOf(std::string_view arguments) const override {
    const std::string origin = OriginOf(Arguments(arguments).String("url").value_or(""));
    if (origin.empty()) return {};
    return {{origin, *MeaningOf(origin, PatternUse::kAllow)}};
  }

  Result<std::string> MeaningOf(std::string_view pattern, PatternUse use) const override {
    const std::string origin = OriginOf(std::string(pattern));
    if (origin.empty() || origin != pattern) {
      return Fail(ErrorCode::kInvalidArgument,
                  "it must be a scheme and a host in small letters, and nothing behind them: \"https://example.com\"");
    }
    if (use == PatternUse::kHold)
      return "Every address of the host " + std::string(HostOf(origin)) +
             ", with any scheme and port; where others redirect is not looked at.";
    return "Gets any address that begins with " + origin + "/, and follows where it redirects, also to other hosts.";
  }

  std::optional<std::vector<std::size_t>> CoveredBy(const std::vector<std::string>& patterns,
                                                    std::string_view arguments) const override {
    const std::string origin = OriginOf(Arguments(arguments).String("url").value_or(""));
    const auto found = std::find(patterns.begin(), patterns.end(), origin);
    if (origin.empty() || found == patterns.end()) return std::nullopt;
    return std::vector{static_cast<std::size_t>(found - patterns.begin())};
  }

  Touch Touches(std::string_view pattern, std::string_view arguments) const override {
    const std::string origin = OriginOf(LowerCase(Arguments(arguments).String("url").value_or("")));
    if (origin.empty()) return Touch::kMaybe;
    std::string host(HostOf(origin));
    if (host.ends_with('.')) host.pop_back();
    return host == HostOf(pattern) ? Touch::kYes : Touch::kNo;
  }

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    HttpRequest request;
    request.url = Arguments(arguments).String("url").value_or("");
    if (!IsUsableUrl(request.url)) return ToolFailure("the url must begin with http:// or https:// and have no spaces");
    request.headers = {{"Accept", "*/*"}};
    request.total_timeout = std::min(options_.timeout, context.timeout);
    request.connect_timeout = std::min(request.connect_timeout, *request.total_timeout);
    request.idle_timeout = *request.total_timeout;
    request.max_redirects = options_.max_redirects;
    request.public_addresses_only = !options_.allow_private_addresses;
    CollectedResponse response(options_.max_body_bytes);
    const auto performed = transport_.Perform(std::move(request), response, context.stop);
    if (performed) return response.Outcome();
    if (performed.error().code == ErrorCode::kCancelled) return ToolFailure("cancelled");
    ToolOutcome outcome = ToolFailure("cannot fetch the url: " + ToValidUtf8(performed.error().message));
    const std::string& reason = performed.error().reason;
    outcome.transient = reason == "connection_failed" || reason == "connection_lost" || reason == "connect_timeout";
    return outcome;
  }

 private:
  Transport& transport_;
  const HttpGetOptions options_;
};

}  // namespace

std::unique_ptr<BuiltinTool> MakeHttpGetTool(Transport& transport, HttpGetOptions options) {
  return std::make_unique<HttpGetTool>(transport, options);
}

}  // namespace reprise
