#include "reprise/telemetry.h"

#include <algorithm>

#include "base/text.h"

namespace reprise {
namespace {

// Upper case is invalid here.
std::optional<std::uint8_t> LowerHexDigit(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
  return std::nullopt;
}

bool ReadHex(std::string_view text, std::uint8_t* bytes) {
  for (std::size_t i = 0; i < text.size() / 2; ++i) {
    const auto high = LowerHexDigit(text[2 * i]), low = LowerHexDigit(text[2 * i + 1]);
    if (!high || !low) return false;
    bytes[i] = static_cast<std::uint8_t>(*high << 4 | *low);
  }
  return true;
}

// Cuts the text to the length that is kept.
std::string Cut(std::string_view text) {
  if (text.size() > kMaxSpanContent) {
    text = text.substr(0, kMaxSpanContent);
    text.remove_suffix(IncompleteUtf8Tail(text));
  }
  return ToValidUtf8(text);
}

}  // namespace

std::string FormatTraceparent(const TraceContext& context) {
  if (!context.is_valid()) return {};
  std::string text = "00-";
  text += EncodeHex(context.trace_id);
  text += '-';
  text += EncodeHex(context.span_id);
  return text += context.sampled ? "-01" : "-00";
}

std::optional<TraceContext> ParseTraceparent(std::string_view text) {
  constexpr std::size_t kLength = 55, kTraceId = 3, kSpanId = 36, kFlags = 53;
  if (text.size() < kLength || text[kTraceId - 1] != '-' || text[kSpanId - 1] != '-' || text[kFlags - 1] != '-') {
    return std::nullopt;
  }
  TraceContext context;
  std::uint8_t version = 0, flags = 0;
  const bool is_hex =
      ReadHex(text.substr(0, 2), &version) && ReadHex(text.substr(kTraceId, 32), context.trace_id.data()) &&
      ReadHex(text.substr(kSpanId, 16), context.span_id.data()) && ReadHex(text.substr(kFlags, 2), &flags);
  if (!is_hex || version == 0xff || !context.is_valid()) return std::nullopt;
  const bool has_more = text.size() > kLength;
  if (has_more && (version == 0 || text[kLength] != '-')) return std::nullopt;
  context.sampled = (flags & 1) != 0;
  return context;
}

struct Span::State {
  using Steady = std::chrono::steady_clock;
  Telemetry& telemetry;
  // One moment by both clocks, taken at the first span, so that children lie within their parents even if the wall
  // clock is set.
  std::chrono::nanoseconds wall_anchor;
  Steady::time_point steady_anchor;
  SpanRecord record{};

  std::chrono::nanoseconds Now() const { return wall_anchor + (Steady::now() - steady_anchor); }
};

void Span::Deleter::operator()(State* state) const noexcept { delete state; }

Span& Span::operator=(Span&& other) noexcept {
  End();
  state_ = std::move(other.state_);
  return *this;
}

Span Span::Make(Telemetry& telemetry, std::string name, SpanKind kind, const TraceContext& parent,
                const State* beneath) {
  Span span;
  span.state_.reset(
      new State{.telemetry = telemetry,
                .wall_anchor = beneath ? beneath->wall_anchor : std::chrono::system_clock::now().time_since_epoch(),
                .steady_anchor = beneath ? beneath->steady_anchor : State::Steady::now()});
  SpanRecord& record = span.state_->record;
  record.context = telemetry.NewContext(parent);
  record.parent_id = parent.span_id;
  record.parent_is_remote = beneath == nullptr && parent.is_valid();
  record.name = std::move(name);
  record.kind = kind;
  record.began = span.state_->Now();
  return span;
}

Span Span::Begin(Telemetry* telemetry, std::string name, const TraceContext& parent) {
  if (telemetry == nullptr) return {};
  return Make(*telemetry, std::move(name), SpanKind::kInternal, parent, nullptr);
}

Span Span::Child(std::string name, SpanKind kind) const {
  if (!state_) return {};
  return Make(state_->telemetry, std::move(name), kind, state_->record.context, state_.get());
}

const TraceContext& Span::context() const {
  static const TraceContext kNone;
  return state_ ? state_->record.context : kNone;
}

bool Span::takes_content() const {
  return state_ && state_->record.context.sampled && state_->telemetry.takes_content();
}
bool Span::tells_providers() const { return state_ && state_->telemetry.tells_providers(); }

void Span::Set(std::string_view key, AttributeValue value) {
  if (!state_) return;
  auto& attributes = state_->record.attributes;
  const auto known = std::ranges::find(attributes, key, &Attribute::key);
  if (known != attributes.end()) {
    known->value = std::move(value);
  } else {
    attributes.push_back({key, std::move(value)});
  }
}

void Span::Link(const TraceContext& other) {
  if (state_ && other.is_valid()) state_->record.links.push_back(other);
}

void Span::SetContent(std::string_view key, std::string_view text) {
  if (takes_content()) Set(key, AttributeValue(Cut(text)));
}

void Span::Fail(std::string_view type, std::string_view text) {
  if (!state_) return;
  Set("error.type", AttributeValue(std::string(type)));
  state_->record.failed = true;
  if (takes_content()) state_->record.failure_text = Cut(text);
}

void Span::Stop() {
  if (state_ && state_->record.ended == std::chrono::nanoseconds(0)) state_->record.ended = state_->Now();
}

void Span::End() {
  Stop();
  const auto state = std::move(state_);
  if (!state) return;
  state->telemetry.Ended(std::move(state->record));
}

}  // namespace reprise
