#include "tools/web/http_get_tool.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/utf8.h"
#include "tools/arguments.h"
#include "tools/text_file.h"

namespace reprise {
namespace {

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

bool IsUsableUrl(const std::string& url) {
  const std::string lower = Lower(url.substr(0, 8));
  if (!lower.starts_with("http://") && !lower.starts_with("https://")) return false;
  return std::none_of(url.begin(), url.end(), [](unsigned char c) { return c <= 0x20 || c == 0x7f; });
}

// Collects one response. Touched by the transport's thread only until Perform has returned.
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
    const std::string size = (cut_ ? "more than " : "") + std::to_string(body_.size()) + " bytes";
    if (body_.empty()) return "(no body)";
    if (!IsText()) return "(the body is not text and is not shown: " + size + ")";
    const std::string_view whole(body_.data(), body_.size() - (cut_ ? IncompleteUtf8Tail(body_) : 0));
    return ToValidUtf8(whole) + (cut_ ? "\n(cut: the body has " + size + ")" : "");
  }

  bool IsText() const {
    if (!LooksLikeText(body_)) return false;
    const std::string type = Lower(content_type_.substr(0, content_type_.find_first_of("; ")));
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
