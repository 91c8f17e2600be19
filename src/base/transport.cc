#include "base/transport.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <memory>
#include <string>
#include <string_view>

#include "base/text.h"

namespace reprise {

namespace {

using std::chrono::milliseconds;
using SystemTime = std::chrono::system_clock::time_point;

constexpr double kMaxSeconds = 1e9;

const std::string* Find(const HttpHeaders& headers, std::string_view name) {
  const auto found = std::ranges::find_if(headers, [&](const auto& each) { return each.first == name; });
  return found == headers.end() ? nullptr : &found->second;
}

std::optional<double> Number(std::string_view text) {
  const auto value = ParseNumber<double>(text);
  if (!value || !std::isfinite(*value) || *value < 0) return std::nullopt;
  return std::min(*value, kMaxSeconds * 1000);
}

std::optional<SystemTime> Date(const std::string& text) {
  for (const char* form : {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"}) {
    struct tm fields {};
    const char* const end = ::strptime(text.c_str(), form, &fields);
    if (end != nullptr && *end == '\0') return std::chrono::system_clock::from_time_t(::timegm(&fields));
  }
  return std::nullopt;
}

}  // namespace

std::optional<milliseconds> RetryAfter(const HttpHeaders& headers, SystemTime now) {
  if (const std::string* text = Find(headers, "retry-after-ms")) {
    if (const auto value = Number(*text)) return milliseconds(std::llround(*value));
  }
  const std::string* text = Find(headers, "retry-after");
  if (text == nullptr) return std::nullopt;
  if (const auto seconds = Number(*text)) return milliseconds(std::llround(std::min(*seconds, kMaxSeconds) * 1000));
  const auto date = Date(*text);
  if (!date) return std::nullopt;
  const std::string* sent = Find(headers, "date");
  const SystemTime from = (sent != nullptr ? Date(*sent) : std::nullopt).value_or(now);
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(*date - from));
}

Result<void> Transport::Perform(HttpRequest request, HttpResponseHandler& handler, std::stop_token stop) {
  // Shared, because set_value may wake this function and let it return before set_value itself does.
  const auto result = std::make_shared<std::promise<Result<void>>>();
  Send(std::move(request), handler, std::move(stop),
       [result](Result<void> ended) { result->set_value(std::move(ended)); });
  return result->get_future().get();
}

}  // namespace reprise
